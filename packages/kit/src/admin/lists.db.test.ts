import { afterAll, beforeAll, expect, test } from 'vitest';
import { AdminApp, HOST, type Answer, type Browser } from '../../test/admin/admin-app.ts';
import { auditLog } from '../../test/audit-log.ts';
import type { Module } from '../app/index.ts';
import { apiKeys, createApiKey } from '../contrib/apikeys/index.ts';
import { type Change, CrudController, fullText, resource, visibleTo } from '../crud/index.ts';
import { countQueries } from '../db/engine/query-observer.ts';
import { createTable, insert, migration, model, softDelete, softDeleteUnique, t, timestamps, versioned } from '../db/index.ts';
import { denyAll, isAuthenticated } from '../permissions/index.ts';
import { describeDatabases } from '../testing/databases.ts';
import { modelResource } from '../screens/screen.ts';
import type { AdminRole } from './options.ts';

const customerColumns = { id: t.uuidv7().pk(), name: t.text({ min: 1, max: 80 }), ...timestamps() };
const parcelColumns = {
  id: t.uuidv7().pk(),
  code: t.text({ min: 1, max: 20 }),
  remark: t.text(80).nullable(),
  weight: t.int({ min: 0 }),
  state: t.enum(['packed', 'sent']).dbDefault('packed'),
  cost: t.int().nullable(),
  internal: t.bool().dbDefault(false),
  ...versioned(),
  ...softDelete(),
  ...timestamps(),
};
const customers = model('customers', customerColumns);
const indexes = [{ columns: ['customer_id'] }, softDeleteUnique('code')];
const parcels = model('parcels', { ...parcelColumns, customer_id: t.ref(() => customers) }, { indexes });

const changes: Change[] = [];
const customerResource = resource(customers, { unscoped: true, admin: { rows: true } });
const parcelResource = resource(parcels, {
  unscoped: true,
  version: 'version',
  input: ['code', 'remark', 'weight', 'state', 'customer_id'],
  fields: { cost: visibleTo(denyAll) },
  onChange: (change) => void changes.push(change as never),
  admin: { rows: { internal: false } },
});

const noteColumns = {
  id: t.uuidv7().pk(),
  code: t.text({ min: 1, max: 20 }).unique(),
  body: t.text(),
  internal: t.bool().dbDefault(false),
};
const noteSettings = { fullText: [{ columns: ['body'] }] };
const notes = model('notes', noteColumns, noteSettings);
const noteResource = resource(notes, { unscoped: true, admin: { rows: { internal: false } } });
class NoteController extends CrudController(noteResource, { permission: isAuthenticated, search: fullText({ columns: ['body'] }) }) {}

class ParcelController extends CrudController(parcelResource, { permission: isAuthenticated, search: ['code', 'remark'] }) {}

const depot: Module = {
  name: 'depot',
  models: [customers, parcels, notes],
  resources: [customerResource],
  migrations: [
    migration('0001_initial', [
      createTable('customers', customerColumns),
      createTable('notes', noteColumns, noteSettings),
      createTable('parcels', { ...parcelColumns, customer_id: t.ref('customers') }, { indexes }),
    ]),
  ],
  mount: { '/v1/parcels': new ParcelController(), '/v1/notes': new NoteController() },
  admin: {
    resources: [
      modelResource(customerResource, { singular: 'customer', group: 'Depot' }),
      modelResource(parcelResource, { singular: 'parcel', group: 'Depot', title: 'code' }),
      modelResource(noteResource, { singular: 'note', group: 'Depot', title: 'code' }),
    ],
  },
};

