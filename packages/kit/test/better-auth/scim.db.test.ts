import { scim } from '@better-auth/scim';
import type { BetterAuthOptions as InstanceOptions, BetterAuthPlugin } from 'better-auth';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Database } from '../../src/db/index.ts';
import { passOnChanges } from '../../src/contrib/better-auth/user-changes.ts';
import { describeDatabases } from '../../src/testing/databases.ts';
import { auditLog } from '../audit-log.ts';
import { type Answer, type AuthApp, Browser, type instanceOptions, member, startAuthApp, userId } from './auth-app.ts';

const TOKEN = 'a-token-of-the-directory-for-these-tests-only';
const USER = 'urn:ietf:params:scim:schemas:core:2.0:User';
const PATCH = 'urn:ietf:params:scim:api:messages:2.0:PatchOp';

/** Links people by their address: the directory of these tests is trusted with it. */
const plugin = (database: Database) =>
  scim({
    connections: ['entra', 'okta'].map((id) => ({
      id,
      credentials: [{ type: 'bearer' as const, id: 'first', token: id === 'entra' ? TOKEN : `${TOKEN}-okta` }],
    })),
    managedConnections: { credentialHashSecret: 'a-secret-for-credentials-of-the-directory-0123' },
    identity: {
      async resolveUser({ resource }) {
        const [found] = await database.query<{ id: string }>('select "id" as id from "user" where "email" = $1', [resource.primaryEmail]);
        return found === undefined ? { action: 'create' } : { action: 'link', userId: found.id, profile: 'preserve' };
      },
    },
  });

