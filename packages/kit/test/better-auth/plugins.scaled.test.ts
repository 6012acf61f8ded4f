import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { betterAuth as createAuth, type BetterAuthOptions as InstanceOptions, type BetterAuthPlugin } from 'better-auth';
import { getMigrations } from 'better-auth/db/migration';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { describeDatabases } from '../../src/testing/databases.ts';
import { instanceOptions, startAuthApp } from './auth-app.ts';
import { shapeAfter } from './table-shape.ts';

/** As the guide names them: without the exact versions of their peers npm does not install them. */
const PACKAGES = [
  'better-auth@1.7.7',
  '@better-auth/core@1.7.7',
  '@better-auth/utils@0.4.2',
  'better-call@1.4.0',
  '@better-fetch/fetch@1.3.2',
  '@better-auth/scim@1.7.5',
  '@better-auth/sso@1.7.5',
  'nanostores@1',
  '@better-auth/passkey@1.7.6',
];

// Needs a registry and a minute, so it is not part of `npm test`.
describe.runIf(process.env['KIT_TEST_LONG'] === '1')('plugins of better-auth with packages of their own', () => {
  let folder = '';
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'kit-better-auth-'));
    writeFileSync(join(folder, 'package.json'), '{"private":true,"type":"module"}');
    cpSync(join(import.meta.dirname, '../../../../.npmrc'), join(folder, '.npmrc'));
    // Without --force and --legacy-peer-deps: what a user types must resolve.
    execFileSync('npm', ['install', '--save-exact', ...PACKAGES], { cwd: folder, stdio: 'pipe' });
  }, 600_000);
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  const load = async (name: string): Promise<Record<string, (options: object) => BetterAuthPlugin>> =>
    (await import(pathToFileURL(join(folder, 'node_modules/@better-auth', name, 'dist/index.mjs')).href)) as never;

  describeDatabases('the migrations', (database) => {
    test('create the tables of scim, sso with domain verification, and passkey', { timeout: 300_000 }, async () => {
      const added = [
        (await load('scim'))['scim']?.({
          connections: [],
          managedConnections: { credentialHashSecret: 'a-secret-of-forty-characters-for-tests!!' },
        }),
        (await load('sso'))['sso']?.({ domainVerification: { enabled: true } }),
        (await load('passkey'))['passkey']?.({}),
      ] as BetterAuthPlugin[];
      const withPlugins = (options: ReturnType<typeof instanceOptions>): InstanceOptions => ({
        ...options,
        plugins: [...options.plugins, ...added],
      });
      const db = await database.open();
      const { compileMigrations } = await getMigrations(createAuth(withPlugins(instanceOptions(db))).options);
      const wanted = await shapeAfter(
        db,
        (await compileMigrations()).split(';').flatMap((statement) => statement.trim() || []),
      );
      const { app } = await startAuthApp(db, { instance: withPlugins });
      const created = await shapeAfter(db, []);
      await app.close();
      for (const table of ['scimUser', 'ssoProvider', 'passkey'])
        expect(wanted.columns.some((each) => each.startsWith(`${table}.`))).toBe(true);
      expect(wanted.columns.filter((each) => !created.columns.includes(each))).toEqual([]);
      expect(wanted.indexes.filter((each) => !created.indexes.includes(each))).toEqual([]);
    });
  });
});
