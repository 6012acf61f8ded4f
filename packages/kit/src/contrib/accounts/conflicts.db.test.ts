import { afterAll, beforeAll, expect, test } from 'vitest';
import { createApp, migrateApp, type App } from '../../app/index.ts';
import { Controller, route } from '../../http/index.ts';
import { allowAny } from '../../permissions/index.ts';
import { describeDatabases } from '../../testing/databases.ts';
import { AccountController } from './serve/controller.ts';
import { accountsIdentities } from './login/identities.ts';
import { createLink } from './mail/links.ts';
import { createUser, requireUser } from './users/manage-users.ts';
import { accounts } from './module.ts';
import { openSession } from './login/open-session.ts';

const PASSWORD = 'correct horse battery';

class DoorController extends Controller {
  open = route.post('/', { permission: allowAny }, async ({ db, request, reply, client }) => {
    await openSession(db, await requireUser(db, 'ann'), { request, reply, client });
  });
}

/** Ends the first transaction that writes after `arm()`, as PostgreSQL does when it lost to another one. SQLite has one writer. */
const LOSING = [
  'create sequence lost',
  `create function lose() returns trigger language plpgsql as $$ begin
     if nextval('lost') = 1 then raise exception 'could not serialize access' using errcode = '40001'; end if;
     return new;
   end $$`,
  ...['users', 'sessions', 'user_identities', 'group_members'].map(
    (table) => `create trigger lose_${table} before insert or update on ${table} for each row execute function lose()`,
  ),
];

describeDatabases('account changes that lose to another transaction', (database) => {
  let app: App;
  let retries = 0;
  beforeAll(async () => {
    app = createApp({
      database: database.db,
      modules: [accounts({ passwordCost: { logN: 4, r: 8, p: 1 } })],
      mount: { '/v1': { '/account': AccountController, '/door': DoorController } },
      log: { level: 'silent' },
    });
    await migrateApp(app);
    await app.ready();
    await createUser(app.db, { username: 'ann', email: 'ann@example.com', password: PASSWORD });
    if (database.dialect === 'postgres') for (const sql of LOSING) await app.db.execute(sql);
    app.db.observe({ onRetry: () => (retries += 1) });
  });
  afterAll(() => app.close());

  const arm = async () => {
    retries = 0;
    await app.db.query(`select setval('lost', 1, false)`);
  };
  const post = async (url: string, payload: object, headers: Record<string, string> = {}) => {
    const response = await app.inject({ method: 'POST', url, payload, headers: { host: 'api.example.com', ...headers } });
    return { status: response.statusCode, body: response.body, cookie: String(response.headers['set-cookie'] ?? '').split(';')[0] ?? '' };
  };

  test('are run again: login, password, links, sessions and identities', async () => {
    if (database.dialect === 'sqlite') return;
    await arm();
    const login = await post('/v1/account/login', { login: 'ann', password: PASSWORD });
    expect([login.status, retries]).toEqual([200, 1]);

    const { csrf_token: token } = JSON.parse(login.body) as { csrf_token: string };
    await arm();
    const changed = await post(
      '/v1/account/password',
      { current_password: PASSWORD, new_password: 'another horse battery' },
      { cookie: login.cookie, 'x-csrf-token': token },
    );
    expect([changed.status, retries, changed.status === 200 ? '' : changed.body]).toEqual([200, 1, '']);

    const user = await requireUser(app.db, 'ann');
    const { token: link } = await createLink(app.db, user, 'reset');
    await arm();
    const reset = await post('/v1/account/reset/confirm', { token: link, password: PASSWORD });
    expect([reset.status, retries, reset.body]).toEqual([204, 1, '']);

    await arm();
    expect([(await post('/v1/door', {})).status, retries]).toEqual([204, 1]);

    const identity = { issuer: 'https://id.example.com', subject: 'zoe-1' };
    await arm();
    const provisioned = await accountsIdentities.provision(app.db, {
      ...identity,
      username: 'zoe',
      email: null,
      emailVerified: false,
      linkVerifiedEmail: false,
    });
    expect([provisioned.username, retries]).toEqual(['zoe', 1]);

    await arm();
    await accountsIdentities.applyGroups(app.db, provisioned, { ...identity, names: ['staff'], digest: 'd', issuedAt: new Date() });
    expect(retries).toBe(1);
  });
});
