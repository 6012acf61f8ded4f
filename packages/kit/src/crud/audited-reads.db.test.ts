import { afterAll, beforeAll, expect, test } from 'vitest';
import { AdminApp } from '../../test/admin/admin-app.ts';
import { auditLog } from '../../test/audit-log.ts';
import { people, type ShopApp, startShop } from '../../test/crud/shop.ts';
import { audit } from '../contrib/audit/index.ts';
import { createTable, insert, migration, model, t } from '../db/index.ts';
import { responseCache } from '../middleware/index.ts';
import { isAuthenticated } from '../permissions/index.ts';
import { screen } from '../screens/screen.ts';
import { describeDatabases } from '../testing/databases.ts';
import { CrudController, resource } from './index.ts';

const records = model('patients', { id: t.uuidv7().pk(), owner_id: t.uuid().readOnly(), name: t.text(40) });
const declared = resource(records, { name: 'patient', owner: 'owner_id', admin: { rows: true }, audit: { reads: true, exports: true } });
class Patients extends CrudController(declared, { permission: isAuthenticated, export: ['jsonl'] }) {}
const module = {
  name: 'patients',
  models: [records],
  migrations: [migration('0001_initial', [createTable('patients', records.columns)])],
};

describeDatabases('a resource with audit: { reads, exports }', (database) => {
  let shop: ShopApp;
  let id: string;
  beforeAll(async () => {
    shop = await startShop({
      database: database.db,
      modules: [audit(), module],
      mount: { '/v1': { '/patients': Patients } },
      middleware: [responseCache({ routes: () => true, maxAgeMs: 600_000 })],
    });
    id = (await insert(database.db, records, { owner_id: people.ann.id, name: 'Doe' })).id;
  });
  afterAll(() => shop.close());

  const entries = async (action: string) =>
    (await auditLog(database.db)).filter((entry) => entry.action === action).map(({ target_id, actor_id }) => [target_id, actor_id]);

  test('records who read a record, each time, whatever fields they ask for and whatever a cache has', async () => {
    for (const url of [`patients/${id}`, `patients/${id}`, `patients/${id}?fields=name`]) {
      const { status, headers } = await shop.call('ann', 'GET', url);
      expect([status, headers['cache-control']]).toEqual([200, 'no-store']);
    }
    expect(await entries('patient.read')).toEqual([1, 2, 3].map(() => [id, people.ann.id]));
  });

  test('a record that the caller does not see, and a list, are not recorded as read', async () => {
    const before = (await entries('patient.read')).length;
    expect((await shop.call('bob', 'GET', `patients/${id}`)).status).toBe(404);
    expect((await shop.call('ann', 'GET', 'patients')).body.items).toHaveLength(1);
    expect(await entries('patient.read')).toHaveLength(before);
  });

  test('records an export, and changes as before', async () => {
    expect((await shop.call('ann', 'GET', 'patients/export?format=jsonl&name=Doe')).status).toBe(422);
    expect((await shop.call('ann', 'GET', 'patients/export?format=jsonl')).status).toBe(200);
    expect(await entries('patient.exported')).toEqual([['patients', people.ann.id]]);
    expect((await shop.call('ann', 'PATCH', `patients/${id}`, { name: 'Roe' })).status).toBe(200);
    expect(await entries('patient.updated')).toEqual([[id, people.ann.id]]);
  });
});

describeDatabases('a resource with audit: { reads } in the admin site', (database) => {
  test('records who opened the page of a record, and not who saw the list', async () => {
    const site = await new AdminApp(
      database.db,
      [{ ...module, resources: [declared], admin: { resources: [screen(declared)] } }],
      {},
    ).ready();
    try {
      const staff = await site.browser();
      const owner = await site.newUser();
      const { id } = await insert(database.db, records, { owner_id: owner.id, name: 'Doe' });
      expect((await site.get(staff, 'resources/patients')).status).toBe(200);
      expect((await site.get(staff, `resources/patients/${id}`)).status).toBe(200);
      const read = (await auditLog(database.db)).filter(({ action }) => action === 'patient.read');
      expect(read.map(({ target_id, actor_id }) => [target_id, actor_id])).toEqual([[id, staff.userId]]);
    } finally {
      await site.close();
    }
  });
});
