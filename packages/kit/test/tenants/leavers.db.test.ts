import { globSync } from 'node:fs';
import { get, type IncomingMessage, request as openRequest } from 'node:http';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { admin } from '../../src/admin/index.ts';
import type { Module } from '../../src/app/index.ts';
import type { User } from '../../src/auth/index.ts';
import { apiKeys, createApiKey } from '../../src/contrib/apikeys/index.ts';
import { createServiceUser } from '../../src/contrib/apikeys/service/manage-service-users.ts';
import { job, jobs, runDueJobs, startJob } from '../../src/contrib/jobs/index.ts';
import { mcp } from '../../src/contrib/mcp/index.ts';
import {
  createEndpoint,
  deliverDue,
  publish,
  retryDelivery,
  WebhookEndpointController,
  webhooks,
} from '../../src/contrib/webhooks/index.ts';
import { CrudController, resource } from '../../src/crud/index.ts';
import { createTable, type Database, migration, model, t, type Model } from '../../src/db/index.ts';
import { Controller, jsonSchema, type Middleware, route } from '../../src/http/index.ts';
import { portal, portalLink } from '../../src/portal/index.ts';
import { responseCache } from '../../src/middleware/index.ts';
import { all, hasRole, hasScopes, isAuthenticated } from '../../src/permissions/index.ts';
import { describeDatabases } from '../../src/testing/databases.ts';
import { testApp, type TestApp } from '../../src/testing/test-app.ts';
import { siteFolder } from '../admin/admin-app.ts';
import { LOOPBACK } from '../webhooks/outbox.ts';
import { type Receiver, startReceiver } from '../webhooks/receiver.ts';
import { type SessionHeaders, TENANT, type Way, WAYS } from './leaver-ways.ts';

// Everything that a person set up, or has open, while the person had a right; asked again after the right was lost.

/** By the names of both logins. */
const LEADS = ['lead', 'admin'] as const;

const memberColumns = { id: t.uuidv7().pk(), tenant: t.text(40), user_id: t.uuid(), role: t.text(40) };
const members = model('members', memberColumns, { indexes: [{ columns: ['user_id', 'tenant'], unique: true }] });
const paperColumns = { id: t.uuidv7().pk(), tenant: t.text(40).readOnly(), title: t.text(80) };
const papers = model('papers', paperColumns, { indexes: [{ columns: ['tenant', '-id'] }] });
const volumeColumns = { id: t.int().pk(), tenant: t.text(40).readOnly(), text: t.text() };
const volumes = model('volumes', volumeColumns, { indexes: [{ columns: ['tenant', 'id'] }] });
const tables: Module = {
  name: 'papers',
  portal: {
    pages: [
      { resource: 'paper', name: 'papers', label: 'Papers', singular: 'paper', group: 'Papers', title: 'title', columns: ['title'] },
      { resource: 'volume', name: 'volumes', label: 'Volumes', singular: 'volume', group: 'Papers', title: 'id', columns: ['id', 'text'] },
    ],
  },
  models: [members, papers, volumes],
  migrations: [
    migration('0001_initial', [
      createTable('members', memberColumns, { indexes: [{ columns: ['user_id', 'tenant'], unique: true }] }),
      createTable('papers', paperColumns, { indexes: [{ columns: ['tenant', '-id'] }] }),
      createTable('volumes', volumeColumns, { indexes: [{ columns: ['tenant', 'id'] }] }),
    ]),
  ],
};

/** An import of such a title waits here when its file is read, before anything is written. */
const held = new Map<unknown, { readonly reached: PromiseWithResolvers<void>; readonly goesOn: PromiseWithResolvers<void> }>();

const paperResource = resource(papers, {
  tenant: 'tenant',
  async validate({ input }) {
    const { reached, goesOn } = held.get(input.title) ?? {};
    reached?.resolve();
    await goesOn?.promise;
    return [];
  },
});

class Papers extends CrudController(paperResource, {
  permission: all(hasRole(...LEADS), hasScopes({ allowUnscoped: true })),
  scope: 'papers',
  live: true,
  export: ['csv'],
  import: { formats: ['csv'] },
  operations: { list: { tool: true } },
}) {}

