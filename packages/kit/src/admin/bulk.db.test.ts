import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { auditLog } from '../../test/audit-log.ts';
import { AdminApp, type Browser } from '../../test/admin/admin-app.ts';
import type { AdminAction } from '../app/admin/declaration.ts';
import { adminDone, adminEach } from '../app/admin/each.ts';
import type { Module } from '../app/index.ts';
import { webhooks } from '../contrib/webhooks/index.ts';
import { CrudController, resource } from '../crud/index.ts';
import { createTable, insertMany, migration, model, softDelete, softDeleteUnique, t, timestamps } from '../db/index.ts';
import { isStaff } from '../permissions/index.ts';
import { describeDatabases } from '../testing/databases.ts';
import { modelResource } from '../screens/screen.ts';

const columns = {
  id: t.uuidv7().pk(),
  code: t.text(20),
  status: t.enum(['open', 'paid']).dbDefault('open').readOnly(),
  note: t.text(40).nullable(),
  secret: t.bool().dbDefault(false),
  ...softDelete(),
  ...timestamps(),
};
const indexes = [softDeleteUnique('code')];
const bills = model('bills', columns, { indexes });
const plainColumns = { id: t.uuidv7().pk(), name: t.text(20).unique() };
const plain = model('memos', plainColumns);
const holderColumns = { id: t.uuidv7().pk(), memo_id: t.ref('memos') };

const billResource = resource(bills, {
  unscoped: true,
  state: 'status',
  transitions: { pay: { from: ['open'], to: 'paid' } },
  events: ({ after, before }) => ({ type: 'bill.changed', data: { code: (after ?? before)?.code }, audience: { broadcast: true } }),
  admin: { rows: { secret: false } },
});
/** Statements without a transaction of their own, as an application may write them. */
const rename: AdminAction = {
  name: 'rename',
  label: 'Rename',
  tone: 'neutral',
  on: 'selection',
  dryRun: 'renamed',
  async run(context, ids) {
    const result = await adminEach(context, ids, async (id) => {
      const name = id === ids.at(-1) ? 'last' : 'same';
      await context.db.query('update memos set name = $2 where id = $1', [id, name]);
    });
    return adminDone(result, ['memo', 'memos'], 'renamed');
  },
};
class BillController extends CrudController(billResource, { permission: isStaff }) {}
const office: Module = {
  name: 'office',
  models: [bills, plain, model('holders', { id: t.uuidv7().pk(), memo_id: t.ref(() => plain) })],
  migrations: [
    migration('0001_initial', [
      createTable('bills', columns, { indexes }),
      createTable('memos', plainColumns),
      createTable('holders', holderColumns),
    ]),
  ],
  mount: { '/v1/bills': new BillController() },
  admin: {
    resources: [
      modelResource(billResource, { singular: 'bill', title: 'code' }),
      modelResource(plain, { singular: 'memo', actions: [rename] }),
    ],
  },
};

