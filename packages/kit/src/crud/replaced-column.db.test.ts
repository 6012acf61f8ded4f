import { afterAll, beforeAll, expect, test } from 'vitest';
import { startShop, type ShopApp } from '../../test/crud/shop.ts';
import { createTable, migration, model, reveal, t } from '../db/index.ts';
import { find, insert, insertMany, update } from '../db/rows/repository.ts';
import { isAuthenticated } from '../permissions/index.ts';
import { describeDatabases } from '../testing/databases.ts';
import { CrudController, resource } from './index.ts';

const contacts = model('contacts', {
  id: t.uuidv7().pk(),
  org: t.text(20).readOnly(),
  name: t.text(40).unique(),
  phone: t
    .text(20)
    .nullable()
    .default(() => 'unknown'),
  phone_sealed: t.text(20).nullable().encrypted({ search: 'equality', tenant: 'org', replaces: 'phone' }),
});
const contactResource = resource(contacts, { tenant: 'org' });
class Contacts extends CrudController(contactResource, {
  permission: isAuthenticated,
  bulk: { create: true, update: true },
  import: { formats: ['jsonl'], by: 'name' },
}) {}
const module = {
  name: 'contacts',
  models: [contacts],
  migrations: [migration('0001_initial', [createTable('contacts', contacts.columns)])],
};

describeDatabases('an encrypted column that replaces another', (database) => {
  let shop: ShopApp;
  beforeAll(async () => {
    shop = await startShop({ database: database.db, modules: [module], mount: { '/v1': { '/contacts': Contacts } } });
  });
  afterAll(() => shop.close());
  const phones = async (id: string) => {
    const row = await find(database.db, contacts, id);
    return row === undefined ? [] : [row.phone, reveal(database.db, contacts, row, 'phone_sealed')];
  };
  const values = { org: 'north', name: 'a' };

  test('gets what inserts and updates of code write', async () => {
    const { db } = database;
    const row = await insert(db, contacts, { ...values, phone: '1' });
    expect(await phones(row.id)).toEqual(['1', '1']);
    await update(db, contacts, row.id, { phone: '2' });
    expect(await phones(row.id)).toEqual(['2', '2']);
    await update(db, contacts, row.id, { name: 'other' });
    expect(await phones(row.id)).toEqual(['2', '2']);
    await update(db, contacts, row.id, { phone: null });
    expect(await phones(row.id)).toEqual([null, null]);
    const [byDefault, given] = await insertMany(db, contacts, [
      { ...values, name: 'd' },
      { ...values, name: 'e', phone: '3' },
    ]);
    expect([await phones(byDefault?.id ?? ''), await phones(given?.id ?? '')]).toEqual([
      ['unknown', 'unknown'],
      ['3', '3'],
    ]);
    const searched = 'select count(*) as n from contacts where phone_sealed is not null and phone_sealed_search is null';
    expect(Number((await db.query<{ n: number | bigint }>(searched))[0]?.n)).toBe(0);
  });

  test('gets what a resource writes, one by one, in bulk and from files; clients cannot send it', async () => {
    const made = await shop.call('ann', 'POST', 'contacts', { name: 'one', phone: '10' });
    expect([made.status, made.body]).toMatchObject([201, { phone: '10' }]);
    expect(await phones(made.body.id)).toEqual(['10', '10']);
    await shop.call('ann', 'PATCH', `contacts/${made.body.id}`, { phone: '11' });
    expect(await phones(made.body.id)).toEqual(['11', '11']);
    expect((await shop.call('ann', 'PATCH', `contacts/${made.body.id}`, { phone_sealed: '12' })).status).toBe(422);
    const many = await shop.call('ann', 'POST', 'contacts/bulk', { items: [{ name: 'two', phone: '20' }, { name: 'three' }] });
    const [two, three] = (many.body.items as { id: string }[]).map(({ id }) => id) as [string, string];
    expect([await phones(two), await phones(three)]).toEqual([
      ['20', '20'],
      ['unknown', 'unknown'],
    ]);
    const changed = await shop.call('ann', 'POST', 'contacts/bulk-update', { ids: [two, three], changes: { phone: '30' } });
    expect([changed.status, changed.text]).toEqual([200, changed.text]);
    expect([await phones(two), await phones(three)]).toEqual([
      ['30', '30'],
      ['30', '30'],
    ]);
    const imported = await shop.call('ann', 'POST', 'contacts/import?mode=upsert', '{"name":"two","phone":"40"}\n', {
      'content-type': 'application/x-ndjson',
    });
    expect([imported.status, imported.text]).toEqual([201, imported.text]);
    expect(await phones(two)).toEqual(['40', '40']);
  });
});
