import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { KitProgram, sourceOf } from '../../../test/cli/kit-program.ts';
import { DevServer, type DevServerOptions } from './dev-server.ts';

let folder = '';
let program: KitProgram;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'kit-dev-'));
  program = new KitProgram(folder);
});
afterAll(async () => {
  await program.close();
  await rm(folder, { recursive: true, force: true });
});

let projects = 0;

/** A folder with an app whose greeting comes from another file. */
async function project(): Promise<string> {
  const place = join(folder, `app-${++projects}`);
  await mkdir(place);
  await writeFile(join(place, 'greeting.ts'), `export const greeting: string = 'one';\n`);
  await writeFile(
    join(place, 'kit.config.ts'),
    `import { allowAny, Controller, createApp, route } from ${sourceOf('index.ts')};
import { createTable, migration, model, t } from ${sourceOf('db/index.ts')};
import { greeting } from './greeting.ts';
const notes = model('notes', { id: t.uuidv7().pk() });
class Greeting extends Controller {
  read = route.get('/', { permission: allowAny }, async ({ reply }) => void reply.header('x-greeting', greeting + (process.env['SUFFIX'] ?? '') + ' ' + (process.env['SET'] ?? '')));
}
export default createApp({
  title: 'Greeter',
  database: 'sqlite:./app.db',
  modules: [{ name: 'notes', models: [notes], migrations: [migration('0001_initial', [createTable('notes', notes.columns)])] }],
  mount: { '/v1': { '/greeting': Greeting } },
});
`,
  );
  return place;
}

interface Dev {
  readonly child: ChildProcess;
  /** Everything printed so far. */
  output(): string;
  /** Waits until the text was printed after the last call, and returns what was printed up to there. */
  next(pattern: RegExp): Promise<string>;
}

function dev(cwd: string, args: readonly string[] = ['--yes'], environment: Readonly<Record<string, string>> = {}): Dev {
  const child = program.start(['dev', '--port', '0', ...args], { cwd, environment });
  let printed = '';
  let read = 0;
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (printed += chunk.toString()));
  child.stdin.end();
  return {
    child,
    output: () => printed,
    async next(pattern) {
      await expect.poll(() => printed.slice(read), { timeout: 300_000, interval: 20 }).toMatch(pattern);
      const text = printed.slice(read);
      const found = pattern.exec(text);
      const end = (found?.index ?? 0) + (found?.[0].length ?? 0);
      read += end;
      return text.slice(0, end);
    },
  };
}

async function ended({ child }: Dev): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exit = once(child, 'exit');
  child.kill('SIGTERM');
  await exit;
}

const LISTENS = /listens on (http:\/\/\S+)/;

async function urlOf(running: Dev): Promise<string> {
  return LISTENS.exec(await running.next(LISTENS))?.[1] ?? '';
}

const greetingAt = async (url: string) => (await fetch(`${url}/v1/greeting`)).headers.get('x-greeting');

// One server for all of them: each test goes on where the one before it ended.
describe('while files change', () => {
  let place = '';
  let url = '';
  let running: Dev;
  test('the app is served, and its client is written', async () => {
    place = await project();
    running = dev(place, ['--yes', '--client', 'web-api.ts'], { SET: 'set' });
    url = await urlOf(running);
    await running.next(/wrote the client \S+web-api\.ts\n/);
  });
  afterAll(() => ended(running));
  const save = (file: string, text: string) => writeFile(join(place, file), text);

  test('a saved file is served at the same URL', async () => {
    expect(await greetingAt(url)).toBe('one set');
    expect(running.output()).toMatch(/reference +\S+\/docs\n/);
    await save('greeting.ts', `export const greeting: string = 'two';\n`);
    expect(await running.next(/↻ greeting\.ts\n/)).not.toContain('✗');
    expect(await urlOf(running)).toBe(url);
    expect(await greetingAt(url)).toBe('two set');
  });

  test('an app that does not start is explained with its place, and the next save recovers', async () => {
    await save('greeting.ts', `export const greeting: string = 'three;\n`);
    const failed = await running.next(/Save a file to start it again\.\n/);
    expect(failed).toContain('kit.config.ts could not be loaded');
    expect(failed).toContain(`at ${join(place, 'greeting.ts')}:1`);
    await save('greeting.ts', `export const greeting: string = 'three';\n`);
    expect(await urlOf(running)).toBe(url);
    expect(await greetingAt(url)).toBe('three set');
  });

  test('a client is written again when the API changes, and writing it does not restart the app', async () => {
    const config = await readFile(join(place, 'kit.config.ts'), 'utf8');
    expect(await readFile(join(place, 'web-api.ts'), 'utf8')).toContain('Greeter');
    await save('kit.config.ts', config.replace("'Greeter'", "'Welcomer'"));
    const printed = await running.next(/wrote the client \S+web-api\.ts\n/);
    expect(printed.match(/↻/g)).toHaveLength(1);
    expect(await readFile(join(place, 'web-api.ts'), 'utf8')).toContain('Welcomer');
  });

  test('.env is read at every start, and variables that are set win', async () => {
    await save('.env', 'SUFFIX=-a\nSET=other\n');
    expect(await running.next(LISTENS)).not.toContain('web-api');
    expect(await greetingAt(url)).toBe('three-a set');
  });

  test('files of new folders are noticed; tests, data and a save without a change are not', async () => {
    await mkdir(join(place, 'data'));
    await save('data/state.json', '{}');
    await save('greeting.test.ts', 'export {};');
    await save('greeting.ts', `export const greeting: string = 'three';\n`);
    await mkdir(join(place, 'src'));
    await save('src/more.ts', 'export const more = 1;\n');
    expect(await running.next(/↻ .*\n/)).toContain('↻ src/more.ts\n');
    await urlOf(running);
  });

  test('the process of the app ends with kit dev, however that ends', async () => {
    running.child.kill('SIGKILL');
    const state = () =>
      fetch(url).then(
        () => 'serving',
        () => 'ended',
      );
    await expect.poll(state, { timeout: 120_000 }).toBe('ended');
  });
});

