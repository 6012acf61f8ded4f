import { afterAll, beforeAll, expect, test } from 'vitest';
import { accounts, users } from '../../src/contrib/accounts/index.ts';
import { readStats } from '../../src/contrib/webhooks/delivery/maintenance-store.ts';
import { deliverDue } from '../../src/contrib/webhooks/delivery/deliver.ts';
import { unreachableEvents } from '../../src/contrib/webhooks/unreachable-events.ts';
import { publish, TenantWebhookController, WebhookEndpointController, webhooks } from '../../src/contrib/webhooks/index.ts';
import { CrudController, resource } from '../../src/crud/index.ts';
import { createTable, insert, migration, model, t } from '../../src/db/index.ts';
import { createApp, isAuthenticated, type AppOptions } from '../../src/index.ts';
import { describeDatabases, fakeClock, testApp, type TestApp } from '../../src/testing/index.ts';
import { LOOPBACK } from './loopback.ts';
import { startReceiver, type Receiver } from './receiver.ts';

const ADA = '01890000-0000-7000-8000-00000000000a';
const BOB = '01890000-0000-7000-8000-00000000000b';

const columns = { id: t.uuidv7().pk(), team: t.text(40).readOnly(), author_id: t.uuid().readOnly(), title: t.text(200) };
const indexes = { indexes: [{ columns: ['team', 'author_id', '-id'] }] };
const [notes, drafts, shared] = [model('notes', columns, indexes), model('drafts', columns, indexes), model('shared', columns, indexes)];
const tables = migration('0001_initial', [
  createTable('notes', columns, indexes),
  createTable('drafts', columns, indexes),
  createTable('shared', columns, indexes),
]);

const noteResource = resource(notes, {
  tenant: 'team',
  hooks: { create: ({ input, user }, next) => next({ ...input, author_id: user?.id ?? '' }) },
  events: true,
});
const draftResource = resource(drafts, { tenant: 'team', owner: 'author_id', events: true });
const sharedResource = resource(shared, { tenant: 'team', owner: 'author_id', events: 'tenant' });
class Shared extends CrudController(sharedResource, { permission: isAuthenticated }) {}
class Notes extends CrudController(noteResource, { permission: isAuthenticated }) {}
class Drafts extends CrudController(draftResource, { permission: isAuthenticated }) {}

const owned = model('owned', { id: t.uuidv7().pk(), owner_id: t.uuid().readOnly() }, { indexes: [{ columns: ['owner_id', '-id'] }] });
const permission = isAuthenticated;
class Own extends CrudController(resource(owned, { name: 'own', owner: 'owner_id', events: true }), { permission }) {}
class Silent extends CrudController(resource(owned, { owner: 'owner_id' }), { permission }) {}
const choose = () => ({ type: 'a.b', data: {}, audience: { broadcast: true } }) as const;
class Choosing extends CrudController(resource(owned, { owner: 'owner_id', events: choose }), { permission }) {}

class TeamHooks extends WebhookEndpointController {
  static override readonly tenantField = 'tenant_key';
}
/** Endpoints of the company that a team belongs to. */
class CompanyHooks extends TeamHooks {
  override tenantKey(): string {
    return 'company';
  }
}

const clock = fakeClock('2026-03-01T12:00:00.000Z');
const teamOf: AppOptions['tenant'] = ({ headers }) => (typeof headers['x-team'] === 'string' ? headers['x-team'] : null);

describeDatabases(
  'events of tenants',
  (database) => {
    let app: TestApp;
    let receiver: Receiver;
    beforeAll(async () => {
      receiver = await startReceiver();
      app = await testApp({
        database: database.db,
        clock,
        tenant: teamOf,
        modules: [
          accounts(),
          webhooks({ urlPolicy: LOOPBACK, jitter: false }),
          { name: 'notes', models: [notes, drafts, shared], migrations: [tables] },
        ],
        mount: {
          '/v1': {
            '/notes': Notes,
            '/drafts': Drafts,
            '/shared': Shared,
            '/hooks': TeamHooks,
            '/company': CompanyHooks,
            '/personal': WebhookEndpointController,
          },
        },
        async prepare({ db }) {
          for (const [id, username] of [
            [ADA, 'ada'],
            [BOB, 'bob'],
          ] as const)
            await insert(db, users, { id, username });
        },
      });
    });
    afterAll(async () => {
      await app.close();
      await receiver.close();
    });
    const as = (id: string, team: string | null) => {
      const client = app.as({ id });
      return (url: string, body: object) => client.post(url, body, team === null ? {} : { 'x-team': team });
    };
    const hook = async (path: string, id: string, team: string | null, name: string): Promise<void> => {
      const { statusCode, body } = await as(id, team)(path, { url: receiver.url(`/${name}`), events: ['*'] });
      expect([statusCode, body]).toEqual([201, expect.any(String)]);
    };
    /** Where the events of a change arrive. */
    const arrived = async (change: () => Promise<unknown>): Promise<string[]> => {
      const before = receiver.received.length;
      await change();
      await deliverDue(database.db);
      return receiver.received
        .slice(before)
        .map(({ path, body }) => `${path.slice(1)} ${(JSON.parse(body) as { type: string }).type}`)
        .toSorted();
    };
    const created = async (url: string, id: string, team: string) => expect((await as(id, team)(url, { title: 'A' })).statusCode).toBe(201);

    test("the tenant of the app is the tenant of the endpoints: a row's event arrives at endpoints of its tenant, and of its owner where it has one", async () => {
      await hook('/v1/hooks', ADA, 'north', 'ada-north');
      await hook('/v1/hooks', BOB, 'north', 'bob-north');
      await hook('/v1/hooks', ADA, 'south', 'ada-south');
      await hook('/v1/personal', ADA, 'north', 'ada');
      expect(await arrived(() => created('/v1/notes', ADA, 'north'))).toEqual(['ada-north note.created', 'bob-north note.created']);
      expect(await arrived(() => created('/v1/drafts', ADA, 'north'))).toEqual(['ada-north draft.created']);
      expect(await arrived(() => created('/v1/drafts', BOB, 'south'))).toEqual([]);
      // events: 'tenant': whoever owns the row.
      expect(await arrived(() => created('/v1/shared', BOB, 'south'))).toEqual(['ada-south shared.created']);
    });

    test('an override of tenantKey() wins', async () => {
      await hook('/v1/company', ADA, null, 'company');
      const toCompany = () => database.db.transaction((tx) => publish(tx, 'report.made', {}, { tenantKey: 'company' }));
      expect(await arrived(toCompany)).toEqual(['company report.made']);
    });

    test('403 tenant_required: a caller without a tenant has no endpoints of one', async () => {
      const { statusCode, body } = await as(ADA, null)('/v1/hooks', { url: receiver.url('/none'), events: ['*'] });
      expect([statusCode, (JSON.parse(body) as { code: string }).code]).toEqual([403, 'tenant_required']);
    });

    test('statistics count the events whose audience has no endpoint, whatever endpoints subscribe to', async () => {
      const count = async () => (await readStats(database.db, clock.now())).events_without_endpoint;
      const before = await count();
      await database.db.transaction(async (tx) => {
        await publish(tx, 'a.b', {}, { tenantKey: 'north' });
        await publish(tx, 'a.b', {}, { owner: ADA });
        await publish(tx, 'a.b', {}, { owner: ADA, tenantKey: 'north' });
        await publish(tx, 'a.b', {}, { broadcast: true });
      });
      expect(await count()).toBe(before);
      await database.db.transaction(async (tx) => {
        await publish(tx, 'a.b', {}, { tenantKey: 'east' });
        await publish(tx, 'a.b', {}, { owner: BOB });
        await publish(tx, 'a.b', {}, { owner: BOB, tenantKey: 'south' });
      });
      expect(await count()).toBe(before + 3);
    });
  },
  { database: { clock } },
);