/** An export of more than the buffers of a loopback connection, which no time limit ends. */
class Volumes extends CrudController(resource(volumes, { tenant: 'tenant' }), {
  permission: hasRole(...LEADS),
  export: { formats: ['csv'], idleMs: 600_000 },
}) {}
const FILL_VOLUMES = {
  postgres: `insert into volumes select n, '${TENANT}', repeat('x', 4000) from generate_series(1, 5000) n`,
  sqlite: `with recursive each(n) as (select 1 union all select n + 1 from each where n < 5000)
    insert into volumes select n, '${TENANT}', printf('%.*c', 4000, 'x') from each`,
} as const;

/** The endpoints of the tenant, which leads manage together. */
class Hooks extends WebhookEndpointController {
  static override readonly permission = hasRole(...LEADS);
  static override readonly tenantField = 'tenant_key';
  static override readonly tenantOwned = true;
  static override readonly liveDeliveries = true;
}

const isLead = (roles: readonly string[] | undefined) => LEADS.some((lead) => roles?.includes(lead) === true);

/** Hand-written: who is not a lead gets a response, without the secret. */
class Plans extends Controller {
  plan = route.get('/', { permission: isAuthenticated, response: jsonSchema<object>({}) }, async ({ caller }) =>
    isLead((await caller()).membership?.roles) ? { secret: 'plan' } : {},
  );
  decide = route.post(
    '/',
    { permission: isAuthenticated, atomic: true, idempotent: true, response: jsonSchema<object>({}) },
    async ({ caller }) => (isLead((await caller()).membership?.roles) ? { secret: 'plan' } : {}),
  );
  follow = route.stream(
    '/follow',
    { permission: hasRole(...LEADS), response: jsonSchema<object>({}), heartbeatMs: 20 },
    async function* ({ signal }) {
      yield { data: { secret: 'plan' } };
      await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)));
    },
  );
}

let admittedImports = 0;
const countImports: Middleware = {
  name: 'count_imports',
  appliesTo: ({ field }) => field === 'import',
  onAdmitted: () => void (admittedImports += 1),
};

/** The event that an endpoint of the tenant received before anybody left. */
const TOLD = 'paper.told';

const ran = new Set<string>();
const report = job('papers.report', {
  input: z.object({ for: z.string() }),
  actsForOwner: true,
  run: ({ input }) => void ran.add(input.for),
});

/** What a person has: `cookie` and `csrf` of a session, and an API key. */
interface Leaver {
  readonly user: User;
  readonly session: SessionHeaders;
  readonly key: Readonly<Record<string, string>>;
}

/** Set up while the person has the right. The function it returns says whether something reaches the person now. */
type Exit = (leaver: Leaver, place: Place) => Promise<(expected: boolean) => Promise<boolean>>;

interface Place {
  readonly kit: TestApp;
  readonly url: string;
  readonly receiver: Receiver;
  readonly way: Way;
  /** Another member, who stays. */
  readonly other: SessionHeaders;
  /** The id of an endpoint of the tenant, which has a delivery. */
  readonly hook: string;
}

const isServed = async (
  { kit }: Pick<Place, 'kit'>,
  method: 'GET' | 'POST',
  url: string,
  headers: object,
  payload?: object,
): Promise<boolean> => {
  const response = await kit.inject({
    method,
    url,
    headers: { ...headers, 'x-tenant': TENANT },
    ...(payload === undefined ? {} : { payload }),
  });
  expect([200, 201, 401, 403]).toContain(response.statusCode);
  return response.statusCode < 300;
};

const request =
  (method: 'GET' | 'POST', path: string, credential: 'session' | 'key', payload?: object): Exit =>
  async (leaver, place) => {
    const send = () => isServed(place, method, path, leaver[credential], payload);
    await send();
    return send;
  };

/** The secret of a hand-written response, which everybody may ask for. */
const secret =
  (method: 'GET' | 'POST'): Exit =>
  async ({ session, user }, { kit }) => {
    const send = async () => {
      const headers = { ...session, 'x-tenant': TENANT, ...(method === 'POST' ? { 'idempotency-key': user.id } : {}) };
      return (await kit.inject({ method, url: '/v1/plans', headers })).body.includes('secret');
    };
    await send();
    return send;
  };

