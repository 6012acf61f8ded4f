import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import * as z from 'zod';
import { AdminApp, type Browser } from '../../test/admin/admin-app.ts';
import { auditLog } from '../../test/audit-log.ts';
import type { Module } from '../app/index.ts';
import { users } from '../contrib/accounts/index.ts';
import { webhooks } from '../contrib/webhooks/index.ts';
import { type Change, CrudController, resource, visibleTo, writableBy } from '../crud/index.ts';
import { createTable, insert, migration, model, openDatabase, softDelete, t, timestamps, versioned } from '../db/index.ts';
import { denyAll, isAuthenticated, isStaff } from '../permissions/index.ts';
import { countQueries } from '../db/engine/query-observer.ts';
import { responseCache } from '../middleware/index.ts';
import { describeDatabases } from '../testing/databases.ts';
import { modelResource } from '../screens/screen.ts';

const columns = {
  id: t.uuidv7().pk(),
  title: t.text({ min: 1, max: 80 }),
  org: t.text(40).readOnly(),
  status: t.enum(['open', 'paid', 'closed']).dbDefault('open').readOnly(),
  priority: t.int().dbDefault(0),
  margin: t.int().nullable(),
  internal: t.bool().dbDefault(false),
  audit_note: t.text(80).nullable(),
  payroll: t.text(40).nullable(),
  ...versioned(),
  ...softDelete(),
  ...timestamps(),
};
const tickets = model('tickets', { ...columns, owner_id: t.ref(() => users).readOnly() });
const plain = model('memos', { id: t.uuidv7().pk(), name: t.text(20) });

const changes: Change[] = [];
const hooked: string[] = [];

const ticketResource = resource(tickets, {
  tenant: 'org',
  owner: 'owner_id',
  version: 'version',
  input: ['title', 'priority', 'margin', 'internal', 'payroll'],
  hidden: ['audit_note'],
  fields: { margin: writableBy(denyAll), payroll: visibleTo(denyAll) },
  state: 'status',
  transitions: {
    pay: { from: ['open'], to: 'paid', input: z.object({ reference: z.string().min(2) }), summary: 'Mark as paid' },
    close: { from: ['open', 'paid'], to: 'closed', permission: isStaff },
    reopen: { from: ['closed'], to: 'open', permission: denyAll },
  },
  hooks: {
    async update({ input }, next) {
      hooked.push('update');
      return next({ ...input, ...(input.title === undefined ? {} : { title: input.title.trim() }) });
    },
  },
  onChange: (change) => void changes.push(change as never),
  events: true,
  admin: { rows: { internal: false }, tenant: 'all' },
});

class TicketController extends CrudController(ticketResource, { permission: isAuthenticated }) {}

const desk: Module = {
  name: 'desk',
  requires: ['accounts'],
  models: [tickets, plain],
  migrations: [
    migration('0001_initial', [
      createTable('tickets', { ...columns, owner_id: t.ref('users') }),
      createTable('memos', { id: t.uuidv7().pk(), name: t.text(20) }),
    ]),
  ],
  mount: { '/v1/tickets': new TicketController() },
  admin: { resources: [modelResource(ticketResource, { singular: 'ticket', filters: ['status', 'payroll'] }), modelResource(plain)] },
};