test('pending migrations are not applied without a person or --yes, and the app then starts with the next save', async () => {
  const place = await project();
  const running = dev(place, []);
  onTestFinished(() => ended(running));
  const asked = await running.next(/Save a file to start it again/);
  expect(asked).toContain('notes/0001_initial');
  expect(asked).toContain('kit dev --yes');
  expect((await program.run(['migrate'], { cwd: place })).code).toBe(0);
  await writeFile(join(place, 'greeting.ts'), `export const greeting: string = 'two';\n`);
  expect(await greetingAt(await urlOf(running))).toBe('two ');
});

describe('it does not start, and says why', () => {
  test('in production', async () => {
    const { code, stderr } = await program.run(['dev'], { cwd: await project(), environment: { NODE_ENV: 'production' } });
    expect([code, stderr]).toEqual([1, expect.stringContaining('NODE_ENV is production. Use kit start')]);
  });

  test('on a port that is taken', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    onTestFinished(() => void other.close());
    const { port } = other.address() as AddressInfo;
    const { code, stderr } = await program.run(['dev', '--port', String(port)], { cwd: await project() });
    expect([code, stderr]).toEqual([1, expect.stringContaining(`Another program already listens on 127.0.0.1:${port}`)]);
  });

  test('with a client in a language that is not supported', async () => {
    const { code, stderr } = await program.run(['dev', '--port', '0', '--client', 'api.go'], { cwd: await project() });
    expect([code, stderr]).toEqual([1, expect.stringContaining('files that end with .ts or .py')]);
  });

  test('without an app', async () => {
    const { code, stderr } = await program.run(['dev'], { cwd: folder });
    expect([code, stderr]).toEqual([1, expect.stringContaining('No kit.config.ts found')]);
  });
});

describe('on a terminal it asks before it migrates', () => {
  /** Stands for the process of the app: asks, and says what it was told. */
  const CHILD = `process.send({ type: 'pending', migrations: ['notes/0002_x'], database: 'sqlite:./app.db' });
process.once('message', ({ migrate }) => process.send({ type: 'migrated', migrations: [String(migrate)] }));
process.on('SIGTERM', () => process.exit(0));`;

  test.each([
    ['\n', 'applied true'],
    ['Y\n', 'applied true'],
    ['no\n', 'applied false'],
  ])('%j', async (typed, told) => {
    const child = join(folder, 'child.mjs');
    await writeFile(child, CHILD);
    const stdin = Object.assign(new PassThrough(), { isTTY: true }) as unknown as NodeJS.ReadStream;
    const stderr = new PassThrough() as unknown as NodeJS.WriteStream;
    let printed = '';
    stderr.on('data', (chunk: Buffer) => (printed += chunk.toString()));
    const options: DevServerOptions = {
      program: [child],
      cwd: folder,
      environment: {},
      terminal: { stdin, stdout: stderr, stderr },
      place: { host: '127.0.0.1', port: 1 },
      yes: false,
    };
    const server = new DevServer(options);
    server.start();
    onTestFinished(() => server.stop());
    await expect.poll(() => printed, { timeout: 60_000 }).toContain('pending notes/0002_x\n  Apply them now? [Y/n] ');
    (stdin as unknown as PassThrough).write(typed);
    await expect.poll(() => printed, { timeout: 60_000 }).toContain(told);
  });
});
