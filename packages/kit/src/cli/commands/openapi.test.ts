import { linkSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import * as z from 'zod';
import { createApp } from '../../app/assemble/create-app.ts';
import { Controller } from '../../http/compile/controller.ts';
import { route } from '../../http/declare/route.ts';
import { allowAny } from '../../permissions/built-ins.ts';
import { runCommand } from '../../../test/cli/run-command.ts';
import { openapiCommand } from './openapi.ts';

const folder = mkdtempSync(join(tmpdir(), 'kit-openapi-command-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const Out = z.strictObject({ ok: z.boolean() });
class PingController extends Controller {
  ping = route.get('/', { permission: allowAny, response: Out }, () => ({ ok: true }));
}
class SearchController extends PingController {
  search = route.query('/', { permission: allowAny, body: Out, response: Out }, ({ body }) => body);
}

/** What the command prints, or why it fails. */
const openapi = (args: readonly string[], controller: new () => Controller = PingController): Promise<string> =>
  runCommand(
    openapiCommand,
    createApp({
      database: 'sqlite::memory:',
      log: { level: 'silent' },
      mount: { '/v1': { '/ping': controller } },
      settings: { apiServers: ['https://api.example.org', 'https://eu.example.org'] },
    }),
    args,
  );

const documentOf = async (args: readonly string[], controller?: new () => Controller) =>
  JSON.parse(await openapi(args, controller)) as { openapi: string; servers: object[]; paths: Record<string, object> };

test('the document is 3.2 where an operation uses QUERY, else 3.1; --spec decides', async () => {
  expect((await documentOf([])).openapi).toBe('3.1.1');
  const whole = await documentOf([], SearchController);
  expect([whole.openapi, Object.keys(whole.paths['/v1/ping']!)]).toEqual(['3.2.0', ['get', 'query']]);
  const served = await documentOf(['--spec', '3.1'], SearchController);
  expect([served.openapi, Object.keys(served.paths['/v1/ping']!)]).toEqual(['3.1.1', ['get']]);
  expect((await documentOf(['--spec', '3.2'])).openapi).toBe('3.2.0');
});

test('--examples adds an example to each JSON body, and --check asks for the same', async () => {
  expect(await openapi([])).not.toContain('"example": {');
  const full = await openapi(['--examples'], SearchController);
  expect(full).toContain('"example": {');
  const file = join(mkdtempSync(join(folder, 'examples-')), 'api.json');
  writeFileSync(file, full);
  expect(await openapi(['--check', file, '--examples'], SearchController)).toContain('is current');
  expect(await openapi(['--check', file], SearchController)).toContain('is not the current document');
  rmSync(dirname(file), { recursive: true });
});

test('servers come from the settings, or from --server', async () => {
  expect((await documentOf([])).servers).toEqual([{ url: 'https://api.example.org' }, { url: 'https://eu.example.org' }]);
  expect((await documentOf(['--server', 'https://other.example.org'])).servers).toEqual([{ url: 'https://other.example.org' }]);
});

test('a file is replaced as a whole, and one that cannot be written leaves nothing behind', async () => {
  const place = join(folder, 'place');
  mkdirSync(place);
  const file = join(place, 'api.json');
  writeFileSync(file, 'old');
  // Whoever reads the old file while the new one is written has the old one to its end.
  linkSync(file, join(place, 'old.json'));
  expect(await openapi(['--out', file])).toBe(`${file} written: 1 paths.`);
  expect([readFileSync(file, 'utf8'), readFileSync(join(place, 'old.json'), 'utf8')]).toEqual([await openapi([]), 'old']);
  expect(await openapi(['--out', place])).toContain('cannot be written');
  expect(readdirSync(place)).toEqual(['api.json', 'old.json']);
  expect(readdirSync(folder)).toEqual(['place']);
});

test('a stale or missing file is reported with the command that writes it, options included', async () => {
  const file = join(folder, 'checked.json');
  const options = ['--mount', '/v1', '--spec', '3.1', '--server', 'https://a.example', 'https://b.example'];
  const again = `npx kit openapi --out ${file} --mount /v1 --spec 3.1 --server https://a.example --server https://b.example`;
  expect(await openapi(['--check', file, ...options])).toBe(`failed: There is no file ${file}. Write it with: ${again}`);
  writeFileSync(file, '{}');
  expect(await openapi(['--check', file, ...options])).toBe(`failed: ${file} is not the current document. Write it again with: ${again}`);
  await openapi(again.split(' ').slice(3));
  expect(await openapi(['--check', file, ...options])).toBe(`${file} is current.`);
});
