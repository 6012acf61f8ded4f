import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { type App, createApp, hasScopes, isAuthenticated, isStaff, migrateApp, type Module } from 'kit';
import { AccountController, accounts, accountsOf, createUser } from 'kit/contrib/accounts';
import { ApiKeyController, apiKeys, createApiKey, ServiceUserController } from 'kit/contrib/apikeys';
import { audit, AuditController, TenantAuditController } from 'kit/contrib/audit';
import { objectActions, objectGrants, grants, sharing } from 'kit/contrib/grants';
import { job, JobController, jobs, startJob } from 'kit/contrib/jobs';
import { PersonalDataController, personalData } from 'kit/contrib/personal';
import { QuotaController, RequestController, requests, UsageController } from 'kit/contrib/requests';
import { addMember, createTenant, TenantController, tenants } from 'kit/contrib/tenants';
import { diskStore, UploadController, uploads } from 'kit/contrib/uploads';
import { eventType, TenantWebhookController, URLPolicy, WebhookEndpointController, webhooks } from 'kit/contrib/webhooks';
import { count, CrudController, many, one, resource, sum, visibleTo, writableBy } from 'kit/crud';
import { createTable, migration, model, softDelete, t, timestamps, versioned } from 'kit/db';
import { describeDatabases } from 'kit/testing';
import { openApiDocument } from '../../packages/kit/src/openapi/document.ts';
import { ERRORS_ANYWHERE } from '../../packages/kit/src/openapi/errors-of-route.ts';
import { sample } from '../../packages/kit/src/testing/sample/sample.ts';
import { seededRandom, type Random } from '../../packages/kit/src/testing/sample/random.ts';
import { HOSTILE_TEXTS, HOSTILE_VALUES, mutateText, mutateValue } from '../../packages/kit/test/fuzz/mutate.ts';
import { wholeDocument } from '../../packages/kit/test/whole-document.ts';
import { scaled } from '../provision/scale.ts';

// oxlint-disable-next-line typescript/no-explicit-any -- a document of any shape
type Json = any;

const PASSWORD = 'correct horse battery staple';
/** Fixed, so that a failure repeats; KIT_FUZZ_SEED sets another. */
const SEED = Number(process.env['KIT_FUZZ_SEED'] ?? 20_261_119);
/** Each sends three requests to every operation. */
const ROUNDS = scaled(1, 60);

const lists = model('lists', {
  id: t.uuidv7().pk(),
  tenant_id: t.text(255).readOnly(),
  name: t.text({ min: 1, max: 80 }),
  ...timestamps(),
  ...versioned(),
  ...softDelete(),
});
const parts = model('parts', {
  id: t.uuidv7().pk(),
  tenant_id: t.text(255).readOnly(),
  list_id: t.ref(() => lists),
  title: t.text({ min: 1, max: 80 }),
  amount: t.decimal(12, 2).dbDefault('0.00'),
  big: t.bigint().nullable(),
  small: t.int().nullable(),
  ratio: t.float().nullable(),
  due: t.date().nullable(),
  at: t.timestamp().nullable(),
  blob: t.bytes().nullable(),
  tags: t.array(t.text(20)).nullable(),
  data: t.json(z.record(z.string(), z.unknown())).nullable(),
  status: t.enum(['open', 'held', 'done']).dbDefault('open'),
  secret_note: t.text(80).nullable().sensitive(),
  staff_note: t.text(80).nullable(),
  ...timestamps(),
  ...versioned(),
  ...softDelete(),
});
const docs = model('papers', { id: t.uuidv7().pk(), owner_id: t.uuid().readOnly(), title: t.text(80), ...versioned() });
const docActions = objectActions(docs, {
  actions: ['view', 'change', 'delete', 'share'],
  sets: { viewer: ['view'], editor: ['viewer', 'change'], manager: ['editor', 'delete', 'share'] },
  subjects: ['authenticated', 'public'],
});

