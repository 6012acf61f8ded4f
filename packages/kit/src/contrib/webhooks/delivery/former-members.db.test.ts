import { afterEach, beforeEach, expect, test } from 'vitest';
import { LOOPBACK } from '../../../../test/webhooks/outbox.ts';
import { type Receiver, startReceiver } from '../../../../test/webhooks/receiver.ts';
import type { AppOptions } from '../../../app/declare/options.ts';
import type { User } from '../../../auth/people/principal.ts';
import { createTable } from '../../../db/migrations/operation.ts';
import { migration } from '../../../db/migrations/migration.ts';
import { model } from '../../../db/declare/model.ts';
import { t } from '../../../db/declare/column.ts';
import { countQueries } from '../../../db/engine/query-observer.ts';
import type { HandlerContext } from '../../../http/declare/handler-context.ts';
import { describeDatabases } from '../../../testing/databases.ts';
import { testApp, type TestApp } from '../../../testing/test-app.ts';
import { accounts, accountsOf, createUser, deactivateUser, deleteUser } from '../../accounts/index.ts';
import { WebhookEndpointController } from '../controller.ts';
import { createEndpoint } from '../endpoints/create-endpoint.ts';
import { webhooks } from '../module.ts';
import { publish } from '../publishing/publish.ts';
import type { WebhookDelivery, WebhookEndpoint } from '../endpoints/store.ts';
import { recoverEndpoint } from '../maintain/recover.ts';
import { retryDelivery } from '../maintain/retry.ts';
import { deliverDue } from './deliver.ts';

const members = model('members', { id: t.uuidv7().pk(), tenant: t.text(40), user_id: t.uuid(), role: t.text(40) });
const team = { name: 'team', models: [members], migrations: [migration('0001_initial', [createTable('members', members.columns)])] };
const tenant: AppOptions['tenant'] = ({ headers }) => headers['x-tenant']?.toString() ?? null;
const membership: AppOptions['membership'] = async ({ user, tenant: asked, db }) => {
  const [row] = await db.query<{ role: string }>('select role from members where tenant = $1 and user_id = $2', [asked, user.id]);
  return row === undefined ? null : { roles: [row.role] };
};
const memberships: AppOptions['memberships'] = async (db, asked) => {
  const rows = await db.query<{ tenant: string; user_id: string; role: string }>('select tenant, user_id, role from members');
  return asked.map((each) => {
    const row = rows.find((member) => member.tenant === each.tenant && member.user_id === each.userId);
    return row === undefined ? null : { roles: [row.role] };
  });
};

class Endpoints extends WebhookEndpointController {
  static override readonly tenantField = 'tenant_key';
  override async tenantKey({ caller }: HandlerContext<unknown, unknown, unknown, unknown, User>): Promise<string | null> {
    return (await caller()).tenant;
  }
}

