import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest';
import { KitProgram, sourceOf, type KitRun } from '../../test/cli/kit-program.ts';

const bin = join(import.meta.dirname, '../../bin/kit.js');

/** A port of loopback that refuses connections. */
const REFUSING = 'postgres://ada:hunter2secret@127.0.0.1:1/shop';

let folder = '';
let program: KitProgram;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'kit-mistakes-'));
  program = new KitProgram(folder, { DATABASE_URL: 'sqlite:./app.db' });
  await writeFile(
    join(folder, 'kit.config.ts'),
    `import { createApp } from ${sourceOf('index.ts')};
import { accounts } from ${sourceOf('contrib/accounts/index.ts')};
import { ApiKeyController, apiKeys } from ${sourceOf('contrib/apikeys/index.ts')};
import { WebhookEndpointController, webhooks } from ${sourceOf('contrib/webhooks/index.ts')};
export default createApp({
  title: 'Shop',
  modules: [accounts(), apiKeys(), webhooks()],
  mount: { '/v1': { '/keys': ApiKeyController, '/webhooks': WebhookEndpointController } },
});
`,
  );
  await writeFile(
    join(folder, 'bare.config.ts'),
    `import { createApp } from ${sourceOf('index.ts')};\nexport default createApp({ mount: {} });\n`,
  );
  await kit(['migrate']);
  await kit(['user', 'create', 'ada', '--no-password']);
});
afterAll(async () => {
  await program.close();
  await rm(folder, { recursive: true, force: true });
});

const kit = (args: readonly string[], environment: Readonly<Record<string, string>> = {}): Promise<KitRun> =>
  program.run(args, { environment });