const permission = hasScopes({ allowUnscoped: true });
const listResource = resource(lists, {
  tenant: 'tenant_id',
  version: 'version',
  softDelete: { cascade: ['parts'] },
  relations: { parts: many(() => parts, 'list_id', { order: ['title'], limit: 50 }) },
  nested: { parts: { input: ['title', 'amount', 'small'], max: 10 } },
  events: true,
});
const partResource = resource(parts, {
  tenant: 'tenant_id',
  version: 'version',
  softDelete: true,
  relations: { list: one(() => lists, 'list_id') },
  fields: { staff_note: visibleTo(isStaff), small: writableBy(isAuthenticated) },
  state: 'status',
  transitions: {
    hold: { from: ['open'], to: 'held', input: z.object({ reason: z.string().max(20) }) },
    finish: { from: ['open', 'held'], to: 'done' },
  },
  events: true,
});
class ListController extends CrudController(listResource, {
  permission,
  scope: 'lists',
  filters: { name: ['eq', 'contains', 'in'] },
  search: ['name'],
  ordering: { by: ['name', 'created_at'] },
  expand: ['parts'],
  restore: true,
  meta: true,
  live: true,
}) {}
class PartController extends CrudController(partResource, {
  permission,
  scope: 'parts',
  filters: {
    title: ['eq', 'ne', 'in', 'contains', 'starts', 'ends'],
    amount: ['eq', 'gte', 'lt', 'in'],
    big: ['eq', 'gt', 'in', 'isnull'],
    small: ['eq', 'lte', 'nin'],
    ratio: ['gt'],
    due: ['eq', 'gte', 'isnull'],
    at: ['eq', 'gte', 'lt'],
    status: ['eq', 'in'],
    list_id: ['eq', 'in'],
    'list.name': ['eq', 'contains'],
  },
  search: ['title'],
  ordering: { by: ['title', 'amount', 'big', 'at', 'due', 'created_at'] },
  expand: ['list'],
  bulk: { create: true, update: true, destroy: true, mode: 'partial' },
  export: ['csv', 'jsonl'],
  import: { formats: ['csv', 'jsonl'] },
  stats: { by: ['status', 'due', 'at', 'list_id'], metrics: { parts: count(), total: sum('amount'), bigs: sum('big') } },
  restore: true,
  meta: true,
}) {}
class PartsOfListController extends CrudController(partResource, {
  permission,
  scope: 'parts',
  parent: { relation: 'list', param: 'list_id' },
  page: { style: 'offset' },
}) {}
class PaperController extends sharing(
  CrudController(resource(docs, { owner: 'owner_id', access: grants(docActions), version: 'version' }), {
    permission,
    scope: 'papers',
    etag: 'required',
  }),
) {}
const counting = job('counting', { input: z.object({ to: z.int().min(1).max(100) }), run: () => undefined });
const moved = eventType('part.moved', z.strictObject({ id: z.uuid() }), { description: 'A part was moved.' });

const own: Module = {
  name: 'own',
  models: [lists, parts, docs],
  migrations: [
    migration('0001_initial', [
      createTable('lists', lists.columns),
      createTable('parts', { ...parts.columns, list_id: t.ref('lists') }),
      createTable('papers', docs.columns),
    ]),
  ],
};

/** The operations of every module with rows, in tenants. */
function wholeApp(database: string, folder: string): App {
  return createApp({
    title: 'Everything',
    database,
    log: { level: 'silent' },
    modules: [
      accounts({ passwordCost: { logN: 4, r: 8, p: 1 } }),
      tenants({ create: isAuthenticated }),
      audit(),
      apiKeys(),
      webhooks({ eventTypes: [moved], urlPolicy: URLPolicy({ allowHttp: true, allowPrivateNetworks: true }) }),
      jobs({ jobs: [counting] }),
      uploads({ store: diskStore({ folder }), cleanEverySeconds: 0 }),
      objectGrants({ objects: [docActions], isInTenant: () => true }),
      requests({ quotas: { owner: 'unlimited/month' } }),
      personalData(),
      own,
    ],
    mount: {
      '/v1': {
        '/account': AccountController,
        '/tenants': TenantController,
        '/lists': ListController,
        '/parts': PartController,
        '/lists/:list_id/parts': PartsOfListController,
        '/papers': PaperController,
        '/api-keys': ApiKeyController,
        '/service-users': ServiceUserController,
        '/hooks': WebhookEndpointController,
        '/tenant-hooks': TenantWebhookController,
        '/jobs': JobController,
        '/uploads': UploadController,
        '/audit': AuditController,
        '/tenant-audit': TenantAuditController,
        '/requests': RequestController,
        '/usage': UsageController,
        '/quotas': QuotaController,
        '/personal': PersonalDataController,
      },
    },
  });
}

