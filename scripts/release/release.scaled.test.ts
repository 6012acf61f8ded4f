import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { globSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest';
import { createPostgresDatabase } from '../../packages/kit/src/testing/test-database.ts';
import { freePort } from '../../test/provision/free-port.ts';
import { installLinters, lintTarball } from './lint-tarball.ts';
import { startLocalRegistry, type LocalRegistry } from './local-registry.ts';

// Builds, publishes and installs: minutes. The short run of `npm test` has the names (public-names.test.ts) and the templates' own tests.
const isLong = process.env['KIT_TEST_LONG'] === '1';

const root = join(import.meta.dirname, '../..');
const NAME = 'acme-api';

describe.skipIf(!isLong)('published under another name, on a registry of loopback', () => {
  let scratch = '';
  let registry: LocalRegistry;
  let release = '';

  beforeAll(async () => {
    scratch = mkdtempSync(join(tmpdir(), 'kit-release-'));
    registry = await startLocalRegistry(join(scratch, 'registry'), await freePort(), NAME);
    release = await run('npm', ['run', 'release', '--', '--name', NAME, '--registry', registry.url, '--allow-uncommitted'], root);
  });
  afterAll(async () => {
    await registry[Symbol.asyncDispose]();
    rmSync(scratch, { recursive: true, force: true });
  });

  async function run(
    command: string,
    args: readonly string[],
    cwd: string,
    environment: Readonly<Record<string, string>> = {},
    input = '',
  ): Promise<string> {
    const child = start(command, args, cwd, environment);
    child.stdin.end(input);
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (output += chunk.toString()));
    const [code] = (await once(child, 'close')) as [number | null];
    if (code !== 0) throw new Error(`${command} ${args.join(' ')} ended with ${code}:\n${output}`);
    return output;
  }

  function start(command: string, args: readonly string[], cwd: string, environment: Readonly<Record<string, string>> = {}) {
    const { PATH = '', NODE_OPTIONS: _, KIT_TEST_LONG: __, NODE_ENV: ___, VITEST: ____, ...rest } = process.env;
    const env = { ...rest, PATH: [join(root, 'node_modules/.bin'), PATH].join(delimiter), ...registry.environment, ...environment };
    // Its own process group: npm does not pass every signal on.
    return spawn(command, args, { cwd, env, stdio: 'pipe', detached: true });
  }

  /** Starts the project by its own command; returns the URL that it prints. */
  async function serve(folder: string, command: readonly string[], environment: Readonly<Record<string, string>> = {}): Promise<string> {
    const child = start('npm', command, folder, { PORT: String(await freePort()), ...environment });
    const ended = once(child, 'exit');
    onTestFinished(async () => {
      process.kill(-(child.pid ?? 0), 'SIGTERM');
      await ended;
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (output += chunk.toString()));
    await expect.poll(() => output, { timeout: 300_000 }).toMatch(/listens on http:\/\/\S+/);
    return /listens on (http:\/\/\S+)/.exec(output)?.[1] ?? '';
  }

  test('every package is published under the name, and publint and attw find no fault', async () => {
    for (const name of [NAME, `${NAME}-config-server`, `create-${NAME}`]) expect(release).toContain(`published ${name} `);
    const linters = await installLinters(join(scratch, 'linters'));
    for (const name of [NAME, `${NAME}-config-server`]) await lintTarball(join(root, `dist/release/${name}.tgz`), linters);
  });

  test('no text of a package or a page names the packages of the repository', () => {
    const files = globSync('dist/release/**/*.{js,ts,md,json}', {
      cwd: root,
      exclude: ['**/benchmarks.md', '**/CHANGELOG.md', '**/decisions/**'],
    });
    const found = files.flatMap((file) => {
      const text = readFileSync(join(root, file), 'utf8');
      const pattern = /from ['"]kit['"/]|@kit\/config-server|kit\.tgz|npm (?:i|install|create) kit\b|another project/;
      // What `kit new` does with a package that is not published.
      return /\/(?:toolkit-source|project-files)\.(?:js|d\.ts|ts)$/.test(file) || !pattern.test(text)
        ? []
        : [`${file}: ${pattern.exec(text)?.[0]}`];
    });
    expect(files.length).toBeGreaterThan(500);
    expect(found).toEqual([]);
  });

  test.each(['minimal', 'full', 'b2b'])('npm create, install, test, start and the program work in a %s project', async (template) => {
    const place = join(scratch, template);
    mkdirSync(place);
    const created = await run('npm', ['create', '--yes', `${NAME}@latest`, 'my-app', '--', '--template', template], place);
    expect(created).toContain('my-app is ready.');
    const project = join(place, 'my-app');
    await run('npm', ['install'], project);
    const tested = await run('npm', ['test', '--', '--reporter=verbose'], project, { KIT_TEST_POSTGRES_URL: inject('postgresUrl') });
    expect(tested).toMatch(/Tests.*passed/);
    for (const database of template === 'full' ? [] : ['(sqlite)', '(postgres)'])
      expect(tested).toContain(`keeps the guarantees of a resource ${database}`);
    const url = await serve(project, ['start']);
    expect((await fetch(`${url}/health/ready`)).status).toBe(200);
    expect((await fetch(`${url}/docs`)).status).toBe(200);
    const document = JSON.parse(await run('npx', ['kit', 'openapi'], project)) as { openapi: string };
    expect(document.openapi).toMatch(/^3\./);
    const checked = await run('npx', ['kit', 'check'], project);
    expect([checked, /^W\d+ .*$/m.exec(checked)?.[0]]).toEqual([expect.stringMatching(/^ok my-app/m), undefined]);
  });

  test('a b2b project on PostgreSQL: a company from its first person to its end, with the installed program', async () => {
    const database = await createPostgresDatabase(inject('postgresUrl'));
    onTestFinished(() => database.remove());
    const environment = { DATABASE_URL: database.url };
    const place = join(scratch, 'company');
    mkdirSync(place);
    await run('npm', ['create', '--yes', `${NAME}@latest`, 'my-app', '--', '--template', 'b2b'], place);
    const project = join(place, 'my-app');
    await run('npm', ['install'], project);
    const kit = async (...args: string[]) => (await run('npx', ['kit', ...args], project, environment)).trim();
    const url = await serve(project, ['start'], environment);
    for (const [name, company] of [
      ['ada', 'Acme'],
      ['eve', 'Rival'],
    ] as const) {
      await kit('user', 'create', name, '--email', `${name}@example.com`, '--no-password');
      await kit('tenant', 'create', company, '--owner', name);
    }
    const keyOf = async (user: string) =>
      (await kit('apikey', 'create', '--user', user, '--name', 'k', '--scope', 'projects:read', '--scope', 'projects:write'))
        .split('\n')
        .at(-1) ?? '';
    const [ada, eve] = [await keyOf('ada'), await keyOf('eve')];
    const projects = async (key: string, title?: string) => {
      const headers = { 'x-api-key': key, 'content-type': 'application/json' };
      const body = title === undefined ? {} : { method: 'POST', body: JSON.stringify({ title }) };
      const response = await fetch(`${url}/v1/projects`, { headers, ...body });
      return { status: response.status, body: (await response.json()) as { readonly code?: string; readonly items?: readonly object[] } };
    };
    expect((await projects(ada, 'A new website')).status).toBe(201);
    expect((await projects(eve, 'Theirs')).status).toBe(201);
    expect((await projects(eve)).body.items).toMatchObject([{ title: 'Theirs' }]);
    await kit('tenant', 'suspend', 'acme', '--reason', 'The invoice is open.');
    expect((await projects(ada)).body.code).toBe('tenant_suspended');
    await kit('tenant', 'resume', 'acme');
    expect((await projects(ada)).body.items).toHaveLength(1);
    expect(await kit('tenant', 'export', 'acme', '--to', 'acme.zip')).toContain('rows of acme are in acme.zip');
    await kit('tenant', 'delete', 'acme');
    expect((await projects(ada)).status).toBe(403);
    await run(
      'npx',
      ['kit', 'shell'],
      project,
      environment,
      "await db.query('update tenants set deletes_at = created_at where deletes_at is not null')\n",
    );
    expect(await kit('tenant', 'purge')).toBe('1 tenants deleted.');
    expect((await projects(ada)).status).toBe(401);
    expect((await projects(eve)).body.items).toMatchObject([{ title: 'Theirs' }]);
    expect(await kit('audit', 'verify')).toContain('The chain is whole');
  });

  test('the commands of the Dockerfile work: production packages only, no sources of tests', async () => {
    const place = join(scratch, 'docker');
    mkdirSync(place);
    await run('npm', ['create', '--yes', `${NAME}@latest`, 'my-app'], place);
    const project = join(place, 'my-app');
    rmSync(join(project, 'node_modules'), { recursive: true });
    rmSync(join(project, 'test'), { recursive: true });
    await run('npm', ['ci', '--omit=dev'], project);
    const url = await serve(project, ['start'], { NODE_ENV: 'production' });
    expect((await fetch(`${url}/health/ready`)).status).toBe(200);
  });

  test('a folder that is not empty stays as it is', async () => {
    const place = join(scratch, 'occupied');
    mkdirSync(join(place, 'my-app', 'work'), { recursive: true });
    await expect(run('npm', ['create', '--yes', `${NAME}@latest`, 'my-app'], place)).rejects.toThrow(/my-app is not empty \(work\)/);
    expect(readdirSync(join(place, 'my-app'))).toEqual(['work']);
  });
});