describe('what goes wrong in the first minutes is one sentence that says what to do', () => {
  test.each([
    [['nope', '--json'], 2, 'invalid_usage', /^unknown command 'nope'/],
    [['jobs', 'list', '--json'], 2, 'invalid_usage', /jobs\(\) from kit\/contrib\/jobs/],
    [['--json', 'user', 'create'], 2, 'invalid_usage', /missing required argument 'username'/],
    [['start', '--json', '--nope'], 2, 'invalid_usage', /unknown option '--nope'/],
    [['start', '--json', '--port', 'x'], 1, 'invalid_value', /port/],
  ])('a command line that cannot be read is JSON, too, when that is asked for: %j', async (args, exit, code, message) => {
    const { code: got, stderr, stdout } = await kit(args);
    const printed = JSON.parse(stderr) as { error: { code: string; message: string } };
    expect([got, stdout, printed]).toEqual([exit, '', { error: { code, message: expect.stringMatching(message) as string } }]);
  });

  test('a port that is taken', async () => {
    const other = createServer();
    await new Promise<void>((listening) => other.listen(0, '127.0.0.1', listening));
    onTestFinished(() => void other.close());
    const { port } = other.address() as AddressInfo;
    const { code, stderr } = await program.spawn(['start', '--port', String(port)]);
    expect([code, stderr]).toEqual([
      1,
      `error: Another program already listens on 127.0.0.1:${port}. Stop it, or take another port: kit start --port ${port + 1}\n`,
    ]);
  });

  test('an app in one file is told to add a scaffolded resource there, with the path from there', async () => {
    const { stdout } = await kit(['scaffold', 'wishes', 'title:text(80)']);
    expect(stdout).toContain("in kit.config.ts:\n  import { WishController, wishModule } from './src/wishes.ts';");
  });

  test('a package.json as npm init writes it', async () => {
    const project = await mkdtemp(join(tmpdir(), 'kit-commonjs-'));
    onTestFinished(() => rm(project, { recursive: true, force: true }));
    await writeFile(join(project, 'package.json'), '{ "type": "commonjs" }');
    await writeFile(
      join(project, 'kit.config.ts'),
      `import { createApp } from ${sourceOf('index.ts')};\nexport default createApp({ mount: {} });\n`,
    );
    const { code, stderr } = await program.spawn(['check'], { cwd: project });
    expect([code, stderr]).toEqual([1, expect.stringContaining('"type": "module". Run: npm pkg set type=module')]);
  });

  test.each<[string, readonly string[], Readonly<Record<string, string>>, RegExp]>([
    [
      'a model in the case of a class',
      ['scaffold', 'OrderLine'],
      {},
      /^error: "OrderLine": names are snake_case.*\. Did you mean order_line\?/,
    ],
    ['a model without a letter', ['scaffold', '42'], {}, /^error: "42": names are snake_case.* underscores\.$/m],
    [
      'an address of another machine',
      ['start', '--host', '192.0.2.1'],
      {},
      /^error: 192\.0\.2\.1 is not an address of this machine\. .*--host/,
    ],
    [
      'a database that does not run',
      ['migrate'],
      { DATABASE_URL: REFUSING },
      /cannot be reached: connect ECONNREFUSED 127\.0\.0\.1:1\. .*DATABASE_URL/,
    ],
    [
      'an address of nothing',
      ['migrate'],
      { DATABASE_URL: 'mysql://ada:hunter2secret@db/shop' },
      /DATABASE_URL is not the address of a database\. Write sqlite:/,
    ],
    [
      'a SQLite address without a file',
      ['migrate'],
      { DATABASE_URL: 'sqlite:' },
      /DATABASE_URL is not the address of a database\. Write sqlite:/,
    ],
    [
      'a database file of something else',
      ['check'],
      { DATABASE_URL: 'sqlite:./bare.config.ts' },
      /bare\.config\.ts cannot be opened: file is not a database\. /,
    ],
    ['a short pepper', ['apikey', 'list'], { API_KEY_PEPPER: 'short' }, /API_KEY_PEPPER has fewer than 16 characters; use 32/],
    [
      'an invalid key',
      ['webhooks', 'stats'],
      { WEBHOOK_SECRET_KEYS: 'hunter2secret' },
      /Key 1 of 1 in WEBHOOK_SECRET_KEYS .*`kit webhooks generate-key`/,
    ],
  ])('%s', async (_name, args, environment, sentence) => {
    const { code, stderr } = await kit(args, environment);
    expect(code).toBe(1);
    expect(stderr).toMatch(sentence);
    expect(stderr).not.toMatch(/^ +at /m);
    expect(stderr).not.toContain('hunter2secret');
  });

  test('a database that PostgreSQL does not have', async () => {
    const url = new URL(inject('postgresUrl'));
    url.pathname = '/no_such_database';
    const { code, stderr } = await kit(['migrate'], { DATABASE_URL: url.href });
    expect([code, stderr]).toEqual([
      1,
      'error: The database server answers, but database "no_such_database" does not exist. Create it, or correct the end of the URL.\n',
    ]);
  });

  test('a command whose module is not installed', async () => {
    const { code, stderr } = await kit(['--config', 'bare.config.ts', 'user', 'create', 'ada']);
    expect(code).toBe(2);
    expect(stderr).toContain('"user" comes with accounts() from kit/contrib/accounts: add it to `modules` of createApp.');
  });

  test('a word that a command of an installed module does not have', async () => {
    const { code, stderr } = await kit(['user', 'set-password', 'ada']);
    expect([code, stderr]).toEqual([2, "error: unknown command 'set-password'\n(kit user --help explains the command)\n"]);
  });

  test('a command of a module, in an app that cannot be loaded', async () => {
    await writeFile(join(folder, 'broken.config.ts'), 'throw new Error("no disk");\n');
    const { code, stderr } = await kit(['--config', 'broken.config.ts', 'user', 'list']);
    expect([code, stderr]).toEqual([1, expect.stringMatching(/^error: .*broken\.config\.ts could not be loaded: no disk/)]);
    expect(stderr).not.toContain('unknown command');
  });

  test('doctor says it too', async () => {
    const [lost, damaged] = [
      await kit(['doctor'], { DATABASE_URL: REFUSING }),
      await kit(['doctor'], { DATABASE_URL: 'sqlite:./bare.config.ts' }),
    ];
    expect(lost.stdout).toMatch(/^fault {3}start-up: E025 The database cannot be reached: .* Check that it is running/m);
    expect(damaged.stdout).toMatch(
      /^fault {3}start-up: E025 The database file .*bare\.config\.ts cannot be opened: .* Correct the database URL/m,
    );
  });

  test('check and doctor leave no empty database at a misspelt address', async () => {
    const DATABASE_URL = 'sqlite:./data/ap.db';
    for (const command of ['check', 'doctor']) {
      const { code, stdout, stderr } = await kit([command], { DATABASE_URL });
      expect([code, `${stdout}${stderr}`]).toEqual([1, expect.stringContaining('The database sqlite:./data/ap.db is not up to date')]);
    }
    expect(existsSync(join(folder, 'data'))).toBe(false);
  });

  test('a scope that no route needs is pointed out, and the key is made all the same', async () => {
    const slip = await kit(['apikey', 'create', '--user', 'ada', '--name', 'ci', '--scope', 'webhook:write']);
    expect([slip.code, slip.stderr]).toEqual([0, 'No route of this app needs the scope webhook:write. Did you mean "webhooks:write"?\n']);
    const right = await kit(['apikey', 'create', '--user', 'ada', '--name', 'ci', '--scope', 'webhooks:*']);
    expect([right.code, right.stderr]).toEqual([0, '']);
  });
});

// Each of these is coloured on a terminal.
const PAINTED = ['--help', 'doctor', 'no-such-command'];

describe('escape codes are for people at terminals', () => {
  test('a pipe gets none', async () => {
    for (const line of [...PAINTED, 'migrate', 'inspect', 'user activate nobody', 'apikey list', 'webhooks stats --prometheus']) {
      const { stdout, stderr } = await kit(line.split(' '));
      expect(stdout + stderr).not.toBe('');
      expect([line, stdout + stderr]).toEqual([line, expect.not.stringContaining('\u001B')]);
    }
  });

  // `script` of util-linux gives a program a terminal; other systems have one with other options, or none.
  test('NO_COLOR turns them off on a terminal', { skip: spawnSync('script', ['--version']).status !== 0 }, async () => {
    for (const line of PAINTED) expect(await onTerminal(line, {})).toContain('\u001B[');
    for (const line of PAINTED) expect(await onTerminal(line, { NO_COLOR: '1' })).not.toContain('\u001B');
  });
});

/** What a command line shows on a pseudo-terminal. */
async function onTerminal(line: string, environment: Readonly<Record<string, string>>): Promise<string> {
  const command = `${process.execPath} --conditions=source ${bin} ${line}`;
  const { PATH = '', NODE_COMPILE_CACHE } = process.env;
  const env = { PATH, NODE_COMPILE_CACHE, TERM: 'xterm-256color', DATABASE_URL: 'sqlite:./app.db', ...environment };
  const child = spawn('script', ['--quiet', '--command', command, '/dev/null'], { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
  await once(child, 'close');
  return output;
}