const TIMES = [
  '2026-12-31T23:59:60Z',
  '0000-01-01T00:00:00Z',
  '9999-12-31T23:59:59-23:59',
  '2026-01-01T00:00:00Z[Europe/Berlin]',
  '2026-02-29T00:00:00Z',
  '2024-02-29',
  '0000-01-01',
  '9999-12-31',
  '2026-03-29T02:30:00+01:00',
  '+010000-01-01T00:00:00Z',
  '-000001-01-01T00:00:00Z',
  '1e400',
  '-0',
  '-9223372036854775809',
  '9223372036854775807',
  '99999999999.999',
  '0.001',
  'a,b,',
  ',',
  '\u0130',
  'e\u0301',
  '\ud83d',
  'id,',
  'id,id',
  '-id,id',
  'kit_000000000000_0',
];
const ALL_TEXTS = [...HOSTILE_TEXTS, ...TIMES.map((text) => encodeURIComponent(text.toWellFormed()))];
/** They end the sessions, the members or the tenant that the others need. */
const SKIPPED =
  /logout|password|end_|sessions|second_factor|factor|recovery|tenant_leave|tenant_destroy|personal.*erase|tenant_transfer|change_email|presence/;
const EVERYWHERE = new Set(['not_found', 'method_not_allowed', ...ERRORS_ANYWHERE.map(({ code }) => code)]);
/** Words of databases and of our own files. */
const LEAKS =
  /SQLITE_|sqlite|syntax error at|relation "|invalid input syntax|out of range for type|node:internal|at file:|\/packages\/kit\/src/i;