let openings = 0;

/** The token of the session that a link opens in a frame; null where it opens none. From an address of its own: one can open a few in a minute. */
const opened = async (kit: TestApp, token: string): Promise<string | null> => {
  openings += 1;
  const remoteAddress = `10.0.${openings >> 8}.${openings & 255}`;
  const response = await kit.inject({ method: 'POST', url: '/portal/link', remoteAddress, payload: { token, framed: true } });
  expect([200, 410]).toContain(response.statusCode);
  return response.statusCode === 200 ? response.json<{ token: string }>().token : null;
};

const seesPapers = async (kit: TestApp, token: string | null): Promise<boolean> => {
  if (token === null) return false;
  const response = await kit.inject({ url: '/portal/api/resources/papers', headers: { 'x-portal-session': token } });
  expect([200, 401, 403]).toContain(response.statusCode);
  return response.statusCode === 200;
};

/** A page of the portal, which the person has opened with a link or a login: whether it shows the event of the tenant. */
const portalPage =
  (by: 'link' | 'login', path: string): Exit =>
  async ({ session, user }, { kit }) => {
    const token = by === 'link' ? await opened(kit, (await portalLink(kit.app.db, { user, tenant: TENANT })).token) : null;
    const headers = token === null ? { ...session, 'x-tenant': TENANT } : { 'x-portal-session': token };
    const ask = async () => {
      const response = await kit.inject({ url: `/portal/api/${path}`, headers });
      expect([200, 401, 403]).toContain(response.statusCode);
      return response.body.includes(TOLD);
    };
    await ask();
    return ask;
  };

/** Still open after several looks counts as open. */
async function staysOpen(isOpen: () => boolean, expected: boolean): Promise<boolean> {
  try {
    await vi.waitUntil(() => !isOpen(), { timeout: expected ? 1500 : 30_000, interval: 20 });
    return false;
  } catch {
    return true;
  }
}

/** A stream of events, which somebody reads. */
async function followed({ url }: Place, path: string, credential: SessionHeaders): ReturnType<Exit> {
  const closing = new AbortController();
  const headers = { ...credential, accept: 'text/event-stream' };
  const response = await fetch(`${url}${path}`, { headers, signal: closing.signal });
  expect(response.status).toBe(200);
  let isOpen = true;
  const read = (async () => {
    try {
      for await (const _ of response.body ?? []);
    } catch {
      // Ended, by the server or at the end of the test.
    }
    isOpen = false;
  })();
  return async (expected) => {
    const reached = await staysOpen(() => isOpen, expected);
    closing.abort();
    await read;
    return reached;
  };
}

/** A file of which the client takes nothing, so that it does not end. */
async function halfRead({ kit, url }: Place, path: string, headers: SessionHeaders): ReturnType<Exit> {
  const served = new Promise<Socket>((resolve) => kit.app.fastify.server.once('connection', resolve));
  const message = await new Promise<IncomingMessage>((resolve, reject) => {
    get(`${url}${path}`, { headers, agent: false }, resolve).on('error', reject);
  });
  expect(message.statusCode).toBe(200);
  message.on('error', () => undefined);
  // The client does not see that the server has closed the connection.
  const connection = await served;
  return async (expected) => {
    const reached = await staysOpen(() => !connection.destroyed, expected);
    message.destroy();
    return reached;
  };
}

