import { Command } from 'commander';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { userCommand } from '../../src/contrib/better-auth/commands.ts';
import type { InstanceContext } from '../../src/contrib/better-auth/instance.ts';
import { describeDatabases } from '../../src/testing/databases.ts';
import { type AuthApp, Browser, member, startAuthApp } from './auth-app.ts';

class Failed extends Error {}

describeDatabases('kit user create-superuser with better-auth', (database) => {
  let here: AuthApp;
  beforeAll(async () => {
    here = await startAuthApp(database.db);
  });
  afterAll(() => here.app.close());

  const run = async (args: readonly string[], { password = 'correct horse battery', json = false, auth = here.auth } = {}) => {
    const printed: string[] = [];
    const context = {
      app: async () => here.app,
      print: (text: string) => void printed.push(text),
      json,
      fail: (message: string): never => {
        throw new Failed(message);
      },
      secret: async () => password,
    };
    const instance = (await auth.$context) as unknown as InstanceContext;
    const command = new Command('user');
    userCommand(auth, () => instance).configure(command, context as never);
    await command.parseAsync(args, { from: 'user' });
    return printed;
  };
  const rolesOf = async (email: string) =>
    (await database.db.query<{ role: string }>('select "role" as role from "user" where "email" = $1', [email]))[0]?.role;
  const audited = async () => {
    const rows = await database.db.query<{ action: string; actor: string }>(
      `select action, actor_name as actor from (select id, action, actor_name, target_type from audit_inbox
        union all select id, action, actor_name, target_type from audit_entries) e where target_type = 'user' order by id`,
    );
    return rows.map(({ action, actor }) => [action, actor]);
  };

  test('creates a user who logs in without a verification, and is staff; the log names the command', async () => {
    expect(await run(['create-superuser', 'Root@Example.com'])).toEqual([
      expect.stringMatching(/^root@example\.com is created, with the role admin \(id /),
    ]);
    const root = new Browser(here.app);
    expect((await root.post('/auth/sign-in/email', { email: 'root@example.com', password: 'correct horse battery' })).status).toBe(200);
    expect((await root.get('/v1/who/staff')).status).toBe(200);
    expect(await audited()).toContainEqual(['user.created', 'cli']);
  });

  test('a generated password is alone on the last line, and works', async () => {
    const [, password] = await run(['create-superuser', 'made@example.com', '--generate', '--name', 'Made']);
    const made = new Browser(here.app);
    expect((await made.post('/auth/sign-in/email', { email: 'made@example.com', password })).body.user.name).toBe('Made');
  });

  test('a user who has signed up gets the role beside other roles, keeps the login, and has it from the next request on', async () => {
    const ada = await member(here, 'ada@example.com');
    expect((await ada.get('/v1/who/staff')).status).toBe(403);
    await database.db.query(`update "user" set "role" = 'support' where "email" = 'ada@example.com'`);
    expect(JSON.parse((await run(['create-superuser', 'ada@example.com'], { json: true }))[0] as string)).toMatchObject({
      change: 'promoted',
    });
    expect(await rolesOf('ada@example.com')).toBe('support,admin');
    expect((await ada.get('/v1/who/staff')).status).toBe(200);
    expect((await run(['create-superuser', 'ada@example.com']))[0]).toContain('has the role admin already');
    expect(await rolesOf('ada@example.com')).toBe('support,admin');
  });

  test('a short password, a wrong address and an instance without roles are rejected, and nothing is stored', async () => {
    await expect(run(['create-superuser', 'short@example.com'], { password: 'short' })).rejects.toThrow('too short');
    await expect(run(['create-superuser', 'nobody'])).rejects.toThrow('not an email address');
    expect(await rolesOf('short@example.com')).toBeUndefined();
    const plain = { ...here.auth, options: { ...here.auth.options, plugins: [] } } as unknown as AuthApp['auth'];
    await expect(run(['create-superuser', 'x@example.com'], { auth: plain })).rejects.toThrow('add admin()');
  });
});
