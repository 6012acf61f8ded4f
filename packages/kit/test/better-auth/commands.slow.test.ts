import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { KitProgram, sourceOf } from '../cli/kit-program.ts';

/** Nothing listens there. */
const CLOSED = 'postgres://app:secret@127.0.0.1:1/app';

const packageOf = (name: string): string => JSON.stringify(import.meta.resolve(name));
const config = (database: string): string => `
import { betterAuth as createAuth } from ${packageOf('better-auth')};
import { organization } from ${packageOf('better-auth/plugins')};
import { appDatabase, createApp } from ${sourceOf('index.ts')};
import { betterAuth, joinedKysely, kitPlugin } from ${sourceOf('contrib/better-auth/index.ts')};
import { createTable, migration, model, openDatabase, t } from ${sourceOf('db/index.ts')};
const database = ${database};
const auth = createAuth({
  baseURL: 'http://127.0.0.1:3000',
  basePath: '/auth',
  secret: 'a-secret-of-the-tests-with-more-than-32-characters',
  database: { db: joinedKysely(database), type: database.dialect, transaction: true },
  advanced: { database: { validateSchema: false }, disableOriginCheck: false },
  telemetry: { enabled: false },
  plugins: [organization(), kitPlugin()],
});
const things = model('things', { id: t.uuidv7().pk(), name: t.text(80) });
const shop = { name: 'shop', models: [things], migrations: [migration('0001_initial', [createTable('things', { id: t.uuidv7().pk() })])] };
export default createApp({ title: 'Shop', database, modules: [betterAuth(auth), shop], mount: {} });
`;

let folder = '';
let program: KitProgram;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'kit-better-auth-commands-'));
  program = new KitProgram(folder);
});
afterAll(async () => {
  await program.close();
  await rm(folder, { recursive: true, force: true });
});

const run = async (url: string, args: readonly string[], database = 'appDatabase()') => {
  await writeFile(join(folder, 'kit.config.ts'), config(database));
  return program.run(args, { environment: { DATABASE_URL: url } });
};

describe.each([
  ['PostgreSQL that is not there', CLOSED],
  ['a SQLite file that is not there', 'sqlite:./data/app.db'],
])('with better-auth on %s', (_name, url) => {
  test('commands that need no database work, and create none', { timeout: 120_000 }, async () => {
    expect(await run(url, ['openapi', '--out', 'openapi.json'])).toMatchObject({ code: 0, stderr: '' });
    expect(await run(url, ['openapi', '--check', 'openapi.json'])).toMatchObject({ code: 0, stderr: '' });
    expect(await run(url, ['client', 'typescript', '--out', 'client.ts'])).toMatchObject({ code: 0, stderr: '' });
    expect(await run(url, ['client', 'typescript', '--check', '--out', 'client.ts'])).toMatchObject({ code: 0, stderr: '' });
    const made = await run(url, ['migrate', 'make', 'shop', '--print']);
    expect([made.code, made.stdout]).toEqual([0, expect.stringContaining('name')]);
    expect((await run(url, ['inspect'])).code).toBe(0);
    expect(await readdir(folder)).not.toContain('data');
  });
});

describe('commands that need a database say in a sentence that it cannot be reached', () => {
  const sentence =
    /The database cannot be reached: .*127\.0\.0\.1:1.* Check that it is running and that DATABASE_URL or createApp\(\{ database \}\) is correct\./;

  // `doctor` lists it among its findings, on stdout.
  test.each([
    ['check', sentence],
    ['migrate', sentence],
    ['migrate --check', sentence],
    ['doctor', /127\.0\.0\.1:1/],
  ])('kit %s', { timeout: 60_000 }, async (line, expected) => {
    const { code, stdout, stderr } = await run(CLOSED, line.split(' '));
    expect([code, stdout + stderr]).toEqual([1, expect.stringMatching(expected)]);
    expect(stdout + stderr).not.toMatch(/secret|^\s+at /m);
  });

  test('also where the configuration itself opens it', { timeout: 60_000 }, async () => {
    const { code, stderr } = await run(CLOSED, ['openapi'], `await openDatabase(${JSON.stringify(CLOSED)})`);
    expect([code, stderr]).toEqual([1, expect.stringMatching(sentence)]);
  });
});