const EXITS: Readonly<Record<string, Exit>> = {
  list: request('GET', '/v1/papers', 'session'),
  read: async (leaver, place) => {
    const made = await place.kit.inject({
      method: 'POST',
      url: '/v1/papers',
      headers: { ...leaver.session, 'x-tenant': TENANT },
      payload: { title: 'Plan' },
    });
    return request('GET', `/v1/papers/${made.json<{ id: string }>().id}`, 'session')(leaver, place);
  },
  write: request('POST', '/v1/papers', 'session', { title: 'Plan' }),
  export: request('GET', '/v1/papers/export?format=csv', 'session'),
  'export under way': ({ session }, place) => halfRead(place, '/v1/volumes/export?format=csv', { ...session, 'x-tenant': TENANT }),
  'import under way': async ({ session, user }, { kit, url }) => {
    const before = admittedImports;
    const headers = { ...session, 'x-tenant': TENANT, 'content-type': 'text/csv' };
    const sent = openRequest(`${url}/v1/papers/import`, { method: 'POST', headers, agent: false });
    const answered = new Promise<number>((resolve, reject) => {
      sent.on('response', (message) => resolve(message.resume().statusCode ?? 0)).on('error', reject);
    });
    sent.write(`title\n${user.id}\n`);
    await vi.waitUntil(() => admittedImports > before, { timeout: 30_000, interval: 20 });
    return async (expected) => {
      // The rest of the file comes when the right is lost, or never.
      if (expected) sent.end();
      expect(expected ? [201] : [401, 403]).toContain(await answered);
      sent.destroy();
      return (await kit.app.db.query('select id from papers where title = $1', [user.id])).length > 0;
    };
  },
  'import that is written': async ({ session, user }, { kit, url }) => {
    const [reached, goesOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    held.set(user.id, { reached, goesOn });
    const headers = { ...session, 'x-tenant': TENANT, 'content-type': 'text/csv' };
    const answered = fetch(`${url}/v1/papers/import`, { method: 'POST', headers, body: `title\n${user.id}\n` });
    await reached.promise;
    return async (expected) => {
      goesOn.resolve();
      expect(expected ? [201] : [401, 403]).toContain((await answered).status);
      return (await kit.app.db.query('select id from papers where title = $1', [user.id])).length > 0;
    };
  },
  key: request('GET', '/v1/papers', 'key'),
  cache: secret('GET'),
  'idempotent replay': secret('POST'),
  MCP:
    async ({ key }, { kit }) =>
    async () => {
      const headers = { ...key, host: 'localhost', accept: 'application/json, text/event-stream', 'x-tenant': TENANT };
      const payload = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'papers_list', arguments: {} } };
      return (await kit.inject({ method: 'POST', url: '/mcp', headers, payload })).body.includes('"items');
    },
  'MCP subscription': async ({ key }, { kit, url, other }) => {
    const client = new Client({ name: 'agent', version: '1' }, { versionNegotiation: { mode: 'auto' } });
    const heard: string[] = [];
    client.setNotificationHandler('notifications/resources/updated', ({ params: { uri } }) => void heard.push(uri));
    const headers = { ...key, 'x-tenant': TENANT };
    await client.connect(new StreamableHTTPClientTransport(new URL('/mcp', url), { requestInit: { headers } }));
    const subscription = await client.listen({ resourceSubscriptions: ['kit://v1/papers'] });
    expect(subscription.honoredFilter.resourceSubscriptions).toEqual(['kit://v1/papers']);
    let isOpen = true;
    void subscription.closed.then(() => (isOpen = false));
    return async (expected) => {
      if (!expected && !(await staysOpen(() => isOpen, false))) return false;
      const sent = await kit.inject({
        method: 'POST',
        url: '/v1/papers',
        headers: { ...other, 'x-tenant': TENANT },
        payload: { title: 'x' },
      });
      expect(sent.statusCode).toBe(201);
      await vi.waitUntil(() => heard.length > 0 || !isOpen, { timeout: 30_000, interval: 20 });
      await client.close();
      return heard.length > 0;
    };
  },
  'view as': async ({ user }, { kit, way }) => {
    const staff = await way.staff(kit, `staff-${user.username.replaceAll(/\W/g, '-')}`);
    const payload = { user: user.id, tenant: TENANT, reason: 'Ticket 7' };
    const begun = await kit.inject({ method: 'POST', url: '/admin/api/view', headers: staff, payload });
    expect([begun.statusCode, begun.statusCode === 201 ? '' : begun.body]).toEqual([201, '']);
    const mark = /kit_view_as=[^;]+/.exec(String(begun.headers['set-cookie']))?.[0] ?? '';
    const send = () => isServed({ kit }, 'GET', '/v1/papers', { cookie: `${staff['cookie']}; ${mark}` });
    await send();
    return send;
  },
  'service user': async ({ user }, { kit, way }) => {
    const made = { tenant: TENANT, name: 'Import', role: way.role };
    const { user_id: id } = await kit.app.db.transaction((tx) =>
      createServiceUser(tx, made, { by: null, requestId: null, createdBy: user.id }),
    );
    const { raw } = await createApiKey(kit.app.db, { user: { id }, name: 'import', scopes: ['papers:*'], tenant: TENANT });
    const send = () => isServed({ kit }, 'GET', '/v1/papers', { 'x-api-key': raw });
    await send();
    return send;
  },
  stream: ({ session }, place) => followed(place, '/v1/plans/follow', { ...session, 'x-tenant': TENANT }),
  'live list': ({ session }, place) => followed(place, '/v1/papers', { ...session, 'x-tenant': TENANT }),
  'live deliveries': ({ session }, place) => followed(place, `/v1/hooks/${place.hook}/deliveries`, { ...session, 'x-tenant': TENANT }),
  'portal deliveries': portalPage('link', 'resources/deliveries'),
  'portal deliveries of a login': portalPage('login', 'resources/deliveries'),
  // Other exits have events of the tenant, too: more than a page.
  'portal events': portalPage('link', `resources/events?filter.type=${TOLD}`),
  'portal overview': async ({ user }, { kit }) => {
    const token = await opened(kit, (await portalLink(kit.app.db, { user, tenant: TENANT })).token);
    return async () => {
      const response = await kit.inject({ url: '/portal/api/overview', headers: { 'x-portal-session': token ?? '' } });
      return response.body.includes('"Endpoints","value":1');
    };
  },
  'portal export under way': async ({ user }, place) => {
    const token = await opened(place.kit, (await portalLink(place.kit.app.db, { user, tenant: TENANT })).token);
    return halfRead(place, '/portal/api/lists/volumes/export?format=csv', { 'x-portal-session': token ?? '' });
  },
  'portal session': async ({ user }, { kit }) => {
    const token = await opened(kit, (await portalLink(kit.app.db, { user, tenant: TENANT })).token);
    return () => seesPapers(kit, token);
  },
  'portal link': async ({ user }, { kit }) => {
    const { token } = await portalLink(kit.app.db, { user, tenant: TENANT });
    return async () => seesPapers(kit, await opened(kit, token));
  },
  webhook: async ({ user }, { kit, receiver }) => {
    const path = `/${user.id}`;
    const add = (tx: Parameters<typeof createEndpoint>[0]) =>
      createEndpoint(tx, { owner: user.id, tenantKey: TENANT, url: receiver.url(path), events: ['*'] });
    await kit.app.db.transaction(add);
    return async () => {
      await kit.app.db.transaction((tx) => publish(tx, 'paper.made', { n: 1 }, { tenantKey: TENANT }));
      await deliverDue(kit.app.db);
      return receiver.of(path).length > 0;
    };
  },
  'webhook sent again': async ({ user }, { kit, receiver }) => {
    const path = `/again/${user.id}`;
    const db = kit.app.db;
    await db.transaction((tx) => createEndpoint(tx, { owner: user.id, tenantKey: TENANT, url: receiver.url(path), events: ['*'] }));
    await db.transaction((tx) => publish(tx, 'paper.made', { n: 1 }, { tenantKey: TENANT }));
    await deliverDue(db);
    expect(receiver.of(path)).toHaveLength(1);
    const [delivery] = await db.query<{ id: string }>(
      'select d.id from webhook_deliveries d join webhook_endpoints e on e.id = d.endpoint_id where e.owner_id = $1',
      [user.id],
    );
    return async () => {
      // A deleted endpoint has no deliveries.
      await db.transaction((tx) => retryDelivery(tx, delivery?.id ?? '', { force: true })).catch((error: unknown) => error);
      await deliverDue(db);
      return receiver.of(path).length > 1;
    };
  },
  job: async ({ user }, { kit }) => {
    await kit.app.db.transaction((tx) => startJob(tx, report, { for: user.id }, { owner: user.id, tenantKey: TENANT }));
    return async () => {
      await runDueJobs(kit.app.db);
      return ran.has(user.id);
    };
  },
};

