import { inspect } from 'node:util';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { byName, people } from '../../test/crud/shop.ts';
import { recordSpans } from '../../test/tracing/spans.ts';
import type { Module } from '../app/declare/module.ts';
import { audit } from '../contrib/audit/index.ts';
import { job, jobs, startJob } from '../contrib/jobs/index.ts';
import { requests } from '../contrib/requests/index.ts';
import { requestLogs } from '../contrib/requests/log/log.ts';
import { tracing } from '../contrib/tracing/index.ts';
import { webhooks } from '../contrib/webhooks/index.ts';
import { createTable, find, migration, model, reveal, t, timestamps, versioned } from '../db/index.ts';
import { requestLog, responseCache } from '../middleware/index.ts';
import { openApiDocument } from '../openapi/index.ts';
import { allowAny, isAuthenticated, isStaff, hasScopes } from '../permissions/index.ts';
import { describeDatabases } from '../testing/databases.ts';
import { testApp, type TestApp } from '../testing/test-app.ts';
import { AdminAccess } from './staff/admin-access.ts';
import { count, CrudController, crudOf, many, one, resource, visibleTo } from './index.ts';

/** Part of every plaintext of these tests, in the letters that every encoding of a log or a dump keeps. */
const MARKER = 'MARKER';

const patients = model('patients', {
  id: t.uuidv7().pk(),
  org: t.text(20).readOnly(),
  name: t.text(100).unique(),
  note: t.text(200).nullable().encrypted(),
  history: t.json({ type: 'object' }).nullable().encrypted(),
  scan: t.bytes().nullable().encrypted(),
  insurance: t
    .text({ max: 40, pattern: '^[A-Za-z0-9 ]+$' })
    .nullable()
    .unique()
    .encrypted({ search: 'equality', tenant: 'org', normalize: (value) => value.toUpperCase() }),
  pin: t.text(40).nullable().encrypted(),
  ...timestamps(),
  ...versioned(),
});
const visits = model('visits', {
  id: t.uuidv7().pk(),
  org: t.text(20).readOnly(),
  patient_id: t.ref(() => patients),
  reason: t.text(200).encrypted(),
});

const changed: (readonly string[])[] = [];
const patientResource = resource(patients, {
  tenant: 'org',
  version: 'version',
  fields: { note: visibleTo(isStaff), history: visibleTo(isStaff), scan: visibleTo(isStaff), insurance: visibleTo(isStaff) },
  relations: { visits: many(() => visits, 'patient_id', { order: ['id'] }) },
  events: (change) => ({ type: 'patient.changed', data: { ...change.after, changed: change.changed }, audience: { tenantKey: 'north' } }),
  onChange: (change) => void changed.push(change.changed),
});
const visitResource = resource(visits, {
  tenant: 'org',
  fields: { reason: visibleTo(isStaff) },
  relations: { patient: one(() => patients, 'patient_id') },
});
const all = {
  permission: isAuthenticated,
  filters: { name: ['eq'], insurance: ['eq', 'in', 'isnull'] },
  ordering: { by: ['name'] },
  expand: ['visits'],
  export: ['csv', 'jsonl'],
  import: { formats: ['jsonl'], by: 'name' },
  bulk: { create: true, update: true },
  meta: true,
  idempotency: 'optional',
  operations: { export: { permission: isStaff } },
} as const;
class PatientController extends CrudController(patientResource, all) {}
class VisitController extends CrudController(visitResource, { permission: isAuthenticated, expand: ['patient'] }) {}

const keep = job('clinic.keep', { input: z.object({ row: z.unknown() }), run: () => undefined });
const clinic: Module = {
  name: 'clinic',
  models: [patients, visits],
  jobs: [keep],
  resources: [patientResource, visitResource],
  migrations: [
    migration('0001_initial', [
      createTable('patients', patients.columns),
      createTable('visits', { ...visits.columns, patient_id: t.ref('patients') }),
    ]),
  ],
};

