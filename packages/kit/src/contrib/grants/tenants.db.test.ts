import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  CommentController,
  docActions,
  DocController,
  docs,
  type Drive,
  folderActions,
  FolderController,
  startDrive,
} from '../../../test/grants/drive.ts';
import { crudOf, CrudController, resource, visibleTo } from '../../crud/index.ts';
import { createTable, find, insert, list, migration, model, t } from '../../db/index.ts';
import { Controller, route } from '../../http/index.ts';
import { isAuthenticated } from '../../permissions/index.ts';
import { describeDatabases } from '../../testing/databases.ts';
import { addGroupMember, createGroup } from '../accounts/index.ts';
import type { Asker } from './declare/asker.ts';
import { grant } from './grant/grant.ts';
import { grantedCondition } from './rows/granted-condition.ts';
import { actionsOf, explainAccess, objectsOf } from './grant/holdings.ts';
import { objectGrants } from './module.ts';
import { objectActions } from './declare/object-actions.ts';
import { hasGrant } from './rows/permission.ts';

class ByHand extends Controller {
  // The row as it is stored, and a row that was read without its tenant and its owner.
  whole = route.get('/whole/:id', { permission: hasGrant('view', docs as never) }, async ({ db, params, authorize }) => {
    await authorize(await find(db, docs, (params as { id: string }).id));
  });
  bare = route.get('/bare/:id', { permission: hasGrant('view', docs as never) }, async ({ params, authorize }) => {
    await authorize({ id: (params as { id: string }).id });
  });
}

/** Plans have a tenant by number, and a field and a transition that ask for grants on plans. */
const plans = model('plans', {
  id: t.uuidv7().pk(),
  org: t.int().readOnly().nullable(),
  owner_id: t.uuid().readOnly().nullable(),
  note: t.text(20).dbDefault('secret'),
  status: t.enum(['open', 'done']).dbDefault('open'),
});
const planActions = objectActions(plans, {
  actions: ['view', 'change', 'delete', 'read_note'],
  tenant: 'org',
  owner: 'owner_id',
  subjects: ['authenticated', 'tenant'],
});
const planResource = resource(plans, {
  rows: () => true,
  input: ['note'],
  fields: { note: visibleTo(hasGrant('read_note', plans as never)) },
  state: 'status',
  transitions: { finish: { from: ['open'], to: 'done', permission: hasGrant('change', plans as never) } },
});
class PlanController extends CrudController(planResource, { permission: isAuthenticated }) {}