describeDatabases('lists of the admin site', (database) => {
  const roles = new Map<string, AdminRole>();
  let site: AdminApp;
  let staff: Browser;
  let customer: string;

  beforeAll(async () => {
    const needs = { notes: { import: 'operator' }, 'audit-log': { read: 'operator' } } as const;
    const adminRoles = { of: (user: { readonly id: string }) => roles.get(user.id) ?? 'administrator', needs };
    site = await new AdminApp(database.db, [apiKeys(), depot], {}, { roles: adminRoles }).ready();
    staff = await site.browser();
    customer = (await insert(database.db, customers, { name: 'Ada Lovelace' })).id;
    await insert(database.db, customers, { name: 'Grace Hopper' });
  });
  afterAll(() => site.close());

  const as = async (role: AdminRole): Promise<Browser> => {
    const browser = await site.browser();
    roles.set(browser.userId, role);
    return browser;
  };
  const parcel = (values: object) => insert(database.db, parcels, { weight: 1, customer_id: customer, ...values } as never);
  const shape = async (name: string, browser = staff) =>
    (await site.get(browser, 'session')).body.site.resources.find((each: { name: string }) => each.name === name);
  const send = async (path: string, payload: string, type = 'text/csv', browser = staff): Promise<Answer> => {
    const { app } = site;
    const headers = { host: HOST, cookie: browser.cookie, 'x-csrf-token': browser.csrf, 'content-type': type };
    const response = await app.inject({ method: 'POST', url: `/admin/api/lists/${path}`, headers, payload });
    return { status: response.statusCode, body: response.json(), text: response.body, headers: response.headers };
  };
  const count = async (where = '1 = 1') =>
    Number((await database.db.query<{ n: number | bigint }>(`select count(*) as n from parcels where ${where}`))[0]?.n);

  test('a list is downloaded as it is filtered and sorted, with what staff may see and nothing else, and that is recorded', async () => {
    await parcel({ code: 'A-1', remark: '=1+1', cost: 77, state: 'sent' });
    await parcel({ code: 'A-2', remark: 'plain, with comma', cost: 78 });
    await parcel({ code: 'A-3', internal: true });
    const csv = await site.get(staff, 'lists/parcels/export?format=csv&search=A-&sort=-code');
    expect(csv).toMatchObject({
      status: 200,
      headers: { 'content-type': 'text/csv; charset=utf-8', 'content-disposition': 'attachment; filename="parcels.csv"' },
    });
    const [header = '', ...lines] = csv.text.trimEnd().split('\r\n');
    expect(header.split(',')).toEqual(expect.arrayContaining(['id', 'code', 'remark', 'weight', 'state', 'customer_id']));
    expect(header).not.toContain('cost');
    expect(lines.map((line) => line.split(',')[header.split(',').indexOf('code')])).toEqual(['A-2', 'A-1']);
    // A spreadsheet must not run what a customer typed.
    expect(lines[1]).toContain("'=1+1");
    const json = await site.get(staff, 'lists/parcels/export?format=jsonl&filter.state=sent');
    expect(
      json.text
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line)),
    ).toMatchObject([{ code: 'A-1', customer_id: customer }]);
    const [entry] = await auditLog(database.db, { action: 'parcel.exported' });
    expect(entry).toMatchObject({ target_id: 'parcels', actor_id: staff.userId, metadata: { format: 'csv', search: 'A-' } });
    expect((await site.get(staff, 'lists/parcels/export?filter.nothing=1')).status).toBe(422);
    expect((await site.get(staff, 'lists/users/export')).status).toBe(409);
  });

  test('an export that finds no connection free is 503, and takes none', async () => {
    const cursors = Array.from({ length: 5 }, () =>
      database.db.stream('select id from customers union all select id from customers', [], 1)[Symbol.asyncIterator](),
    );
    await Promise.all(cursors.map((cursor) => cursor.next()));
    const refused = await site.get(staff, 'lists/parcels/export');
    expect([refused.status, (refused.body as { code: string }).code]).toEqual([503, 'too_many_cursors']);
    for (const cursor of cursors) await cursor.return?.();
    for (let n = 0; n < 7; n += 1) expect((await site.get(staff, 'lists/parcels/export')).status).toBe(200);
  });

  test('a file is imported through the pipeline, all rows or none; a dry run says the same and writes nothing', async () => {
    changes.length = 0;
    const file = `code,weight,remark,customer_id,created_at\nB-1,3,,${customer},2026-01-01\nB-2,4,two,${customer},2026-01-01\n`;
    const dry = await send('parcels/import?dry_run=true', file);
    expect(dry).toMatchObject({ status: 200, body: { created: 2, updated: 0, dry_run: true, ignored: ['created_at'] } });
    expect(await count("code like 'B-%'")).toBe(0);
    changes.length = 0;
    expect((await send('parcels/import', file)).body).toMatchObject({ created: 2, dry_run: false });
    expect(changes.map(({ operation, via }) => `${operation} ${via}`)).toEqual(['create import', 'create import']);
    expect((await auditLog(database.db, { action: 'parcel.created' })).length).toBeGreaterThanOrEqual(2);
    const wrong = `code,weight,customer_id\nB-3,5,${customer}\nB-4,-1,${customer}\n,2,${customer}\nB-5,1,00000000-0000-7000-8000-000000000000\n`;
    const refused = await send('parcels/import', wrong);
    expect(refused.status).toBe(422);
    expect(refused.body.errors.map(({ location }: { location: unknown }) => location)).toEqual([
      ['body', 3, 'weight'],
      ['body', 4, 'code'],
    ]);
    expect(
      (await send('parcels/import', `code,weight,customer_id\nB-6,1,00000000-0000-7000-8000-000000000000\n`)).body.errors,
    ).toMatchObject([{ location: ['body', 2, 'customer_id'] }]);
    expect(await count("code like 'B-%'")).toBe(2);
  });

  test('a file changes the records that its unique column finds, when that is asked for', async () => {
    await parcel({ code: 'C-1', weight: 1 });
    const lines = [
      { code: 'C-1', weight: 9, customer_id: customer },
      { code: 'C-2', weight: 2, customer_id: customer },
    ];
    const file = lines.map((line) => `${JSON.stringify(line)}\n`).join('');
    expect((await send('parcels/import', file, 'application/x-ndjson')).status).toBe(409);
    const done = await send('parcels/import?mode=upsert', file, 'application/x-ndjson');
    expect(done.body).toMatchObject({ created: 1, updated: 1 });
    expect(await count("code = 'C-1' and weight = 9")).toBe(1);
  });

  test('the same value is set on selected records, each through the pipeline; one that refuses it does not stop the others', async () => {
    const [first, second, hidden] = [
      await parcel({ code: 'D-1' }),
      await parcel({ code: 'D-2' }),
      await parcel({ code: 'D-3', internal: true }),
    ];
    const action = (await shape('parcels')).actions.find(({ name }: { name: string }) => name === 'edit-selected');
    expect(action).toMatchObject({ sets: true, on: 'selection' });
    changes.length = 0;
    const answer = await site.act(staff, 'parcels', 'edit-selected', [first.id, hidden.id, second.id], { weight: 5, remark: null });
    expect(answer.body).toMatchObject({ message: '2 parcels changed; 1 failed.', failures: [{ id: hidden.id }] });
    expect(changes.map(({ operation, via, changed }) => `${operation} ${via} ${changed.join()}`)).toEqual([
      'update admin weight',
      'update admin weight',
    ]);
    const [entry] = await auditLog(database.db, { action: 'parcel.updated', target_id: first.id });
    expect(entry).toMatchObject({ actor_id: staff.userId });
    expect((await site.act(staff, 'parcels', 'edit-selected', [first.id], {})).body.errors[0].message).toBe('Choose at least one field.');
    expect((await site.act(staff, 'parcels', 'edit-selected', [first.id], { weight: -3 })).body.failures).toHaveLength(1);
    expect((await site.act(staff, 'parcels', 'edit-selected', [first.id], { version: 9 })).status).toBe(422);
  });

  test('a search looks into what the controller of the resource declares, word by word', async () => {
    await parcel({ code: 'E-1', remark: 'left at the door' });
    expect((await shape('parcels')).searches).toBe('code or remark');
    const found = async (search: string) =>
      (await site.get(staff, `resources/parcels?search=${encodeURIComponent(search)}`)).body.items.map(
        (item: { title: string }) => item.title,
      );
    expect(await found('door left')).toEqual(['E-1']);
    expect(await found('door e-1')).toEqual(['E-1']);
    expect(await found('door window')).toEqual([]);
  });

  test('a search goes through the backend that the resource has: whole words and their beginnings, by the index, and no rows of others', async () => {
    const [cafe] = [
      await insert(database.db, notes, { code: 'N-1', body: 'Two cups at the Café Central' }),
      await insert(database.db, notes, { code: 'N-2', body: 'Decaf, one cup' }),
      await insert(database.db, notes, { code: 'N-3', body: 'A cafe that staff do not see', internal: true }),
    ];
    const found = async (search: string): Promise<string[]> =>
      (await site.get(staff, `resources/notes?search=${encodeURIComponent(search)}`)).body.items.map(
        (item: { title: string }) => item.title,
      );
    expect(await found('cafe')).toEqual(['N-1']);
    expect(await found('CUP')).toEqual(['N-2', 'N-1']);
    expect(await found('central two')).toEqual(['N-1']);
    // `contains` would find the middle of a word, and the code, which the backend does not look into.
    expect(await found('entral')).toEqual([]);
    expect(await found('N-1')).toEqual([]);
    expect(await found(cafe.id)).toEqual(['N-1']);
    expect(await found('"')).toEqual([]);
    expect((await shape('notes')).searches).toBe('words of body');
    const { queries } = await countQueries(() => site.get(staff, 'resources/notes?search=cafe'));
    const { sql } = queries.find((query) => /match|@@/.test(query.sql))!;
    expect(sql).not.toContain('like');
    const file = await site.get(staff, 'lists/notes/export?search=cup');
    expect(file.text.trim().split('\n')).toHaveLength(3);
  });

  test('references are picked from the list they refer to, by what its records are called', async () => {
    const parcelShape = await shape('parcels');
    const field = parcelShape.creation.fields.find(({ name }: { name: string }) => name === 'customer_id');
    expect(field).toMatchObject({ kind: 'reference', resource: 'customers' });
    expect(parcelShape.filters.find(({ name }: { name: string }) => name === 'customer_id')).toMatchObject({ resource: 'customers' });
    expect((await shape('api-keys')).filters.find(({ name }: { name: string }) => name === 'owner')).toMatchObject({ resource: 'users' });
    expect((await site.get(staff, 'lists/customers/choices?search=love')).body.items).toEqual([{ id: customer, title: 'Ada Lovelace' }]);
    expect((await site.get(staff, `lists/customers/choices?id=${customer}`)).body.items).toEqual([{ id: customer, title: 'Ada Lovelace' }]);
    expect((await site.get(staff, `lists/customers/choices?search=${customer}`)).body.items).toEqual([
      { id: customer, title: 'Ada Lovelace' },
    ]);
    const hidden = await parcel({ code: 'F-1', internal: true });
    expect((await site.get(staff, `lists/parcels/choices?id=${hidden.id}`)).body.items).toEqual([]);
    expect((await site.get(staff, 'lists/parcels/choices?search=F-1')).body.items).toEqual([]);
  });

  test('saved filters belong to one member of staff, one list and one name, and hold only what the list understands', async () => {
    const other = await site.browser();
    const save = (browser: Browser, name: string, query: string) => site.send(browser, 'POST', 'lists/parcels/filters', { name, query });
    expect((await save(staff, 'Sent', 'filter.state=sent')).status).toBe(201);
    expect((await save(staff, 'Sent', 'filter.state=sent&sort=-code')).status).toBe(201);
    expect((await save(staff, 'Broken', 'filter.state=lost')).status).toBe(422);
    expect((await save(staff, 'Broken', 'owner=1')).status).toBe(422);
    const mine = (await site.get(staff, 'lists/parcels/filters')).body.items;
    expect(mine).toEqual([{ id: expect.any(String), name: 'Sent', query: 'filter.state=sent&sort=-code', shared_with: null, own: true }]);
    expect((await site.get(other, 'lists/parcels/filters')).body.items).toEqual([]);
    expect((await site.get(staff, 'lists/customers/filters')).body.items).toEqual([]);
    expect((await site.send(other, 'DELETE', `lists/parcels/filters/${mine[0].id}`)).status).toBe(404);
    expect((await site.send(staff, 'DELETE', `lists/parcels/filters/${mine[0].id}`)).status).toBe(204);
    for (let n = 0; n < 50; n += 1) await save(other, `Filter ${n}`, 'filter.state=sent');
    expect(await save(other, 'One more', 'filter.state=sent')).toMatchObject({ status: 409, body: { code: 'too_many_saved' } });
    expect((await save(other, 'Filter 7', 'filter.state=packed')).status).toBe(201);
  });

  test('each role gets what it may do: read only neither downloads, imports nor edits, an operator downloads', async () => {
    const [reader, operator] = [await as('read_only'), await as('operator')];
    const record = await parcel({ code: 'G-1' });
    const file = `code,weight,customer_id\nG-2,1,${customer}\n`;
    expect((await site.get(reader, 'lists/parcels/export')).body).toMatchObject({ code: 'role_required' });
    expect((await site.get(operator, 'lists/parcels/export')).status).toBe(200);
    for (const browser of [reader, operator]) {
      expect((await send('parcels/import?dry_run=true', file, 'text/csv', browser)).body).toMatchObject({ code: 'role_required' });
      expect((await site.act(browser, 'parcels', 'edit-selected', [record.id], { weight: 8 })).body).toMatchObject({
        code: 'role_required',
      });
    }
    expect(await shape('parcels', reader)).not.toHaveProperty('exports');
    expect(await shape('parcels', operator)).toMatchObject({ exports: ['csv', 'jsonl'] });
    expect(await shape('parcels', operator)).not.toHaveProperty('imports');
    expect(await shape('parcels')).toMatchObject({ imports: { by: 'code' } });
    const outsider = await site.browser({ is_staff: true });
    const csrfless = await site.call('POST', 'api/lists/parcels/import', { cookie: outsider.cookie, 'content-type': 'text/csv' });
    expect(csrfless.body).toMatchObject({ code: 'csrf_failed' });
  });

  test('every operation asks for its role: export, import, bulk edit, undo, revocation, saved filters, pickers, previews', async () => {
    const [reader, operator] = [await as('read_only'), await as('operator')];
    const record = await parcel({ code: 'R-1' });
    const { apiKey } = await createApiKey(database.db, { user: await site.newUser(), name: 'guarded', scopes: [] });
    const json = async (answer: Promise<Answer>) => (await answer).status;
    const note = 'code,body\nR-2,hello\n';
    const upsert = 'code,body\nR-2,changed\n';
    const operations: Readonly<Record<string, (browser: Browser) => Promise<number>>> = {
      export: (browser) => json(site.get(browser, 'lists/parcels/export')),
      import: (browser) => json(send('notes/import?dry_run=true', note, 'text/csv', browser)),
      'import that changes': (browser) => json(send('notes/import?mode=upsert&dry_run=true', upsert, 'text/csv', browser)),
      create: (browser) => json(site.send(browser, 'POST', 'resources/customers', { name: 'New' })),
      update: (browser) => json(site.send(browser, 'PATCH', `resources/parcels/${record.id}`, { weight: 9 })),
      'bulk edit': (browser) => json(site.act(browser, 'parcels', 'edit-selected', [record.id], { weight: 8 })),
      remove: (browser) => json(site.send(browser, 'DELETE', `resources/parcels/${record.id}`)),
      undo: (browser) => json(site.act(browser, 'parcels', 'restore', [record.id])),
      revoke: (browser) => json(site.act(browser, 'api-keys', 'revoke', [apiKey.id])),
      'list that is not for all': (browser) => json(site.get(browser, 'resources/audit-log')),
      'its picker': (browser) => json(site.get(browser, 'lists/audit-log/choices?search=x')),
      'its saved filters': (browser) => json(site.get(browser, 'lists/audit-log/filters')),
      'saving a filter of it': (browser) =>
        json(site.send(browser, 'POST', 'lists/audit-log/filters', { name: 'mine', query: 'filter.action=x' })),
    };
    const allowed: Record<string, (number | string)[]> = {};
    for (const [name, run] of Object.entries(operations)) allowed[name] = [await run(reader), await run(operator), await run(staff)];
    expect(allowed).toEqual({
      export: [403, 200, 200],
      import: [403, 200, 200],
      'import that changes': [403, 403, 200],
      create: [403, 403, 201],
      update: [403, 403, 200],
      'bulk edit': [403, 403, 200],
      remove: [403, 403, 200],
      undo: [403, 200, 200],
      revoke: [403, 403, 200],
      'list that is not for all': [403, 200, 200],
      'its picker': [403, 200, 200],
      'its saved filters': [403, 200, 200],
      'saving a filter of it': [403, 201, 201],
    });
    const saved = (await site.get(operator, 'lists/audit-log/filters')).body.items[0].id;
    expect((await site.send(staff, 'DELETE', `lists/audit-log/filters/${saved}`)).status).toBe(404);
    expect((await site.send(operator, 'DELETE', `lists/audit-log/filters/${saved}`)).status).toBe(204);
  });
});