const traced = recordSpans();

describeDatabases('encrypted columns of a resource', (database) => {
  let kit: TestApp;
  let number = 0;
  const name = () => `patient ${(number += 1)}`;
  const call = async (
    person: keyof typeof people,
    method: string,
    path: string,
    payload?: unknown,
    headers: Record<string, string> = {},
  ) => {
    const json = typeof payload === 'object' ? { 'content-type': 'application/json' } : {};
    const response = await kit.inject({
      method: method as 'GET',
      url: `/v1/${path}`,
      headers: { 'x-user': person, ...json, ...headers },
      ...(payload === undefined ? {} : { payload: payload as object }),
    });
    const text = response.body;
    return {
      status: response.statusCode,
      text,
      body: (path.includes('/export') || text === '' ? text : JSON.parse(text)) as Record<string, never>,
      headers: response.headers,
    };
  };
  const values = {
    note: `${MARKER} note`,
    history: { allergies: [`${MARKER} nuts`] },
    scan: Buffer.from(`${MARKER} scan`).toString('base64'),
    pin: `${MARKER}pin`,
  };
  const make = async (more: object = {}, person: keyof typeof people = 'sue') => {
    const made = await call(person, 'POST', 'patients', { name: name(), ...values, ...more });
    expect([made.status, made.text]).toEqual([201, made.text]);
    return made.body as unknown as Record<string, unknown> & { id: string; version: number; name: string };
  };
  const stored = async (id: string) =>
    (await database.db.query<Record<string, unknown>>('select * from patients where id = $1', [id]))[0] ?? {};

  beforeAll(async () => {
    kit = await testApp({
      database: database.db,
      authenticators: [byName],
      tenant: ({ user }: { user: { username: string } | null }) => people[user?.username as 'ann']?.tenant ?? null,
      memberships: 'not known',
      membership: () => ({ roles: ['member'] }),
      modules: [clinic, audit(), jobs(), webhooks(), requests(), tracing()],
      middleware: [requestLog(), responseCache({ routes: () => true })],
      mount: { '/v1': { '/patients': PatientController, '/visits': VisitController } },
    } as never);
  });
  beforeEach(() => void changed.splice(0));
  afterAll(() => kit.close());

  test('callers whom the rule admits get the plaintext, others no member', async () => {
    const made = await make();
    expect(made).toMatchObject({ note: values.note, history: values.history, scan: values.scan, insurance: null });
    expect(made).not.toHaveProperty('pin');
    expect(made).not.toHaveProperty('insurance_search');
    const own = (await call('sue', 'GET', `patients/${made.id}`)).body;
    expect(own).toMatchObject({ note: values.note, history: values.history, scan: values.scan });
    const other = await call('bob', 'GET', `patients/${made.id}`);
    expect(other.status).toBe(200);
    expect(other.text).not.toContain(MARKER);
    expect(Object.keys(other.body)).not.toContain('note');
    const list = await call('sue', 'GET', 'patients?fields=name,note&ordering=name');
    expect(list.text).toContain(values.note);
    expect(await call('ann', 'PATCH', `patients/${made.id}`, { note: 'x' }, { 'if-match': '*' })).toMatchObject({ status: 403 });
  });

  test('PATCH, PUT and If-Match work on plaintexts, and a value that stays the same is no change', async () => {
    const made = await make({ insurance: 'aa 11' });
    const before = await stored(made.id);
    changed.splice(0);
    const same = await call(
      'sue',
      'PATCH',
      `patients/${made.id}`,
      { note: values.note, history: values.history },
      { 'if-match': `"${made.version}"` },
    );
    expect(same.status).toBe(200);
    expect(changed).toEqual([]);
    expect([(await stored(made.id))['note'], (await stored(made.id))['history']]).toEqual([before['note'], before['history']]);
    const patched = await call('sue', 'PATCH', `patients/${made.id}`, { note: `${MARKER} new` }, { 'if-match': '*' });
    expect([patched.status, patched.body['note']]).toEqual([200, `${MARKER} new`]);
    expect(changed).toEqual([['note']]);
    expect((await call('sue', 'PATCH', `patients/${made.id}`, { note: 'late' }, { 'if-match': `"${made.version}"` })).status).toBe(412);
    const put = await call('sue', 'PUT', `patients/${made.id}`, { name: made.name, insurance: 'AA 11' }, { 'if-match': '*' });
    expect([put.status, put.body['note'], put.body['insurance']]).toEqual([200, null, 'AA 11']);
  });

  test('QUERY finds by value within the tenant; the value has no place in a URL', async () => {
    const made = await make({ insurance: `${MARKER} q1` });
    const find = async (person: 'sue' | 'ann' | 'cid', where: object) => call(person, 'QUERY', 'patients', { where });
    const found = await find('sue', { insurance: `${MARKER.toLowerCase()} Q1` });
    expect([found.status, (found.body as { items?: { id: string }[] }).items?.map(({ id }) => id)]).toEqual([200, [made.id]]);
    expect((await find('sue', { insurance: { in: [`${MARKER} q1`, 'none'] } })).text).toContain(made.id);
    expect((await find('sue', { insurance: { contains: 'q' } })).status).toBe(422);
    expect((await find('ann', { insurance: `${MARKER} q1` })).status).toBe(422);
    expect((await call('sue', 'GET', `patients?insurance=${MARKER}`)).status).toBe(422);
    expect((await call('sue', 'GET', 'patients?insurance__isnull=false')).text).toContain(made.id);
    await make({ insurance: `${MARKER} q1` }).then(
      () => expect.unreachable(),
      () => undefined,
    );
    const conflict = await call('sue', 'POST', 'patients', { name: name(), insurance: `${MARKER} Q1` });
    expect([conflict.status, conflict.text.includes('insurance'), conflict.text.includes(MARKER)]).toEqual([409, true, false]);
  });

  test('bulk writes, imports with upsert, nested reads and exports have plaintexts', async () => {
    const first = name();
    const bulk = await call('sue', 'POST', 'patients/bulk', {
      items: [
        { name: first, note: `${MARKER} b1` },
        { name: name(), note: `${MARKER} b2` },
      ],
    });
    expect([bulk.status, bulk.text.includes(`${MARKER} b2`)]).toEqual([201, true]);
    const ids = (bulk.body as { items?: { id: string }[] }).items?.map(({ id }) => id) as string[];
    const changes = await call('sue', 'POST', 'patients/bulk-update', { ids, changes: { note: `${MARKER} both` } });
    expect(changes.status).toBe(200);
    const [a, b] = [await stored(ids[0] as string), await stored(ids[1] as string)];
    expect(a['note']).not.toBe(b['note']);
    expect(reveal(kit.app.db, patients, a as never, 'note')).toBe(`${MARKER} both`);
    expect(reveal(kit.app.db, patients, b as never, 'note')).toBe(`${MARKER} both`);
    const lines = `${JSON.stringify({ name: first, note: `${MARKER} up` })}\n${JSON.stringify({ name: name(), note: `${MARKER} in` })}\n`;
    const imported = await call('sue', 'POST', 'patients/import?mode=upsert', lines, { 'content-type': 'application/x-ndjson' });
    expect([imported.status, imported.text.includes(MARKER)]).toEqual([201, false]);
    expect((await call('sue', 'GET', `patients/${ids[0]}`)).body['note']).toBe(`${MARKER} up`);
    const visit = await call('sue', 'POST', 'visits', { patient_id: ids[0], reason: `${MARKER} visit` });
    expect([visit.status, visit.body['reason']]).toEqual([201, `${MARKER} visit`]);
    const expanded = await call('sue', 'GET', `visits/${String(visit.body['id'])}?expand=patient`);
    expect((expanded.body['patient'] as unknown as Record<string, unknown>)['note']).toBe(`${MARKER} up`);
    const below = await call('sue', 'GET', `patients/${ids[0]}?expand=visits`);
    expect(below.text).toContain(`${MARKER} visit`);
    const csv = await call('sue', 'GET', 'patients/export?format=csv');
    expect([csv.status, csv.text.includes(`${MARKER} up`)]).toEqual([200, true]);
    expect((await call('ann', 'GET', 'patients/export?format=csv')).status).toBe(403);
  });

  test('programs and staff read and write plaintexts by the same rules', async () => {
    const caller = (person: 'ann' | 'sue') => ({
      user: { id: people[person].id, username: person, email: null, is_active: true, is_staff: person === 'sue', is_superuser: false },
      tenant: people[person].tenant,
    });
    const made = await make();
    const program = crudOf(kit.app, patientResource).as(caller('sue'));
    const row = await program.find(made.id);
    expect(inspect(row, { depth: 5 })).not.toContain(MARKER);
    expect(reveal(kit.app.db, patients, row, 'note')).toBe(values.note);
    expect(inspect(await program.present(row), { depth: 5 })).toContain(values.note);
    const narrow = crudOf(kit.app, patientResource).as(caller('ann'));
    expect(inspect(await narrow.present(await narrow.find(made.id)), { depth: 5 })).not.toContain(MARKER);
    const written = await program.write().update(made.id, { note: `${MARKER} by code` });
    expect(reveal(kit.app.db, patients, written, 'note')).toBe(`${MARKER} by code`);
    await expect(program.write().update(made.id, { note: row.note as never })).rejects.toThrow('must be the plaintext');
    const access = new AdminAccess(kit.app, patientResource, caller('sue'));
    expect(inspect(await access.find(made.id), { depth: 5 })).not.toContain(MARKER);
  });

  test('a value that cannot be read is an internal error that says nothing, and rows without it are served', async () => {
    const made = await make();
    await database.db.query("update patients set note = 'broken' where id = $1", [made.id]);
    const failed = await call('sue', 'GET', `patients/${made.id}`);
    expect([failed.status, failed.text.includes('broken')]).toEqual([500, false]);
    expect(JSON.stringify(kit.records)).toContain('has a value that is not encrypted');
    expect((await call('ann', 'GET', `patients/${made.id}`)).status).toBe(200);
    expect((await call('sue', 'PATCH', `patients/${made.id}`, { note: 'mended' }, { 'if-match': '*' })).status).toBe(200);
    expect((await call('sue', 'GET', `patients/${made.id}`)).body['note']).toBe('mended');
  });

  // Every way in that takes a plaintext, and every place that keeps something of a request.

  const ways: Readonly<Record<string, () => Promise<unknown>>> = {
    create: () => make({ insurance: `${MARKER} ${name()}` }),
    'create with an idempotency key': async () => {
      const send = () => call('sue', 'POST', 'patients', { name: 'once', ...values }, { 'idempotency-key': 'a-key-of-the-test' });
      expect((await send()).status).toBe(201);
      await send();
    },
    update: async () => call('sue', 'PATCH', `patients/${(await make()).id}`, { note: `${MARKER} 2` }, { 'if-match': '*' }),
    'a refused value': () =>
      call('sue', 'POST', 'patients', { name: name(), insurance: `${MARKER}!!`, note: { [MARKER]: MARKER }, pin: MARKER.repeat(20) }),
    'a conflict': async () => call('sue', 'POST', 'patients', { name: (await make()).name, ...values }),
    'a missing row': () => call('sue', 'PATCH', `patients/${crypto.randomUUID()}`, { note: MARKER }, { 'if-match': '*' }),
    'a search': () => call('sue', 'QUERY', 'patients', { where: { insurance: MARKER } }),
    'a wrong search': () => call('sue', 'QUERY', 'patients', { where: { insurance: { in: [`${MARKER}!!`] } } }),
    import: () =>
      call('sue', 'POST', 'patients/import', `${JSON.stringify({ name: name(), ...values })}\n{"note":"${MARKER}"`, {
        'content-type': 'application/x-ndjson',
      }),
    bulk: () =>
      call('sue', 'POST', 'patients/bulk', {
        items: [
          { name: name(), ...values },
          { name: 1, ...values },
        ],
      }),
    'a job whose input is a row': async () => {
      const row = await find(database.db, patients, (await make()).id);
      await database.db.transaction((tx) => startJob(tx, keep, { row: JSON.parse(JSON.stringify(row)) as unknown }));
    },
    read: async () => call('sue', 'GET', `patients/${(await make()).id}`),
    list: () => call('sue', 'GET', 'patients'),
    export: () => call('sue', 'GET', 'patients/export?format=jsonl'),
    delete: async () => call('sue', 'DELETE', `patients/${(await make()).id}`, undefined, { 'if-match': '*' }),
  };
  const errors: ReadonlySet<string> = new Set(['a refused value', 'a conflict', 'a missing row', 'a wrong search']);
  const plain = new RegExp(`${MARKER}|${Buffer.from(MARKER).toString('base64').slice(0, 6)}`, 'i');

  test.each(Object.keys(ways))('%s leaves no plaintext in a table, a log, an error or a statement', async (way) => {
    const seen: unknown[] = [];
    const stop = database.db.observe({ onQuery: (event: unknown) => void seen.push(event) });
    kit.records.splice(0);
    traced.reset();
    const response = await (ways[way] as () => Promise<unknown>)();
    stop();
    await requestLogs.of(database.db).flush();
    expect(traced.spans().length).toBeGreaterThan(0);
    expect(inspect(traced.spans(), { depth: 9, maxStringLength: null, maxArrayLength: null })).not.toMatch(plain);
    expect(errors.has(way) ? (response as { text: string }).text : '').not.toMatch(plain);
    expect(inspect(seen, { depth: 9, maxStringLength: null, maxArrayLength: null })).not.toMatch(plain);
    expect(JSON.stringify(kit.records)).not.toMatch(plain);
    const tables = await database.db.query<{ name: string }>(
      database.dialect === 'sqlite'
        ? "select name from sqlite_master where type = 'table' and name not like 'sqlite_%'"
        : "select tablename as name from pg_tables where schemaname = 'public'",
    );
    expect(tables.map((table) => table.name)).toEqual(
      expect.arrayContaining(['patients', 'audit_entries', 'jobs', 'kit_idempotency', 'request_log']),
    );
    for (const table of tables) {
      const dump = inspect(await database.db.query(`select * from "${table.name}"`), {
        depth: 9,
        maxStringLength: null,
        maxArrayLength: null,
      });
      expect([table.name, plain.exec(dump)?.input.slice(0, 300)]).toEqual([table.name, undefined]);
    }
  });

  test('responses with plaintexts are not cached, others of the same resource are', async () => {
    const made = await make();
    await call('sue', 'GET', `patients/${made.id}`);
    let statements = 0;
    const stop = database.db.observe({ onQuery: () => void (statements += 1) });
    await call('sue', 'GET', `patients/${made.id}`);
    stop();
    expect(statements).toBeGreaterThan(0);
  });

  test('the OpenAPI document marks the columns, shows no search values and offers no URL parameter for them', () => {
    const document = openApiDocument(kit.app.routes, {
      spec: '3.1',
      title: 'clinic',
      version: '1',
      errorFormat: 'problem+json',
      throttleRates: {},
    } as never);
    const text = JSON.stringify(document);
    expect(text).not.toContain('insurance_search');
    const { properties } = (document as never as { components: { schemas: Record<string, { properties: Record<string, object> }> } })
      .components.schemas['Patient'] as never as { properties: Record<string, object> };
    expect(properties['note']).toMatchObject({ 'x-sensitive': true, 'x-visible-to': 'isStaff' });
    expect(properties).not.toHaveProperty('pin');
    expect(text).toContain('insurance__isnull');
    expect(text).not.toMatch(/"name":"insurance(__in)?"/);
  });
});