const LEAVE: Readonly<Record<string, (db: Database, id: string, way: Way) => Promise<unknown>>> = {
  deactivated: (db, id, way) => way.deactivate(db, id),
  deleted: (db, id, way) => way.delete(db, id),
  'removed from the tenant': (db, id, way) => way.remove(db, id),
  'deprived of the role': (db, id, way) => way.demote(db, id),
  'a member of a suspended tenant': (db, _, way) => way.suspend(db),
};

/** What goes on on purpose. */
const GOES_ON: Readonly<Record<string, string>> = {
  'deprived of the role webhook': 'an endpoint receives what is published for the tenant, and its owner is still a member',
  'deprived of the role webhook sent again': 'as with webhook',
  'deprived of the role job': 'a job that depends on a role asks for it itself: its owner is still a member',
  ...Object.fromEntries(
    ['deactivated', 'deleted', 'removed from the tenant', 'deprived of the role'].map((left) => [
      `${left} service user`,
      'the keys of a service user belong to the tenant, whoever made it',
    ]),
  ),
};

describe.each(Object.entries(WAYS))('with %s', (_, way) => {
  describeDatabases('a person who was', (database) => {
    let place: Place;
    const files = siteFolder();
    beforeAll(async () => {
      const receiver = await startReceiver();
      const kit = await testApp({
        database: database.db,
        modules: [
          ...way.modules(database.db),
          apiKeys({ cache: { maxAgeMs: 300_000 } }),
          webhooks({ urlPolicy: LOOPBACK, jitter: false }),
          jobs({ jobs: [report] }),
          mcp(),
          tables,
          portal({ site: files.url }),
          admin({ site: files.url, viewAs: true }),
        ],
        middleware: [countImports, responseCache({ routes: ({ controller }) => controller === 'Plans' || controller === 'Papers' })],
        ...way.options,
        mount: {
          ...way.mount,
          '/v1': { ...(way.mount['/v1'] as object), '/papers': Papers, '/plans': Plans, '/volumes': Volumes, '/hooks': Hooks },
        },
      });
      await database.db.execute(FILL_VOLUMES[database.dialect]);
      const stays = await way.person(kit, 'stays');
      await way.add(kit.app.db, stays.user.id);
      const made = await kit.inject({
        method: 'POST',
        url: '/v1/hooks',
        headers: { ...stays.session, 'x-tenant': TENANT },
        payload: { url: receiver.url('/of-the-tenant'), events: [TOLD] },
      });
      await database.db.transaction((tx) => publish(tx, TOLD, { n: 1 }, { tenantKey: TENANT }));
      await deliverDue(database.db);
      place = {
        kit,
        receiver,
        way,
        other: stays.session,
        hook: made.json<{ id: string }>().id,
        url: await kit.app.listen({ port: 0 }),
      };
    });
    afterAll(async () => {
      await place.kit.close();
      await place.receiver.close();
      files.remove();
    });

    let people = 0;
    const join = async (): Promise<Leaver> => {
      const { kit } = place;
      const { user, session } = await way.person(kit, `person${(people += 1)}`);
      await way.add(kit.app.db, user.id);
      const { raw } = await createApiKey(kit.app.db, { user, name: 'test', scopes: ['papers:*'] });
      return { user, session, key: { 'x-api-key': raw } };
    };

    describe.each(Object.keys(EXITS).filter((exit) => way.isStored || exit !== 'service user'))('and %s', (exit) => {
      test('who stays is reached: the rows below can fail', async () => {
        const probe = await (EXITS[exit] as Exit)(await join(), place);
        expect(await probe(true)).toBe(true);
      });

      test.each(Object.keys(LEAVE))('%s is not reached, unless the reason is listed', async (left) => {
        const leaver = await join();
        const probe = await (EXITS[exit] as Exit)(leaver, place);
        await LEAVE[left]?.(place.kit.app.db, leaver.user.id, way);
        const expected = `${left} ${exit}` in GOES_ON;
        try {
          expect(await probe(expected)).toBe(expected);
        } finally {
          await way.resume(place.kit.app.db);
        }
      });
    });
  });
});