describeDatabases('every operation of every module, driven from the document', (database) => {
  let app: App;
  let document: Json;
  const folder = mkdtempSync(join(tmpdir(), 'kit-fuzz-'));
  const credentials: Record<string, string>[] = [];
  const known: string[] = [];
  const cursors: string[] = [];

  beforeAll(async () => {
    app = wholeApp(database.url, folder);
    await migrateApp(app);
    await app.ready();
    document = wholeDocument(openApiDocument(app.routes, { title: 'x', version: '1', spec: '3.2' }));
    const management = accountsOf(app.db).management('test');
    const people: Record<string, Json> = {};
    for (const username of ['ann', 'ben', 'sue'])
      people[username] = await createUser(app.db, { username, password: PASSWORD, is_staff: username === 'sue' }, management);
    const tenant = await createTenant(app.db, { name: 'Acme', slug: 'acme', owner: people['ann'].id });
    await addMember(app.db, { tenant: tenant.id, user: people['ben'].id, roles: ['member'] });
    await createTenant(app.db, { name: 'Other', slug: 'other', owner: people['ben'].id });
    known.push(tenant.id, ...Object.values(people).map(({ id }) => id as string));
    for (const [name, tenantKey] of [
      ['ann', 'acme'],
      ['ben', 'acme'],
      ['sue', null],
    ] as const) {
      const { raw } = await createApiKey(app.db, { user: people[name], name: 'all', scopes: ['*'], tenant: tenantKey });
      credentials.push({ 'x-api-key': raw });
      const response = await app.inject({ method: 'POST', url: '/v1/account/login', payload: { login: name, password: PASSWORD } });
      const session = {
        cookie: String(response.headers['set-cookie']).split(';')[0]!,
        'x-csrf-token': response.json<{ csrf_token: string }>().csrf_token,
      };
      credentials.push(session, { ...session, 'x-tenant': 'acme' });
    }
    for (let index = 0; index < 3; index += 1) {
      const { id } = await app.db.transaction((tx) => startJob(tx, counting, { to: 5 }, { owner: people['ann'].id, tenantKey: tenant.id }));
      known.push(id);
    }
  }, 600_000);
  afterAll(async () => {
    await app.close();
    rmSync(folder, { recursive: true, force: true });
  });

  interface Target {
    readonly path: string;
    readonly method: string;
    readonly operation: Json;
  }

  function collect(value: Json): void {
    if (typeof value === 'string') {
      if (/^[0-9a-f]{8}-[0-9a-f-]{27}$/.test(value) && known.length < 400) known.push(value);
      const cursor = /[?&]cursor=([^&]+)/.exec(value)?.[1];
      if (cursor !== undefined && cursors.length < 50) cursors.push(cursor);
    } else if (typeof value === 'object' && value !== null) for (const each of Object.values(value)) collect(each);
  }

  function queryOf(parameters: Json[], random: Random): string {
    const pairs: string[] = [];
    for (const { name, schema, required } of parameters.filter((each) => each.in === 'query')) {
      if (required !== true && !random.chance(0.3)) continue;
      const value = (): string => {
        if (name === 'cursor' && cursors.length > 0 && random.chance(0.8)) return random.pick(cursors);
        const draw = random.int(0, 5);
        if (draw === 0) return random.pick(ALL_TEXTS);
        if (draw === 1 && known.length > 0) return random.pick(known).toUpperCase();
        if (draw === 2 && known.length > 0) return random.pick(known);
        const [first = ''] = [sample({ ...schema, components: document.components }, { seed: random.int(1, 1e6) })].flat() as Json[];
        return encodeURIComponent(typeof first === 'string' ? first : JSON.stringify(first));
      };
      pairs.push(`${name}=${value()}`);
      if (random.chance(0.05)) pairs.push(`${name}=${value()}`);
    }
    if (random.chance(0.05)) pairs.push(`${random.pick(ALL_TEXTS)}=1`);
    return pairs.join('&');
  }

  function requestOf({ path, method, operation }: Target, random: Random): Json {
    const parameters: Json[] = operation.parameters ?? [];
    const inPath = parameters.filter((each) => each.in === 'path');
    const url = inPath.reduce((text, { name }) => {
      const draw = random.int(0, 9);
      const value = draw === 0 ? random.pick(ALL_TEXTS) : draw === 1 ? random.pick(known).toUpperCase() : random.pick(known);
      return text.replace(`{${name}}`, value);
    }, path);
    const query = queryOf(parameters, random);
    const headers: Record<string, string> = { ...random.pick(credentials) };
    if (random.chance(0.1)) headers['if-match'] = random.pick(['"1"', '"2"', '*', 'W/"1"', '"', '"1-x"', '"1", "2"', '']);
    if (random.chance(0.1)) headers['if-none-match'] = random.pick(['"1"', '*', 'W/"x"', '"', '']);
    if (random.chance(0.1)) headers['idempotency-key'] = random.pick(['a', 'b', '', 'x'.repeat(256), 'é', 'a b']);
    if (random.chance(0.1)) headers['x-tenant'] = random.pick(['acme', 'ACME', 'other', 'nope', '', ' ', 'é', random.pick(known)]);
    if (random.chance(0.05)) headers['range'] = random.pick(['bytes=0-1', 'bytes=-1', 'bytes=9-1', 'x=1']);
    if (random.chance(0.05)) headers['accept'] = random.pick(['', '*/*;q=0', 'text/html', 'application/json;q=x']);
    let payload: Buffer | undefined;
    const [type] = Object.keys(operation.requestBody?.content ?? {});
    const schema = operation.requestBody?.content[type ?? '']?.schema;
    if (type === 'application/json') {
      let value: Json = sample({ ...schema, components: document.components }, { seed: random.int(1, 1e6), optional: 'some' });
      const text = JSON.stringify(value);
      // Ids of rows that exist.
      value = JSON.parse(text.replaceAll(/"[0-9a-f]{8}-[0-9a-f-]{27}"/gi, () => `"${random.pick(known)}"`));
      const draw = random.int(0, 3);
      if (draw === 0) value = mutateValue(value, random);
      if (draw === 1 && typeof value === 'object' && value !== null && Object.keys(value).length > 0)
        value[random.pick(Object.keys(value))] = random.pick([...TIMES, ...HOSTILE_VALUES] as Json[]);
      payload = Buffer.from(JSON.stringify(value) ?? '');
      if (random.chance(0.05)) payload = mutateText(payload.toString(), random);
      headers['content-type'] = random.chance(0.03) ? random.pick(['text/plain', '', 'application/json; charset=latin1']) : type;
    } else if (type !== undefined) {
      headers['content-type'] = random.pick(Object.keys(operation.requestBody.content));
      payload = Buffer.from(
        random.pick([
          'title\nx\n',
          '\ufefftitle,amount\r\n"a""b",1\r\n',
          'title,title\na,b\n',
          '__proto__,title\na,b\n',
          'title\n"open',
          'title,list_id\nx,nope\n',
          'id,title\n1,x\n',
          '{"title":"x"}\n{"title":"y","amount":"1.00"}\n',
          '{"title":"x"}\nnull\n[]\n',
          '{"title":"x","title":"y"}\n',
          '\xff\xfe',
          '',
          '\n\n\n',
          'title\r\rx',
          'title\tamount\nx\t1\n',
          'title\n\u0000\n',
          'title,due,at,big,small,ratio,blob,tags,data,status\nx,2024-02-29,2024-02-29T24:00:00Z,1,1,1e400,AA==,"[]","{}",open\n',
        ]),
      );
    }
    return { method: method.toUpperCase(), url: query === '' ? url : `${url}?${query}`, headers, payload };
  }

  test('nothing fails, and every refusal is documented', { timeout: 3_600_000 }, async () => {
    const faults = new Map<string, Json>();
    const targets: Target[] = Object.entries<Json>(document.paths).flatMap(([path, item]) =>
      Object.entries<Json>(item).map(([method, operation]) => ({ path, method, operation })),
    );
    const wanted = targets.filter(({ operation }) => !SKIPPED.test(operation.operationId));
    let requestsSent = 0;
    const seen = new Set<number>();
    for (let round = 0; round < ROUNDS; round += 1)
      for (const [index, target] of wanted.entries()) {
        const { operation } = target;
        const random = seededRandom(SEED + round * 1000 + index);
        if (Object.keys(operation.responses[200]?.content ?? {}).join() === 'text/event-stream') continue;
        for (let attempt = 0; attempt < 3; attempt += 1) {
          const request = requestOf(target, random);
          requestsSent += 1;
          const remoteAddress = `10.${(requestsSent >> 16) & 255}.${(requestsSent >> 8) & 255}.${requestsSent & 255}`;
          const response = await app.inject({ ...request, remoteAddress });
          const { statusCode: status, body } = response;
          seen.add(status);
          const note = (what: string): void => {
            const key = `${operation.operationId} ${status} ${what}`;
            if (!faults.has(key))
              faults.set(key, {
                url: request.url,
                headers: Object.keys(request.headers).join(),
                payload: request.payload?.toString('latin1').slice(0, 400),
                body: body.slice(0, 600),
              });
          };
          if (LEAKS.test(body)) note('leaks');
          if (status < 400) {
            if (String(response.headers['content-type']).startsWith('application/json')) collect(JSON.parse(body || 'null'));
            if (operation.responses[status] === undefined && status !== 304) note('undocumented success');
            continue;
          }
          if (response.headers['content-type'] !== 'application/problem+json; charset=utf-8') {
            note(`is ${String(response.headers['content-type'])}`);
            continue;
          }
          const problem = response.json();
          if (status >= 500) note(`${problem.code} ${problem.detail}`);
          if (problem.status !== status || typeof problem.detail !== 'string' || typeof problem.code !== 'string') note('is incomplete');
          const documented = operation.responses[status]?.['x-error-codes'];
          if (documented?.includes(problem.code) !== true && !EVERYWHERE.has(problem.code)) note(`${problem.code} is not documented`);
          if (problem.code === 'validation_error' && !(problem.errors?.length > 0)) note('no location');
          for (const each of problem.errors ?? [])
            if (!['body', 'query', 'params', 'headers', 'cookies'].includes(each.location?.[0]) || typeof each.message !== 'string')
              note(`location ${JSON.stringify(each.location)}`);
          if (status === 429 && response.headers['retry-after'] === undefined) note('no Retry-After');
        }
      }
    // Not only refusals.
    expect([...seen]).toEqual(expect.arrayContaining([200, 201, 403, 404, 422]));
    expect(Object.fromEntries(faults)).toEqual({});
  });
});