describeDatabases('users that a directory provisions by SCIM', (database) => {
  let here: AuthApp;
  let there: AuthApp;
  /** Runs in a login, when the user has been found active and before the session is stored. */
  let beforeSession: (() => Promise<unknown>) | undefined;
  const instance = (options: ReturnType<typeof instanceOptions>): InstanceOptions => ({
    ...options,
    databaseHooks: { session: { create: { before: async () => void (await beforeSession?.()) } } },
    plugins: [...options.plugins, plugin(database.db) as BetterAuthPlugin],
  });
  beforeAll(async () => {
    here = await startAuthApp(database.db, { instance });
    there = await startAuthApp(await database.open(), { instance });
  });
  afterAll(async () => {
    await here.app.close();
    await there.app.close();
  });

  const directory = (method: string, path: string, body?: object, token = TOKEN): Promise<Answer> => {
    const program = new Browser(here.app);
    program.origin = null;
    return program.call(method, `/auth/scim/v2/${path}`, body, {
      authorization: `Bearer ${token}`,
      ...(body === undefined ? {} : { 'content-type': 'application/scim+json' }),
    });
  };
  const provision = async (email: string, token = TOKEN): Promise<string> => {
    const { status, body, text } = await directory(
      'POST',
      'Users',
      { schemas: [USER], userName: email, externalId: `x-${email}`, emails: [{ value: email, primary: true }], active: true },
      token,
    );
    expect([status, status === 201 ? '' : text]).toEqual([201, '']);
    return body.id as string;
  };
  const setActive = (id: string, active: boolean, token = TOKEN): Promise<Answer> =>
    directory('PATCH', `Users/${id}`, { schemas: [PATCH], Operations: [{ op: 'replace', path: 'active', value: active }] }, token);
  /** A person with a session and an API key, and what each of them gets in both processes. */
  const person = async (email: string) => {
    const browser = await member(here, email);
    const { body } = await browser.post('/v1/api-keys', { name: 'script', scopes: [] });
    const key = { 'x-api-key': body.key as string };
    const works = async (): Promise<number[]> => {
      const statuses: number[] = [];
      for (const { app } of [here, there]) {
        const copy = new Browser(app);
        for (const [name, value] of browser.cookies) copy.cookies.set(name, value);
        statuses.push((await copy.get('/v1/who')).status, (await new Browser(app).get('/v1/who', key)).status);
      }
      return statuses;
    };
    return { browser, works, id: await userId(database.db, email) };
  };

  test('migrations create the tables: the app starts, and the directory is served', async () => {
    expect((await directory('GET', 'ServiceProviderConfig')).status).toBe(200);
    expect((await directory('GET', 'Users')).body).toMatchObject({ totalResults: 0 });
    expect((await directory('GET', 'Users', undefined, 'another-token')).status).toBe(401);
    expect((await directory('GET', 'Users', undefined, '')).status).toBe(401);
  });

  test('a person whom SCIM has not provisioned is active', async () => {
    expect(await (await person('local@example.com')).works()).toEqual([200, 200, 200, 200]);
  });

  test('a deactivated user is out with the next request: session, key, new login; and reactivation brings keys and logins back', async () => {
    const { browser, works, id } = await person('ada@example.com');
    const scimId = await provision('ada@example.com');
    expect(await works()).toEqual([200, 200, 200, 200]);
    expect((await setActive(scimId, false)).status).toBe(200);
    expect(await works()).toEqual([401, 401, 401, 401]);
    const actions = (await auditLog(database.db, { target_id: id })).map(({ action }) => action);
    expect(actions).toContain('user.deactivated');
    expect(await database.db.query('select user_id from better_auth_user_changes')).toEqual([]);

    expect(await browser.signIn('ada@example.com')).toMatchObject({ status: 403, body: { code: 'USER_DEACTIVATED' } });
    expect(await database.db.query('select "id" from "session" where "userId" = $1', [id])).toEqual([]);

    expect((await setActive(scimId, true)).status).toBe(200);
    expect(await works()).toEqual([401, 200, 401, 200]);
    expect((await browser.signIn('ada@example.com')).status).toBe(200);
    expect(await works()).toEqual([200, 200, 200, 200]);
  });

  test('a login during which the directory deactivates the user leaves no session for the day of the reactivation', async () => {
    const { browser, works, id } = await person('racer@example.com');
    const scimId = await provision('racer@example.com');
    beforeSession = () => setActive(scimId, false);
    expect(await browser.signIn('racer@example.com')).toMatchObject({ status: 403, body: { code: 'USER_DEACTIVATED' } });
    beforeSession = undefined;
    expect(await database.db.query('select "id" from "session" where "userId" = $1', [id])).toEqual([]);
    expect((await setActive(scimId, true)).status).toBe(200);
    expect(await works()).toEqual([401, 200, 401, 200]);
  });

  test('a session that was stored while the directory deactivated the user does not come back either', async () => {
    const { browser, works, id } = await person('second-racer@example.com');
    const scimId = await provision('second-racer@example.com');
    expect((await browser.signIn('second-racer@example.com')).status).toBe(200);
    // What the directory's transaction leaves when it could not see the new session.
    await database.db.query('update "scimUser" set "active" = $2 where "userId" = $1', [id, database.dialect === 'sqlite' ? 0 : false]);
    expect(await works()).toEqual([401, 401, 401, 401]);
    await passOnChanges(database.db);
    expect((await setActive(scimId, true)).status).toBe(200);
    expect(await works()).toEqual([401, 200, 401, 200]);
  });

  test('a user that the directory deletes does not come back to life', async () => {
    const { browser, works } = await person('bob@example.com');
    const scimId = await provision('bob@example.com');
    expect((await setActive(scimId, false)).status).toBe(200);
    // Directories deactivate first, and delete weeks later.
    expect((await directory('DELETE', `Users/${scimId}`)).status).toBe(204);
    expect(await works()).toEqual([401, 401, 401, 401]);
    expect((await browser.signIn('bob@example.com')).status).toBe(403);
    await provision('bob@example.com');
    expect((await browser.signIn('bob@example.com')).status).toBe(200);
    expect(await works()).toEqual([200, 200, 200, 200]);
  });

  test('a user of two directories is active while one of them says so; a decommissioned one does not count', async () => {
    const { works } = await person('both@example.com');
    const first = await provision('both@example.com');
    await provision('both@example.com', `${TOKEN}-okta`);
    expect((await setActive(first, false)).status).toBe(200);
    expect(await works()).toEqual([200, 200, 200, 200]);
    const api = here.auth.api as unknown as Record<string, (given: object) => Promise<{ status: string }>>;
    expect(await api['decommissionSCIMConnection']?.({ body: { connectionId: 'okta' } })).toMatchObject({ status: 'complete' });
    expect(await works()).toEqual([401, 401, 401, 401]);
  });

  test('a ban counts for provisioned users, too', async () => {
    const { works, id } = await person('banned@example.com');
    await provision('banned@example.com');
    await database.db.query('update "user" set "banned" = $2 where "id" = $1', [id, database.dialect === 'sqlite' ? 1 : true]);
    expect(await works()).toEqual([401, 401, 401, 401]);
  });

  test('a token of the directory opens none of our routes', async () => {
    expect((await new Browser(here.app).get('/v1/who', { authorization: `Bearer ${TOKEN}` })).status).toBe(401);
  });
});
