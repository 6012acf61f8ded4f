import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { createApp } from '../../app/assemble/create-app.ts';
import { Controller } from '../../http/compile/controller.ts';
import { route } from '../../http/declare/route.ts';
import { allowAny } from '../../permissions/built-ins.ts';
import { runCommand } from '../../../test/cli/run-command.ts';
import { clientCommand } from './client.ts';

const folder = mkdtempSync(join(tmpdir(), 'kit-client-command-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

class PingController extends Controller {
  ping = route.get('/', { permission: allowAny }, () => undefined);
}
class FileController extends Controller {
  any = route.get('/*', { permission: allowAny }, () => undefined);
}

/** What the command prints, or why it fails. */
const client = (args: readonly string[], controller: new () => Controller = PingController): Promise<string> =>
  runCommand(
    clientCommand,
    createApp({ database: 'sqlite::memory:', log: { level: 'silent' }, mount: { '/v1': { '/ping': controller } } }),
    args,
  );

test.each(['typescript', 'python'])(
  '--check of %s passes for the current text and fails when the file is stale or missing',
  async (language) => {
    const file = join(folder, language);
    expect(await client([language, '--out', file])).toBe(`${file} written.`);
    const text = readFileSync(file, 'utf8');
    expect(await client([language, '--out', file, '--check'])).toBe(`${file} is current.`);
    expect(await client([language, '--out', file])).toBe(`${file} written.`);
    expect(readFileSync(file, 'utf8')).toBe(text);
    writeFileSync(file, `${text}//`);
    expect(await client([language, '--out', file, '--check'])).toBe(
      `failed: ${file} is not the current client. Write it again with: npx kit client ${language} --out ${file}`,
    );
    expect(await client([language, '--out', join(folder, 'none'), '--check'])).toContain('failed: There is no file');
  },
);

test('the folder of the file is created', async () => {
  const file = join(folder, 'src', 'generated', 'api.ts');
  expect(await client(['typescript', '--out', file])).toBe(`${file} written.`);
  expect(readFileSync(file, 'utf8')).not.toBe('');
});

test('a file that cannot be written leaves nothing behind, and a refused operation leaves the old file', async () => {
  const place = join(folder, 'place');
  mkdirSync(place);
  expect(await client(['typescript', '--out', place])).toContain('cannot be written');
  const file = join(place, 'api.ts');
  writeFileSync(file, 'old');
  expect(await client(['typescript', '--out', file], FileController)).toContain('failed: GET /v1/ping/{wildcard} has a path of any length');
  expect([readdirSync(place), readFileSync(file, 'utf8')]).toEqual([['api.ts'], 'old']);
  expect(await client(['cobol', '--out', file])).toContain('typescript or python, not "cobol"');
  expect(await client(['python', '--out', file, '--dates'])).toContain('--dates is for typescript');
  expect(await client(['typescript', '--out', file, '--mount', '/v9'])).toContain('No route is mounted at "/v9"');
});

test('--package writes a wheel, the same bytes each time, and says why there is none', async () => {
  const folders = ['one', 'two'].map((name) => join(folder, name));
  for (const each of folders) expect(await client(['python', '--package', 'acme-api', '--out', each])).toContain('acme_api-');
  const [name] = readdirSync(folders[0]!) as [string];
  expect(name).toMatch(/^acme_api-\d.*-py3-none-any\.whl$/);
  const [first, second] = folders.map((each) => readFileSync(join(each, name)));
  expect(first!.equals(second!)).toBe(true);
  expect(await client(['python', '--package', 'acme-api', '--out', folders[0]!, '--check'])).toContain('is current.');
  expect(await client(['python', '--package', 'acme-api', '--out', join(folder, 'none'), '--check'])).toContain(
    'Write it with: npx kit client python --out ',
  );
  expect(await client(['python', '--package', '../x', '--out', folder])).toContain('failed: --package: "../x" is not a name');
  expect(await client(['typescript', '--package', 'acme', '--out', folder])).toContain('--package is for python');
});

test('--check lists the methods that have another name now', async () => {
  class BookController extends Controller {
    static override readonly tags = ['books'];
    read = route.get('/', { permission: allowAny }, () => undefined);
  }
  class NamedController extends BookController {
    static override readonly tags = ['novels'];
  }
  for (const language of ['typescript', 'python']) {
    const file = join(folder, `renamed.${language}`);
    await client([language, '--out', file], BookController);
    expect(await client([language, '--out', file, '--check'], NamedController)).toContain(
      '\nclient.books.read is now client.novels.read (GET /v1/ping).',
    );
  }
});

test('--with tanstack writes and checks a second file', async () => {
  const file = join(folder, 'with', 'api.ts');
  const helpers = join(folder, 'with', 'api.tanstack.ts');
  expect(await client(['typescript', '--out', file, '--with', 'tanstack'])).toBe(`${file} written.${helpers} written.`);
  expect(readFileSync(helpers, 'utf8')).toContain('from "./api.ts";');
  expect(await client(['typescript', '--out', file, '--with', 'tanstack', '--check'])).toBe(`${file} is current.${helpers} is current.`);
  writeFileSync(helpers, '');
  expect(await client(['typescript', '--out', file, '--with', 'tanstack', '--check'])).toBe(
    `failed: ${helpers} is not the current client. Write it again with: npx kit client typescript --out ${file} --with tanstack`,
  );
  for (const args of [
    ['typescript', '--with', 'swr'],
    ['python', '--with', 'tanstack'],
  ])
    expect(await client([...args, '--out', file])).toContain('failed: --with knows tanstack');
});
