import { expect, test } from 'vitest';
import { createApp } from '../../app/assemble/create-app.ts';
import { migrateApp } from '../../app/data/migration-modules.ts';
import type { User } from '../../auth/index.ts';
import type { Database } from '../../db/engine/db.ts';
import { createTable, insert, migration, model, t } from '../../db/index.ts';
import { describeDatabases } from '../../testing/databases.ts';
import { grant } from './grant/grant.ts';
import { actionsOf } from './grant/holdings.ts';
import { objectGrants } from './module.ts';
import { objectActions } from './declare/object-actions.ts';

const columns = { id: t.uuidv7().pk(), title: t.text(20) };
const tables = [migration('0001_initial', [createTable('plans', columns)])];
const DESK = '01890000-0000-7000-8000-0000000000aa';
const ada: User = { id: 'ada', username: 'ada', email: null, is_active: true, is_staff: false, is_superuser: false };

/** Memberships of the app's own: ada is in the desk, as long as the list says so. */
const members = new Set(['ada']);
const groups = {
  groupsOf: async (_db: unknown, id: string) => (members.has(id) ? [DESK] : []),
  findById: async (_db: unknown, id: string) => (id === DESK ? { id: DESK, name: 'desk', tenantKey: null } : null),
  findByName: async () => null,
};

/** The app as it is deployed: the same table, with the sets of the day. */
async function deployed<R>(
  database: Database,
  sets: Readonly<Record<string, readonly string[]>>,
  work: (plans: ReturnType<typeof planModel>) => Promise<R>,
): Promise<R> {
  const plans = planModel();
  const actions = objectActions(plans, { actions: ['view', 'change', 'share'], sets });
  const app = createApp({
    database,
    log: { level: 'silent' },
    modules: [objectGrants({ objects: [actions], groups }), { name: 'plans', models: [plans], migrations: tables }],
    mount: {},
  });
  try {
    await app.openDatabases();
    await migrateApp(app);
    await app.ready();
    return await work(plans);
  } finally {
    await app.close();
  }
}

const planModel = () => model('plans', columns);

describeDatabases('a grant stores the name of a set', (database) => {
  test('so that a new declaration changes everybody, and a set that is gone gives nothing; groups are the app’s own', async () => {
    const { db } = database;
    const id = await deployed(db, { viewer: ['view'] }, async (plans) => {
      const plan = await insert(db, plans, { title: 'launch' });
      await grant(db, { subject: `group:${DESK}`, set: 'viewer', object: { type: plans, id: plan.id } });
      expect(await actionsOf(db, { user: ada, tenant: null }, { type: plans, id: plan.id })).toEqual(new Set(['view']));
      // Programs print the message: it has what is wrong.
      const misspelt = grant(db, { subject: `group:${DESK}`, set: 'viewr', object: { type: plans, id: plan.id } });
      await expect(misspelt).rejects.toThrow('There is no set "viewr". Known: viewer.');
      return plan.id;
    });
    const held = (sets: Readonly<Record<string, readonly string[]>>) =>
      deployed(db, sets, async (plans) => [...(await actionsOf(db, { user: ada, tenant: null }, { type: plans, id }))].toSorted());
    expect(await held({ viewer: ['view', 'change'] })).toEqual(['change', 'view']);
    expect(await held({ reader: ['view'] })).toEqual([]);
    members.clear();
    expect(await held({ viewer: ['view'] })).toEqual([]);
    members.add('ada');
    expect(await held({ viewer: ['view'] })).toEqual(['view']);
  });
});