describeDatabases('bulk changes in the admin site', (database) => {
  let site: AdminApp;
  let staff: Browser;
  let reader: Browser;
  let ids: string[];
  let hidden: string;
  beforeAll(async () => {
    const roles = {
      of: ({ username }: { username: string }) => (username === 'reader' ? ('read_only' as const) : ('administrator' as const)),
    };
    site = await new AdminApp(database.db, [webhooks(), office], {}, { roles }).ready();
    staff = await site.browser();
    reader = await site.browser({ username: 'reader', is_staff: true });
  });
  afterAll(() => site.close());
  beforeEach(async () => {
    await database.db.execute('delete from holders');
    await database.db.execute('delete from memos');
    await database.db.execute('delete from bills');
    const rows = ['A', 'B', 'C', 'D'].map((code, index) => ({ code, status: index < 2 ? ('open' as const) : ('paid' as const) }));
    ids = (await insertMany(database.db, bills, rows as never)).map(({ id }) => id);
    hidden = (await insertMany(database.db, bills, [{ code: 'hidden', secret: true }] as never))[0]?.id ?? '';
  });

  const preview = (list: string, action: string, chosen: readonly string[], fields: object = {}, browser = staff) =>
    site.send(browser, 'POST', `resources/${list}/actions/${action}/preview`, { ids: chosen, fields });
  /** Everything that a change leaves behind. */
  const traces = async () => ({
    bills: await database.db.query('select id, code, status, note, deleted_at from bills order by id'),
    memos: await database.db.query('select id, name from memos order by id'),
    audit: (await auditLog(database.db)).length,
    events: (await database.db.query('select id from webhook_events')).length,
  });

  test('a dry run says how many can be done and why others cannot, and leaves no trace', async () => {
    const before = await traces();
    const { body } = await preview('bills', 'pay', [...ids, hidden]);
    expect(body).toMatchObject({ able: 2, tone: 'warning', message: '2 records will be paid, 3 cannot.' });
    expect(body.failures.map(({ id }: { id: string }) => id)).toEqual([ids[2], ids[3], hidden]);
    // A row that staff may not see is as missing as one that never was.
    const absent = await preview('bills', 'pay', ['01890000-0000-7000-8000-000000000000']);
    expect(body.failures[2].message).toBe(absent.body.failures[0].message);
    expect(await traces()).toEqual(before);

    const done = await site.act(staff, 'bills', 'pay', [...ids, hidden]);
    expect(done.body.failures).toEqual(body.failures);
    const after = await traces();
    expect([after.audit, after.events]).toEqual([before.audit + 2, before.events + 2]);
  });

  test('a dry run sees what it did to the records before: two of them cannot get one unique value', async () => {
    const before = await traces();
    const { body } = await preview('bills', 'edit-selected', ids.slice(0, 2), { code: 'same' });
    expect(body).toMatchObject({ able: 1, failures: [{ id: ids[1] }] });
    expect(await traces()).toEqual(before);
    // A later record is not lost with one that failed in SQL.
    const taken = await preview('bills', 'edit-selected', [ids[0], ids[2]] as string[], { code: 'A' });
    expect(taken.body).toMatchObject({ able: 1, failures: [{ id: ids[2] }] });
    expect(await traces()).toEqual(before);
  });

  test('a selection is deleted: what cannot be is named, and undo restores exactly what was deleted', async () => {
    const before = await traces();
    const chosen = [ids[0], hidden, ids[1]] as string[];
    expect((await preview('bills', 'delete-selected', chosen)).body).toMatchObject({ able: 2, failures: [{ id: hidden }] });
    expect(await traces()).toEqual(before);
    const { body } = await site.act(staff, 'bills', 'delete-selected', chosen);
    expect(body).toMatchObject({
      message: '2 bills deleted; 1 failed.',
      failures: [{ id: hidden }],
      undo: { action: 'restore', ids: [ids[0], ids[1]] },
    });
    expect((await site.get(staff, 'resources/bills')).body.count).toBe(2);
    const restored = await site.act(staff, 'bills', body.undo.action, body.undo.ids);
    expect(restored.body).toEqual({ message: '2 bills restored.' });
    expect((await traces()).bills).toEqual(before.bills);
  });

  test('a model without a resource is checked likewise, and a permanent deletion offers no undo', async () => {
    const made = await insertMany(database.db, plain, [{ name: 'held' }, { name: 'free' }]);
    const [held, free] = made.map(({ id }) => id) as [string, string];
    await database.db.query('insert into holders (id, memo_id) values ($1, $2)', [free, held]);
    const before = await traces();
    expect((await preview('memos', 'delete-selected', [held, free])).body).toMatchObject({ able: 1, failures: [{ id: held }] });
    expect((await preview('memos', 'edit-selected', [held, free], { name: 'both' })).body).toMatchObject({ able: 1 });
    expect(await traces()).toEqual(before);
    const { body } = await site.act(staff, 'memos', 'delete-selected', [held, free]);
    expect(body.undo).toBeUndefined();
    expect((await traces()).memos).toMatchObject([{ id: held }]);
  });

  test('a record that fails in SQL does not end the dry run of an action of the application', async () => {
    const made = (await insertMany(database.db, plain, [{ name: 'one' }, { name: 'two' }, { name: 'three' }])).map(({ id }) => id);
    const before = await traces();
    expect((await preview('memos', 'rename', made)).body).toMatchObject({ able: 2, failures: [{ id: made[1] }] });
    expect(await traces()).toEqual(before);
  });

  test('a role that may not run an action may not try it either', async () => {
    for (const action of ['pay', 'edit-selected', 'delete-selected'])
      expect((await preview('bills', action, ids, action === 'edit-selected' ? { note: 'x' } : {}, reader)).status).toBe(403);
  });
});
