import { betterAuth as createAuth, type BetterAuthOptions as InstanceOptions } from 'better-auth';
import { getMigrations } from 'better-auth/db/migration';
import { expect, test } from 'vitest';
import type { Database } from '../../src/db/index.ts';
import { describeDatabases } from '../../src/testing/databases.ts';
import { Browser, instanceOptions, startAuthApp } from './auth-app.ts';

/** The tables as the package creates them for an instance without any plugin, with one user. */
async function usedBefore(db: Database): Promise<void> {
  const { plugins: _plugins, ...options } = instanceOptions(db);
  const { runMigrations } = await getMigrations(createAuth(options as InstanceOptions).options);
  await runMigrations();
  const now = new Date().toISOString();
  await db.query(
    `insert into "user" ("id", "name", "email", "emailVerified", "createdAt", "updatedAt")
      values ('u1', 'Old', 'old@example.com', ${db.dialect === 'sqlite' ? '1' : 'true'}, $1, $1)`,
    [now],
  );
  await db.query(
    `insert into "account" ("id", "accountId", "providerId", "userId", "password", "createdAt", "updatedAt")
      values ('a1', 'u1', 'credential', 'u1', 'plain:correct horse battery', $1, $1)`,
    [now],
  );
}

describeDatabases(
  'a database that better-auth has used before',
  (database) => {
    test('keeps its tables and rows, gets the columns that are read, and its users log in', async () => {
      const withoutFactor = await startAuthApp(await database.open(), {
        instance: (options) => ({ ...options, plugins: options.plugins.filter(({ id }) => id !== 'two-factor') }),
      });
      const browser = new Browser(withoutFactor.app);
      expect((await browser.signIn('old@example.com')).status).toBe(200);
      expect((await browser.get('/v1/who')).body).toMatchObject({ user: 'old@example.com' });
      expect((await browser.post('/auth/organization/create', { name: 'North', slug: 'north' })).status).toBe(200);
      expect((await browser.get('/v1/who')).body).toMatchObject({ roles: ['owner'] });
      await database.db.query(`update "user" set "banned" = ${database.dialect === 'sqlite' ? '1' : 'true'} where "id" = 'u1'`);
      expect((await browser.get('/v1/who')).status).toBe(401);
      await withoutFactor.app.close();
    });

    test('is told which columns a plugin needs that it uses for the first time', async () => {
      await expect(startAuthApp(await database.open())).rejects.toThrow(/E032.*twoFactorEnabled/s);
    });
  },
  { prepare: usedBefore },
);

describeDatabases('a database with a table "user" of another application', (database) => {
  test('is not migrated, and the error has the remedy', async () => {
    await database.db.query('create table "user" (id integer primary key, login text)');
    await expect(startAuthApp(await database.open())).rejects.toThrow(
      /not a table of better-auth: it has no name, email, .* Rename that table/,
    );
  });
});

describeDatabases('a database in which somebody is a member twice', (database) => {
  test('is not migrated, and the error has the remedy', async () => {
    await database.db.query(
      'create table "member" ("id" text primary key, "organizationId" text, "userId" text, "role" text, "createdAt" text)',
    );
    await database.db.query(`insert into "member" values ('m1', 'o', 'u', 'member', ''), ('m2', 'o', 'u', 'member', '')`);
    await expect(startAuthApp(await database.open())).rejects.toThrow(/the user u is a member of the organization o twice\. Delete/);
  });
});
