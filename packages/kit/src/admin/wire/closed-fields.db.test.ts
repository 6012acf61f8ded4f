import { afterAll, beforeAll, expect, test } from 'vitest';
import { AdminApp, type Browser } from '../../../test/admin/admin-app.ts';
import type { Module } from '../../app/index.ts';
import { resource, writableBy } from '../../crud/index.ts';
import { createTable, insert, migration, model, t } from '../../db/index.ts';
import { isSuperuser, Permission } from '../../permissions/index.ts';
import { describeDatabases } from '../../testing/databases.ts';
import type { AdminField, AdminResourceShape } from '../../app/admin/shapes.ts';
import { modelResource } from '../../screens/screen.ts';

const isOpenBill = new Permission({
  name: 'isOpenBill',
  evaluate: (_context, bill) => (bill === undefined ? 'unknown' : (bill as { is_open: boolean }).is_open),
});

const billColumns = {
  id: t.uuidv7().pk(),
  name: t.text({ min: 1, max: 40 }),
  discount: t.int().dbDefault(0),
  note: t.text(40).nullable(),
  is_open: t.bool().dbDefault(true),
  is_special: t.bool().dbDefault(false),
};
const bills = model('bills', billColumns);
const billResource = resource(bills, {
  unscoped: true,
  fields: { discount: writableBy(isSuperuser), note: writableBy(isOpenBill), is_special: writableBy(isSuperuser) },
  admin: { rows: true },
});
const rateColumns = { id: t.uuidv7().pk(), name: t.text(20), rate: t.int() };
const rates = model('rates', rateColumns);
const rateResource = resource(rates, { unscoped: true, fields: { rate: writableBy(isSuperuser) }, admin: { rows: true } });
const shop: Module = {
  name: 'shop',
  models: [bills, rates],
  resources: [billResource, rateResource],
  migrations: [migration('0001_initial', [createTable('bills', billColumns), createTable('rates', rateColumns)])],
  admin: { resources: [modelResource(billResource), modelResource(rateResource)] },
};

const reason = (permission: string, name = 'bill') =>
  `You cannot change this field. Only users who pass ${permission} can: the resource ${name} says so in writableBy().`;

describeDatabases('fields that writableBy() closes', (database) => {
  let site: AdminApp;
  let staff: Browser;
  let root: Browser;
  beforeAll(async () => {
    site = await new AdminApp(database.db, [shop]).ready();
    staff = await site.browser({ is_staff: true });
    root = await site.browser({ is_staff: true, is_superuser: true });
  });
  afterAll(() => site.close());

  const closedOf = (fields: readonly AdminField[]) =>
    Object.fromEntries(fields.flatMap(({ name, refused }) => (refused === undefined ? [] : [[name, refused]])));
  const shapeFor = async (browser: Browser, list: string): Promise<AdminResourceShape> =>
    (await site.get(browser, 'session')).body.site.resources.find(({ name }: AdminResourceShape) => name === list);

  test('are closed in the form of a record, with the rule, also where it is about the record; saving them is still refused', async () => {
    const [open, settled] = [
      await insert(database.db, bills, { name: 'open' }),
      await insert(database.db, bills, { name: 'settled', is_open: false }),
    ];
    const formOf = async (browser: Browser, id: string) => (await site.get(browser, `resources/bills/${id}`)).body.form;
    const ofAll = { discount: reason('isSuperuser'), is_special: reason('isSuperuser') };
    expect(closedOf((await formOf(staff, open.id)).fields)).toEqual(ofAll);
    expect(closedOf((await formOf(staff, settled.id)).fields)).toEqual({ ...ofAll, note: reason('isOpenBill') });
    expect(closedOf((await formOf(root, settled.id)).fields)).toEqual({ note: reason('isOpenBill') });
    // The value is shown, and nothing but the form has changed.
    expect((await formOf(staff, open.id)).values).toMatchObject({ discount: 0, is_special: false });
    expect((await site.send(staff, 'PATCH', `resources/bills/${open.id}`, { discount: 5 })).status).toBe(403);
    expect((await site.send(staff, 'PATCH', `resources/bills/${open.id}`, { note: 'x' })).status).toBe(200);
    expect((await site.send(root, 'PATCH', `resources/bills/${open.id}`, { discount: 5 })).status).toBe(200);
  });

  test('are closed in the form of a new record and of a selection, where the rule needs no record', async () => {
    const shape = await shapeFor(staff, 'bills');
    const closed = { discount: reason('isSuperuser'), is_special: reason('isSuperuser') };
    expect('fields' in shape.creation && closedOf(shape.creation.fields)).toEqual(closed);
    expect(closedOf(shape.actions.find(({ name }) => name === 'edit-selected')?.fields ?? [])).toEqual(closed);
    const own = await shapeFor(root, 'bills');
    expect('fields' in own.creation && closedOf(own.creation.fields)).toEqual({});
    expect((await site.send(staff, 'POST', 'resources/bills', { name: 'new' })).status).toBe(201);
    expect((await site.send(staff, 'POST', 'resources/bills', { name: 'new', discount: 1 })).status).toBe(403);
  });

  test('that a new record needs make creating it impossible, and the reason says which', async () => {
    expect((await shapeFor(staff, 'rates')).creation).toEqual({ refused: `A new record needs Rate. ${reason('isSuperuser', 'rate')}` });
    expect((await shapeFor(root, 'rates')).creation).toHaveProperty('fields');
  });

  test('offer nothing to restore', async () => {
    const bill = await insert(database.db, bills, { name: 'history' });
    await site.send(root, 'PATCH', `resources/bills/${bill.id}`, { discount: 7, name: 'changed' });
    const restorable = async (browser: Browser) => {
      const { sections } = (await site.get(browser, `resources/bills/${bill.id}`)).body;
      const history = sections.find(({ kind }: { kind: string }) => kind === 'timeline');
      return history.entries.flatMap(({ changes = [] }: { changes?: { name: string; restore?: unknown }[] }) =>
        changes.filter(({ restore }) => restore !== undefined).map(({ name }) => name),
      );
    };
    expect(await restorable(staff)).toEqual(['name']);
    expect((await restorable(root)).toSorted()).toEqual(['discount', 'name']);
  });
});