describeDatabases('webhook endpoints of people who lost their rights', (database) => {
  let receiver: Receiver;
  let kit: TestApp;
  beforeEach(async () => void (receiver = await startReceiver()));
  afterEach(async () => {
    await kit.close();
    await receiver.close();
    for (const table of ['members', 'webhook_endpoints', 'webhook_events', 'users', 'kit_deleted_users'])
      await database.db.query(`delete from ${table}`);
  });

  const start = async (options: Pick<AppOptions, 'tenant' | 'membership' | 'memberships'>) => {
    kit = await testApp({
      database: database.db,
      modules: [accounts({ passwordCost: { logN: 4, r: 8, p: 1 } }), webhooks({ urlPolicy: LOOPBACK, jitter: false }), team],
      mount: { '/v1': { '/webhooks': Endpoints } },
      ...options,
    });
  };
  const member = async (username: string, tenants = ['acme']) => {
    const user = await createUser(database.db, { username }, accountsOf(database.db).management(null));
    for (const name of tenants)
      await database.db.query('insert into members (id, tenant, user_id, role) values ($1, $2, $3, $4)', [
        crypto.randomUUID(),
        name,
        user.id,
        'member',
      ]);
    return user;
  };
  const subscribe = (user: User, path: string, name = 'acme') =>
    kit.as(user).post('/v1/webhooks', { url: receiver.url(path), events: ['*'], description: '' }, { 'x-tenant': name });
  const announce = (name = 'acme') => database.db.transaction((tx) => publish(tx, 'order.paid', { n: 1 }, { tenantKey: name }));
  const failed = () =>
    database.db.query<WebhookDelivery>("select last_error, failure_reason, attempts from webhook_deliveries where status = 'failed'");
  const count = (path: string) => receiver.of(path).length;

  for (const [name, options] of Object.entries({ membership: { tenant, membership }, memberships: { tenant, memberships } }))
    test(`receive nothing once the owner is removed from the tenant, with ${name}; other members do`, async () => {
      await start(options);
      const [ann, bob] = [await member('ann', ['acme', 'other']), await member('bob')];
      for (const response of [await subscribe(ann, '/ann'), await subscribe(bob, '/bob'), await subscribe(ann, '/ann-other', 'other')])
        expect(response.statusCode).toBe(201);
      await announce();
      await deliverDue(database.db);
      expect([count('/ann'), count('/bob')]).toEqual([1, 1]);
      // What waits from before is not sent either.
      await announce();
      await announce('other');
      await database.db.query("delete from members where user_id = $1 and tenant = 'acme'", [ann.id]);
      expect((await kit.as(ann).get('/v1/webhooks', { 'x-tenant': 'acme' })).statusCode).toBe(403);
      await deliverDue(database.db);
      expect([count('/ann'), count('/bob'), count('/ann-other')]).toEqual([1, 2, 1]);
      expect(await failed()).toEqual([
        { last_error: 'The owner of the endpoint is not a member of its tenant.', failure_reason: 'audience_changed', attempts: 0 },
      ]);
    });

  test('a batch of deliveries asks for its users with one statement and for their memberships with one', async () => {
    await start({ tenant, memberships });
    for (const name of ['ann', 'bob', 'cid', 'dan']) await subscribe(await member(name), `/${name}`);
    await announce();
    const { queries } = await countQueries(() => deliverDue(database.db));
    expect(receiver.received).toHaveLength(4);
    expect(queries.filter(({ sql }) => sql.includes('"users"'))).toHaveLength(1);
    expect(queries.filter(({ sql }) => sql.includes('from members'))).toHaveLength(1);
    expect(queries.filter(({ sql }) => sql.includes('kit_deleted_users'))).toHaveLength(0);
  });

  test('an endpoint that was created while its owner was being deleted receives nothing; that of an owner who never was a user does', async () => {
    await start({ tenant, membership });
    const ann = await member('ann');
    await deleteUser(database.db, ann.id, accountsOf(database.db).management(null));
    for (const owner of [ann.id, '01890000-0000-7000-8000-00000000000a'])
      await database.db.transaction((tx) =>
        createEndpoint(tx, { owner, tenantKey: 'acme', url: receiver.url(`/${owner}`), events: ['*'] }),
      );
    await announce();
    await deliverDue(database.db);
    expect(receiver.received.map(({ path }) => path)).toEqual(['/01890000-0000-7000-8000-00000000000a']);
    expect(await failed()).toMatchObject([{ last_error: 'The owner of the endpoint was deleted.' }]);
  });

  test('nothing is queued again for an endpoint whose owner was removed: recovering and retrying say why', async () => {
    await start({ tenant, membership });
    const ann = await member('ann');
    expect((await subscribe(ann, '/ann')).statusCode).toBe(201);
    await announce();
    await database.db.query("delete from members where user_id = $1 and tenant = 'acme'", [ann.id]);
    await deliverDue(database.db);
    const [delivery] = await database.db.query<WebhookDelivery>('select * from webhook_deliveries');
    const [endpoint] = await database.db.query<WebhookEndpoint>('select * from webhook_endpoints');
    if (delivery === undefined || endpoint === undefined) throw new Error('there is no delivery');
    const refused = { code: 'endpoint_owner_not_allowed', detail: 'The owner of the endpoint is not a member of its tenant.' };
    const since = new Date(0);
    await expect(database.db.transaction((tx) => recoverEndpoint(tx, endpoint, since))).rejects.toMatchObject(refused);
    await expect(database.db.transaction((tx) => retryDelivery(tx, delivery.id))).rejects.toMatchObject(refused);
    await database.db.query("insert into members (id, tenant, user_id, role) values ($1, 'acme', $2, 'member')", [
      crypto.randomUUID(),
      ann.id,
    ]);
    expect(await database.db.transaction((tx) => recoverEndpoint(tx, endpoint, since))).toMatchObject({ requeued: 1 });
    await deliverDue(database.db);
    expect(count('/ann')).toBe(1);
  });

  test('nothing is sent while the memberships cannot be read, and everything after', async () => {
    let isDown = false;
    await start({
      tenant,
      membership: (asked) => {
        if (isDown) throw new Error('down');
        return membership(asked);
      },
    });
    await subscribe(await member('ann'), '/ann');
    await announce();
    isDown = true;
    await expect(deliverDue(database.db)).rejects.toThrow('down');
    expect(count('/ann')).toBe(0);
    isDown = false;
    await deliverDue(database.db);
    expect(count('/ann')).toBe(1);
  });

  test.each([
    ['fails', () => Promise.reject(new Error('the directory of acme is down'))],
    ['hangs', () => new Promise<never>(() => undefined)],
  ])(
    'a membership that %s delays the deliveries of its own user only, which are sent once it is known again',
    async (_name, answer) => {
      let isDown = false;
      await start({
        tenant,
        membership: (asked) => (isDown && asked.tenant === 'acme' ? answer() : membership(asked)),
      });
      await subscribe(await member('ann'), '/ann');
      await subscribe(await member('bob', ['other']), '/bob', 'other');
      isDown = true;
      await announce();
      await announce('other');
      await deliverDue(database.db);
      expect([count('/ann'), count('/bob')]).toEqual([0, 1]);
      expect(await failed()).toEqual([]);
      isDown = false;
      await deliverDue(database.db);
      expect([count('/ann'), count('/bob')]).toEqual([1, 1]);
    },
    60_000,
  );

  const warnings = () => kit.records.flatMap(({ check, msg }) => (check === 'W031' ? [msg] : []));

  test('where only an access token has the membership, deliveries go on, and startup says so unless the app does', async () => {
    const ofToken: AppOptions['membership'] = ({ principal }) =>
      (principal.claims as { org?: string } | undefined)?.org === undefined ? null : { roles: [] };
    const cases: [Pick<AppOptions, 'tenant' | 'membership' | 'memberships'>, string][] = [
      [{ tenant }, '`tenant` without `membership` or `memberships`'],
      [{ tenant, membership: ofToken }, '`membership` reads the claims'],
      [{ tenant, membership: ofToken, memberships: 'not known' }, ''],
      [{ tenant, membership }, ''],
      [{}, ''],
    ];
    for (const [index, [options, warning]] of cases.entries()) {
      if (index > 0) await kit.close();
      await start(options);
      await kit.app.start();
      expect(warnings().length).toBe(warning === '' ? 0 : 1);
      expect(warnings().join()).toContain(warning);
      const effects = warning === '' ? '' : 'until they are deleted; API keys are not affected';
      expect(warnings().join()).toContain(effects);
      if (options.membership === membership) continue;
      const ann = await member(`ann${index}`, []);
      await database.db.transaction((tx) =>
        createEndpoint(tx, { owner: ann.id, tenantKey: `t${index}`, url: receiver.url(`/${index}`), events: ['*'] }),
      );
      await announce(`t${index}`);
      await deliverDue(database.db);
      expect(count(`/${index}`)).toBe(1);
      await deactivateUser(database.db, ann.id);
      await announce(`t${index}`);
      await deliverDue(database.db);
      expect(count(`/${index}`)).toBe(1);
    }
  });
});