describeDatabases('a CRUD resource in the admin site', (database) => {
  let site: AdminApp;
  let staff: Browser;
  let owner: { readonly id: string };

  beforeAll(async () => {
    site = await new AdminApp(database.db, [webhooks(), desk], {
      tenant: ({ headers }) => (typeof headers['x-org'] === 'string' ? headers['x-org'] : null),
      middleware: [responseCache({ routes: ({ controller }) => controller === 'TicketController' })],
    }).ready();
    staff = await site.browser();
    owner = await site.newUser();
  });
  afterAll(() => site.close());
  afterEach(() => {
    changes.length = 0;
    hooked.length = 0;
  });

  const create = (fields: object = {}) =>
    site.send(staff, 'POST', 'resources/tickets', { title: 'Help', owner_id: owner.id, org: 'south', ...fields });
  const created = async (fields: object = {}): Promise<string> => (await create(fields)).body.id;
  const read = async (id: string) => (await site.get(staff, `resources/tickets/${id}`)).body;
  const patch = (id: string, fields: object, headers: Record<string, string> = {}) =>
    site.call('PATCH', `api/resources/tickets/${id}`, { cookie: staff.cookie, 'x-csrf-token': staff.csrf, ...headers }, fields);
  const events = async () =>
    (await database.db.query<{ type: string }>('select type from webhook_events order by id')).map(({ type }) => type);

  test('90: the admin edits a row through the same pipeline: hook, onChange, audit, event, version', async () => {
    const id = await created();
    const before = await events();
    changes.length = 0;
    const record = await read(id);
    expect(record.form.version).toBe(1);
    expect(await patch(id, { title: '  Printer on fire ' }, { 'if-match': '"1"' })).toMatchObject({ status: 200 });
    expect(hooked).toEqual(['update']);
    expect(changes).toMatchObject([
      {
        operation: 'update',
        via: 'admin',
        changed: ['title'],
        user: { id: staff.userId },
        after: { title: 'Printer on fire', version: 2 },
      },
    ]);
    expect((await events()).slice(before.length)).toEqual(['ticket.updated']);
    const [entry] = await auditLog(database.db, { action: 'ticket.updated', target_id: id });
    expect(entry).toMatchObject({ target_type: 'ticket', actor_id: staff.userId });
    const after = await read(id);
    expect(after).toMatchObject({ title: 'Printer on fire', form: { version: 2 } });
    const [newest] = after.sections.at(-1).entries;
    expect(newest).toMatchObject({ title: 'Ticket updated', folded: [{ title: 'Event ticket.updated' }] });
  });

  test('46: onChange is called for what the site creates, edits, moves, deletes and restores, and not for an edit without a change', async () => {
    const id = await created();
    await patch(id, { title: 'Again' });
    expect((await patch(id, { title: 'Again' })).body.message).toBe('Nothing was changed.');
    await site.act(staff, 'tickets', 'close', [id]);
    expect((await site.send(staff, 'DELETE', `resources/tickets/${id}`)).body).toMatchObject({ undo: { action: 'restore', ids: [id] } });
    await site.act(staff, 'tickets', 'restore', [id]);
    expect(changes.map(({ operation, via }) => `${operation} ${via}`)).toEqual([
      'create admin',
      'update admin',
      'transition:close admin',
      'destroy admin',
      'restore admin',
    ]);
  });

  test('a form that was made from another version is refused, and changes nothing', async () => {
    const id = await created();
    await patch(id, { title: 'First' }, { 'if-match': '"1"' });
    expect(await patch(id, { title: 'Second' }, { 'if-match': '"1"' })).toMatchObject({
      status: 412,
      body: { code: 'precondition_failed' },
    });
    expect((await read(id)).title).toBe('First');
  });

  test('a new row gets owner and tenant from the form, and neither can be edited', async () => {
    const shape = (await site.get(staff, 'session')).body.site.resources.find((each: { name: string }) => each.name === 'tickets');
    expect(shape.creation.fields.slice(0, 2)).toMatchObject([
      { name: 'org', required: true },
      { name: 'owner_id', required: true },
    ]);
    const id = await created({ org: 'east' });
    const record = await read(id);
    expect(record.values).toMatchObject({ org: 'east', owner_id: { resource: 'users', id: owner.id } });
    expect(record.form.fields.map(({ name }: { name: string }) => name)).toEqual(['title', 'priority', 'margin', 'internal']);
    expect((await patch(id, { org: 'west' })).status).toBe(422);
    expect((await create({ owner_id: undefined })).body.errors[0]).toMatchObject({ location: ['body', 'owner_id'] });
    expect((await create({ title: '' })).body.errors[0]).toMatchObject({ location: ['body', 'title'] });
  });

  test('rows that the resource does not give to the site are not listed, read or reached, and no write takes a row out of it', async () => {
    const hidden = await insert(database.db, tickets, { title: 'Inside', org: 'south', owner_id: owner.id, internal: true });
    expect((await site.get(staff, 'resources/tickets?search=Inside')).body.items).toEqual([]);
    expect((await site.get(staff, `resources/tickets/${hidden.id}`)).status).toBe(404);
    expect((await patch(hidden.id, { title: 'x' })).status).toBe(404);
    const id = await created();
    expect((await patch(id, { internal: true })).status).toBe(404);
    expect((await read(id)).values.internal).toBe(false);
  });

  test('columns that staff may not see are in no list, page, form, search or filter; fields they may not write are refused', async () => {
    const id = await created({ title: 'Secretive' });
    await database.db.query(`update tickets set payroll = 'B7', audit_note = 'hush' where id = $1`, [id]);
    const record = await site.get(staff, `resources/tickets/${id}`);
    const list = await site.get(staff, 'resources/tickets?search=Secretive');
    for (const { text } of [record, list])
      for (const hidden of ['B7', 'hush', '"payroll":', 'audit_note']) expect(text).not.toContain(hidden);
    expect((await site.get(staff, 'resources/tickets?filter.payroll=B7')).body.items).toEqual([]);
    expect((await site.get(staff, 'resources/tickets?search=B7')).body.items).toEqual([]);
    expect(await patch(id, { margin: 3 })).toMatchObject({ status: 403, body: { code: 'permission_denied' } });
    expect((await read(id)).values.margin).toBe(null);
  });

  test('transitions are actions: offered from the states and to the people they are for, with their input as fields', async () => {
    const shape = (await site.get(staff, 'session')).body.site.resources.find((each: { name: string }) => each.name === 'tickets');
    expect(shape.actions).toMatchObject([
      { name: 'pay', label: 'Mark as paid', fields: [{ name: 'reference', kind: 'text', required: true }] },
      { name: 'close', label: 'Close' },
      { name: 'reopen' },
      { name: 'edit-selected' },
      { name: 'restore' },
      { name: 'delete-selected', dryRun: 'deleted' },
    ]);
    const id = await created();
    expect((await read(id)).actions).toEqual(['pay', 'close']);
    expect((await site.act(staff, 'tickets', 'pay', [id], { reference: 'x' })).body.errors[0].location).toEqual([
      'body',
      'fields',
      'reference',
    ]);
    expect((await site.act(staff, 'tickets', 'pay', [id], { reference: 'INV-1' })).body.message).toBe('1 ticket paid.');
    expect((await read(id)).actions).toEqual(['close']);
    expect((await site.act(staff, 'tickets', 'pay', [id], { reference: 'INV-1' })).body).toMatchObject({
      failures: [{ id, message: expect.stringContaining('not possible from "paid"') }],
    });
    await site.act(staff, 'tickets', 'close', [id]);
    expect((await site.act(staff, 'tickets', 'reopen', [id])).body.failures).toHaveLength(1);
    expect((await read(id)).values.status.value).toBe('closed');
  });

  test('what was deleted is found behind its filter, and restored', async () => {
    const id = await created({ title: 'Removed' });
    await site.send(staff, 'DELETE', `resources/tickets/${id}`);
    const list = async (query: string) =>
      (await site.get(staff, `resources/tickets?search=Removed&${query}`)).body.items.map((item: { id: string }) => item.id);
    expect(await list('')).toEqual([]);
    expect(await list('filter.deleted=yes')).toEqual([id]);
    expect(await read(id)).toMatchObject({ state: { value: 'deleted' }, actions: ['restore'], removable: false });
    expect((await site.act(staff, 'tickets', 'restore', [id])).body.message).toBe('1 ticket restored.');
    expect(await list('')).toEqual([id]);
  });

  test('what the site creates, edits, moves, deletes and restores is seen by the next request of a cached list', async () => {
    const reader = await site.browser({ username: 'cached-reader', is_staff: true });
    const request = () => site.call('GET', '/v1/tickets', { cookie: reader.cookie, 'x-org': 'south' });
    // The session is read with every request; the rows are not where the response is kept.
    const statements = async () => (await countQueries(request)).queries.filter(({ sql }) => sql.includes('tickets')).length;
    // On PostgreSQL nothing is kept before the cache hears of the writes of other processes.
    await vi.waitFor(async () => {
      await request();
      expect(await statements()).toBe(0);
    }, 20_000);
    const shown = async (): Promise<string[]> => {
      const { body } = await request();
      expect(await statements()).toBe(0);
      return body.items.map((item: { title: string; status: string }) => `${item.title} ${item.status}`);
    };
    const id = await created({ owner_id: reader.userId, title: 'Kept' });
    expect(await shown()).toEqual(['Kept open']);
    await patch(id, { title: 'Edited' });
    expect(await shown()).toEqual(['Edited open']);
    await site.act(staff, 'tickets', 'close', [id]);
    expect(await shown()).toEqual(['Edited closed']);
    await site.send(staff, 'DELETE', `resources/tickets/${id}`);
    expect(await shown()).toEqual([]);
    await site.act(staff, 'tickets', 'restore', [id]);
    expect(await shown()).toEqual(['Edited closed']);
  });
});

describe('modelResource(resource)', () => {
  test('a resource that does not say what staff see is not in the site', () => {
    const closed = resource(plain, { unscoped: true });
    expect(() => modelResource(closed)).toThrow(/does not say what staff see: add `admin: \{ rows: true \}`/);
  });

  test('a model with a resource is not shown around its rules, and a resource must be part of the app', async () => {
    const shown = (source: Parameters<typeof modelResource>[0]): Module => ({
      name: 'shown',
      admin: { resources: [modelResource(source)] },
    });
    const db = await openDatabase('sqlite::memory:');
    const mounted: Module = { ...desk, admin: {} };
    expect(() => new AdminApp(db, [mounted, shown(tickets)], { tenant: () => null })).toThrow(
      /has the resource "ticket", whose rules would not hold here/,
    );
    expect(() => new AdminApp(db, [shown(resource(plain, { unscoped: true, admin: { rows: true } }))])).toThrow(/is not part of this app/);
    await db.close();
  });
});