describeDatabases('grants and tenants', (database) => {
  let drive: Drive;
  let [shared, owned, foreign] = ['', '', ''];
  const tenants = { ann: 'north', bob: 'north', sue: 'south', root: 'north' } as const;
  const as = (name: string, tenant: string | null): Asker => ({ user: drive.user(name), tenant });
  const on = (id: string) => ({ type: docs, id });
  beforeAll(async () => {
    drive = await startDrive({
      database: database.db,
      mount: {
        '/v1': {
          '/docs': DocController,
          '/folders': FolderController,
          '/comments': CommentController,
          '/hand': ByHand,
          '/plans': PlanController,
        },
      },
      extra: [
        objectGrants({ objects: [docActions, folderActions, planActions], isInTenant: () => true }),
        { name: 'plans', models: [plans], migrations: [migration('0001_initial', [createTable('plans', plans.columns)])] },
      ],
      tenant: ({ user, headers: { 'x-tenant': given } }) =>
        typeof given === 'string' ? given : user === null ? 'north' : tenants[user.username as keyof typeof tenants],
    });
    // Shared in every way that could reach a user of another tenant.
    shared = await drive.doc('shared');
    const everywhere = await createGroup(database.db, { name: 'everywhere', tenantKey: null });
    await addGroupMember(database.db, everywhere.id, drive.user('sue').id);
    for (const subject of ['tenant', 'authenticated', 'public', `group:${everywhere.id}`, `user:${drive.user('sue').id}`])
      await grant(database.db, { subject, set: 'manager', object: on(shared) });
    owned = await drive.doc('of sue, in north', { owner: 'sue' });
    foreign = await drive.doc('of ann, in south', { owner: 'ann', org: 'south' });
  });
  afterAll(() => drive.close());

  const visible = async (asker: Asker): Promise<string[]> => {
    const where = await grantedCondition(database.db, asker, docs, 'view');
    return where === false ? [] : (await list(database.db, docs, { where: where as never })).map(({ id }) => id).toSorted();
  };

  describe('what was granted, and what a user owns, counts in the tenant of the object only', () => {
    const cases: readonly (readonly [string, string | null, () => readonly string[]])[] = [
      ['sue', 'south', () => []],
      ['sue', null, () => []],
      ['sue', 'north', () => [shared, owned]],
      ['ann', 'north', () => [shared]],
      ['ann', 'south', () => [foreign]],
      ['ann', null, () => []],
      ['root', 'north', () => [shared, owned]],
      ['root', 'south', () => [foreign]],
      ['root', null, () => []],
    ];
    test.each(cases)('%s in %s', async (name, tenant, expected) => {
      const asker = as(name, tenant);
      const ids = expected().toSorted();
      expect(await visible(asker)).toEqual(ids);
      expect((await objectsOf(database.db, asker, docs as never, 'view')).toSorted()).toEqual(ids);
      for (const id of [shared, owned, foreign]) {
        expect([...(await actionsOf(database.db, asker, on(id)))].includes('view')).toBe(ids.includes(id));
        const { allowed, reason } = await explainAccess(database.db, asker, on(id), 'view');
        expect([allowed, reason === 'other_tenant']).toEqual([ids.includes(id), tenant !== (id === foreign ? 'south' : 'north')]);
      }
    });
    test('an anonymous caller reaches what is public in its tenant', async () => {
      expect(await visible({ user: null, tenant: 'north' })).toEqual([shared]);
      expect(await visible({ user: null, tenant: 'south' })).toEqual([]);
      expect(await visible({ user: null, tenant: null })).toEqual([]);
    });
  });

  test('an asker without a tenant is a mistake of the program, never "any tenant"', async () => {
    const user = drive.user('sue');
    for (const asker of [
      user,
      { user },
      { user, tenant: undefined },
      { user, tenant: '' },
      { tenant: 'north' },
      undefined,
      null,
    ] as never[])
      for (const asked of [
        () => grantedCondition(database.db, asker, docs, 'view'),
        () => actionsOf(database.db, asker, on(shared)),
        () => objectsOf(database.db, asker, docs as never, 'view'),
        () => explainAccess(database.db, asker, on(shared), 'view'),
      ])
        await expect(asked()).rejects.toThrow(/In a handler, pass await caller\(\)/);
  });

  test('hasGrant on a hand-written route: an object of another tenant is a missing one, for owners and superusers, too', async () => {
    const statuses = async (name: string, id: string) => [
      (await drive.ask(name, 'GET', `hand/whole/${id}`)).status,
      (await drive.ask(name, 'GET', `hand/bare/${id}`)).status,
    ];
    for (const name of ['ann', 'bob', 'root']) expect([name, await statuses(name, shared)]).toEqual([name, [204, 204]]);
    expect(await statuses('sue', shared)).toEqual([404, 404]);
    expect(await statuses('sue', owned)).toEqual([404, 404]);
    expect(await statuses('ann', foreign)).toEqual([404, 404]);
    expect(await statuses('root', foreign)).toEqual([404, 404]);
  });

  test('hasGrant about a field and a transition asks in the tenant of the caller: over HTTP, in /transitions and in programs', async () => {
    const plan = await insert(database.db, plans, { org: 1, owner_id: drive.user('ann').id });
    const object = { type: plans, id: plan.id };
    await grant(database.db, { subject: 'authenticated', actions: ['view', 'change', 'read_note'], object });
    const seen = async (name: string, tenant: string) => {
      const headers = { 'x-tenant': tenant };
      const { body } = await drive.ask(name, 'GET', `plans/${plan.id}`, undefined, headers);
      const transitions = await drive.ask(name, 'GET', `plans/${plan.id}/transitions`, undefined, headers);
      const program = crudOf(drive.app, planResource).as({ user: drive.user(name), tenant });
      const [shown] = await program.present([await program.find(plan.id)]);
      return [body.note, shown?.['note'], JSON.stringify(transitions.body).includes('finish')];
    };
    for (const name of ['ann', 'bob', 'root']) {
      expect([name, await seen(name, '1')]).toEqual([name, ['secret', 'secret', true]]);
      // Neither another tenant nor a key that the column cannot hold.
      for (const tenant of ['2', 'north']) expect([name, await seen(name, tenant)]).toEqual([name, [undefined, undefined, false]]);
    }
    expect(await objectsOf(database.db, as('bob', '1'), plans as never, 'view')).toEqual([plan.id]);
    for (const tenant of ['2', 'north', null]) expect(await objectsOf(database.db, as('bob', tenant), plans as never, 'view')).toEqual([]);
  });
});