describe('what a ciphertext cannot do fails at startup with a sentence', () => {
  const started = async (options: object, more: object = {}) => {
    const declared = resource(patients, {
      tenant: 'org',
      fields: { note: visibleTo(isStaff), insurance: visibleTo(isStaff) },
      ...more,
    } as never);
    class C extends CrudController(declared, { permission: isAuthenticated, ...options }) {}
    const kit = await testApp({
      authenticators: [byName],
      tenant: () => 'north',
      memberships: 'not known',
      membership: () => ({ roles: ['member'] }),
      modules: [{ ...clinic, resources: [] }],
      mount: { '/v1': { '/patients': C } },
    } as never);
    await kit.close();
  };

  test.each<[string, object, object, string]>([
    ['ordering', { ordering: { by: ['note'] } }, {}, 'ordering has "note", which is encrypted'],
    ['a default order', { ordering: { by: ['name'], default: ['insurance'] } }, {}, 'ordering has "insurance"'],
    ['search', { search: ['note'] }, {}, 'search uses "note", which is encrypted'],
    ['a filter without search values', { filters: { note: ['eq'] } }, {}, 'the filter "note" cannot have the operator "eq"'],
    ['contains', { filters: { insurance: ['contains'] } }, {}, 'This encrypted column has eq, in, isnull'],
    [
      'a filter without the tenant',
      { filters: { insurance: ['eq'] }, audience: 'partner' },
      { audiences: { partner: { tenant: 'all', rows: true } } },
      'needs the tenant "org"',
    ],
    ['groups', { stats: { by: ['insurance'], metrics: { rows: count() } } }, {}, 'stats.by has "insurance"'],
    [
      'a computed field',
      {},
      { computed: { tail: { requires: ['note'], response: z.string(), value: () => '' } } },
      '"tail" requires "note"',
    ],
    [
      'a column in another form',
      {},
      { shown: { note: { requires: [], response: z.string(), value: () => '' } } },
      '"note" requires "note"',
    ],
    ['upsert', { import: { formats: ['csv'], by: 'insurance' } }, {}, 'import.by has "insurance"'],
    ['a lookup', { lookup: 'insurance' }, {}, 'the lookup column "insurance" is encrypted'],
    ['an export without a permission', { export: ['csv'] }, {}, 'export has no permission of its own'],
    ['a column for everyone', {}, { fields: { note: visibleTo(allowAny) } }, 'shows an encrypted column to everyone'],
    ['a row rule', {}, { anonymous: { note: 'x' } }, 'is not an operator of this encrypted column'],
  ])('%s', async (_name, options, more, sentence) => {
    await expect(started(options, more)).rejects.toThrow(sentence);
  });

  test('missing keys are a fault of the app', async () => {
    const options = { modules: [clinic], mount: {}, tenant: () => 'north', membership: () => ({ roles: ['x'] }), memberships: 'not known' };
    await expect(testApp({ ...options, settings: { dataKeys: '', dataSearchKeys: '' } } as never)).rejects.toThrow(
      /The model "patients" has encrypted columns, and DATA_KEYS is not set.*DATA_SEARCH_KEYS is not set/s,
    );
    await expect(testApp({ ...options, settings: { dataKeys: 'nonsense' } } as never)).rejects.toThrow('Key 1 of DATA_KEYS is not id:key');
    await expect(testApp({ ...options, settings: { dataKeys: 'a:QUJD' } } as never)).rejects.toThrow('has 3 bytes instead of 32');
  });

  test('scopes can decide who sees a column', async () => {
    await expect(started({}, { fields: { note: visibleTo(hasScopes()) } })).resolves.toBeUndefined();
  });
});