/** Columns that name a person or a tenant. */
const OF_SOMEBODY =
  /^(owner|owner_id|user_id|tenant|tenant_key|tenant_id|organization_id|organization|granted_by|invited_by|actor|actor_id|subject|caller)$/;

/** What is tested above for the rows of each table of a module, or why nothing in them reaches a person. */
const ROWS: Readonly<Record<string, readonly string[] | string>> = {
  account_links: 'a link of a mail works for an active user only',
  admin_views: ['view as'],
  admin_saved_filters: 'read for the member of staff who is logged in, by their role of now',
  api_keys: ['key', 'MCP'],
  audit_entries: 'read by staff and by those who manage the tenant, whose rights are looked up with each request',
  audit_inbox: 'becomes audit entries',
  better_auth_member_changes: 'a list of changes to pass on, which no caller reads',
  better_auth_suspensions: 'no row of a person: it ends what the members of the organization can do',
  better_auth_used_codes: 'one-time codes that do not work any longer',
  better_auth_user_changes: 'a list of changes to pass on, which no caller reads',
  grants: 'they decide for the caller of a request, who is looked up with each request: as in list and read',
  group_members: 'they decide for the caller of a request, as roles do',
  groups: 'they decide for the caller of a request, as roles do',
  jobs: ['job'],
  kit_deleted_users: ['webhook', 'job'],
  kit_idempotency: ['idempotent replay'],
  personal_export_parts: 'read with the export, see personal_exports',
  personal_exports:
    'read by the person alone after a recent login: a user who left cannot log in, and a person without the tenant keeps their data',
  portal_links: ['portal link', 'portal session', 'portal deliveries', 'portal export under way'],
  request_log: 'read as in list and read: the caller is looked up with each request',
  request_quotas: 'read as in list and read: the caller is looked up with each request',
  request_usage: 'read as in list and read: the caller is looked up with each request',
  service_users: ['service user'],
  sessions: ['list', 'read', 'write', 'export', 'export under way', 'stream'],
  tenant_export_parts: 'read with the export, see tenant_exports',
  tenant_exports: 'an owner is asked for the role with each part that is sent: contrib/tenants/exports.db.test.ts',
  tenant_invitations: 'the sender is asked again when one is accepted, see contrib/tenants/invitations.db.test.ts',
  tenant_members: [
    'list',
    'read',
    'write',
    'export',
    'export under way',
    'key',
    'MCP',
    'cache',
    'idempotent replay',
    'stream',
    'webhook',
    'job',
  ],
  upload_owners: 'counts for quotas',
  upload_removals: 'files to delete',
  uploads: 'read with requests; a presigned URL works until it expires, whoever has it',
  user_factors: 'used to log in, which needs an active user',
  user_identities: 'used to log in, which needs an active user',
  user_recovery_codes: 'used to log in, which needs an active user',
  webhook_endpoints: ['webhook', 'portal overview'],
  webhook_events: ['webhook', 'live deliveries', 'portal deliveries', 'portal events'],
  webhook_subscription_periods: ['webhook'],
  webhook_subscriptions: ['webhook'],
};

test('every table of a module with an owner, a user or a tenant has a row', async () => {
  const source = join(import.meta.dirname, '../../src');
  const files = globSync('**/models.ts', { cwd: source });
  const found = await Promise.all(files.map(async (file) => Object.values((await import(join(source, file))) as object).flat()));
  const models = found
    .flat()
    .filter((each): each is Model => typeof each === 'object' && each !== null && 'columns' in each && 'name' in each);
  const named = models.filter(({ columns }) => Object.keys(columns).some((name) => OF_SOMEBODY.test(name)));
  expect(Object.keys(ROWS).toSorted()).toEqual([...new Set(named.map(({ name }) => name))].toSorted());
  const tested = Object.values(ROWS).flatMap((row) => (typeof row === 'string' ? [] : row));
  expect(tested.filter((exit) => !(exit in EXITS))).toEqual([]);
});