const app = (mount: object, { tenant = teamOf }: { readonly tenant?: AppOptions['tenant'] | null } = {}) =>
  createApp({
    database: 'sqlite::memory:',
    ...(tenant === null ? {} : { tenant }),
    modules: [accounts(), webhooks()],
    mount: { '/v1': mount as Record<string, typeof WebhookEndpointController> },
  });

test('a controller of tenant endpoints in an app that cannot tell the tenant does not start', () => {
  const message = /E013.+TeamHooks has tenantField, but createApp has no `tenant` option/s;
  expect(() => app({ '/hooks': TeamHooks }, { tenant: null })).toThrow(message);
  expect(() => app({ '/hooks': CompanyHooks }, { tenant: null })).not.toThrow();
});

const warned = (mount: object) => unreachableEvents(app(mount)).map(({ id, message, hint }) => [id, message, hint]);
const programs = 'Endpoints that the admin site or a program creates receive the events without it.';

test('W022: events of a tenant beside personal endpoints only are reported with both ends and the line to write', () => {
  const line = "Mount class TenantWebhooks extends WebhookEndpointController { static override readonly tenantField = 'tenant_key'; }";
  const message = 'publishes its events to endpoints of a tenant, and WebhookEndpointController has personal endpoints only.';
  expect(warned({ '/notes': Notes, '/drafts': Drafts, '/hooks': WebhookEndpointController })).toEqual([
    ['W022', `resource(note) ${message}`, `Mount '/tenant-webhooks': TenantWebhookController. ${programs}`],
    ['W022', `resource(draft) ${message.replace('endpoints of a tenant', "a user's endpoints in a tenant")}`, `${line}. ${programs}`],
  ]);
  expect(warned({ '/notes': Notes, '/hooks': WebhookEndpointController, '/team': TeamHooks })).toEqual([]);
  expect(warned({ '/notes': Notes, '/hooks': TenantWebhookController })).toEqual([]);
  // What is for one user in a tenant does not reach the endpoints of the tenant itself.
  const [[, , hint = ''] = []] = warned({ '/drafts': Drafts, '/hooks': TenantWebhookController });
  expect(hint).toBe(`Set events: 'tenant' for the endpoints of the tenant. Or: ${line[0]?.toLowerCase()}${line.slice(1)}. ${programs}`);
  expect(warned({ '/shared': Shared, '/hooks': TenantWebhookController })).toEqual([]);
});

test('W022: events of an owner beside endpoints of tenants only, and events without any controller of endpoints', () => {
  const personal = (end: string) => [
    'W022',
    `resource(own) publishes its events to personal endpoints, and ${end}.`,
    `Mount '/webhooks': WebhookEndpointController. ${programs}`,
  ];
  expect(warned({ '/own': Own, '/team': TeamHooks, '/company': CompanyHooks })).toEqual([
    personal('TeamHooks and CompanyHooks have endpoints of a tenant only'),
  ]);
  expect(warned({ '/own': Own })).toEqual([personal('no controller of webhook endpoints is mounted')]);
  expect(warned({ '/own': Own, '/hooks': WebhookEndpointController })).toEqual([]);
});

test('W022: controllers of another database do not count', () => {
  class Elsewhere extends WebhookEndpointController {
    static override readonly using = 'reports';
  }
  expect(warned({ '/own': Own, '/hooks': Elsewhere })).toHaveLength(1);
});

test('W022: a resource that publishes nothing, or chooses the audience of each event, is left alone', () => {
  expect(warned({ '/own': Silent })).toEqual([]);
  expect(warned({ '/own': Choosing })).toEqual([]);
});
