import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { byName, people, startShop, orderResource, productResource, type Person, type ShopApp } from '../../../test/crud/shop.ts';
import type { Module } from '../../app/declare/module.ts';
import type { User } from '../../auth/people/principal.ts';
import { createTable, migration, model, t, versioned } from '../../db/index.ts';
import { isAuthenticated, isStaff } from '../../permissions/index.ts';
import { describeDatabases } from '../../testing/databases.ts';
import { testApp, type TestApp } from '../../testing/test-app.ts';
import { AdminAccess } from '../staff/admin-access.ts';
import { type Change, CrudController, crudOf, resource, visibleTo, writableBy } from '../index.ts';

const userOf = (person: Person): User => ({
  id: people[person].id,
  username: person,
  email: null,
  is_active: true,
  is_staff: person === 'sue',
  is_superuser: false,
});
const callerOf = (person: Person) => ({ user: userOf(person), tenant: people[person].tenant });

describeDatabases('a resource for programs', (database) => {
  let shop: ShopApp;
  const own = {} as Record<'ann' | 'bob' | 'cid', string>;
  beforeAll(async () => {
    shop = await startShop({ database: database.db });
    for (const person of ['ann', 'bob', 'cid'] as const) {
      const made = await shop.call(person, 'POST', 'orders', { item: `of ${person}`, quantity: 1, total: '10.00' });
      own[person] = made.body.id;
    }
  });
  afterAll(() => shop.close());

  const as = (person: Person) => crudOf(shop.app, orderResource).as(callerOf(person));
  const itemsOf = async (person: Person) => (await as(person).rows()).map(({ item }) => item).sort();

  test('rows and find reach what the caller reaches over HTTP, and nothing else', async () => {
    expect(await itemsOf('ann')).toEqual(['of ann']);
    expect(await itemsOf('sue')).toEqual(['of ann', 'of bob']);
    expect((await as('ann').find(own.ann)).item).toBe('of ann');
    for (const key of [own.bob, own.cid, 'not-a-uuid']) await expect(as('ann').find(key)).rejects.toMatchObject({ code: 'not_found' });
    expect(await as('sue').rows({ item: 'of bob' })).toHaveLength(1);
    await expect(
      crudOf(shop.app, orderResource)
        .as({ user: userOf('ann') })
        .rows(),
    ).rejects.toMatchObject({ code: 'tenant_required' });
    await expect(crudOf(shop.app, orderResource).as({ user: null, tenant: 'north' }).rows()).rejects.toMatchObject({
      code: 'not_authenticated',
    });
  });

  test('a write goes through the pipeline: owner, tenant and stamps are the caller’s, other rows are out of reach', async () => {
    const made = await as('ann').write().create({ item: 'by program', quantity: 2, total: '5.00' });
    expect(made).toMatchObject({ owner_id: people.ann.id, org: 'north', created_by: people.ann.id, version: 1 });
    const changed = await as('ann').write().update(made.id, { quantity: 3 });
    expect(changed).toMatchObject({ quantity: 3, version: 2 });
    await expect(as('bob').write().update(made.id, { quantity: 4 })).rejects.toMatchObject({ code: 'not_found' });
    expect(await as('ann').write().transition(made.id, 'pay')).toMatchObject({ status: 'paid' });
    await expect(as('ann').write().transition(made.id, 'pay')).rejects.toMatchObject({ code: 'invalid_transition' });
    for (const name of ['nope', 'constructor'])
      await expect(
        as('ann')
          .write()
          .transition(made.id, name as 'pay'),
      ).rejects.toThrow(`has no transition "${name}". Known: pay`);
    await expect(as('bob').write().destroy(made.id)).rejects.toMatchObject({ code: 'not_found' });
    await as('ann').write().destroy(made.id);
    expect(await itemsOf('ann')).toEqual(['of ann']);
  });

  test('a write in a transaction is undone with it', async () => {
    const undone = shop.app.db.transaction(async (tx) => {
      await as('ann').write(tx).create({ item: 'undone', quantity: 1, total: '1.00' });
      throw new Error('no');
    });
    await expect(undone).rejects.toThrow('no');
    expect(await itemsOf('ann')).toEqual(['of ann']);
  });

  test('present shows a row, or several, as the caller sees them', async () => {
    const rows = await as('sue').rows();
    const [first] = await as('ann').present(rows.filter(({ id }) => id === own.ann));
    expect(first).toMatchObject({ item: 'of ann', overdue: false, note: null });
    expect(first).not.toHaveProperty('margin');
    expect(first).not.toHaveProperty('internal_note');
    const staff = await as('sue').present(rows);
    expect(staff.map(({ id }) => id)).toEqual(rows.map(({ id }) => id));
    for (const each of staff) expect(each).toHaveProperty('margin');
    expect(await as('ann').present(await as('ann').find(own.ann))).toEqual(first);
  });

  test('a resource without a controller can be used, one that the app does not know cannot', async () => {
    const products = crudOf(shop.app, productResource).as({ user: null });
    const { id } = await products.write().create({ title: 'Tea', price: '2.00' });
    expect(await products.present(await products.find(id))).toMatchObject({ title: 'Tea' });
    const stranger = resource(model('strangers', { id: t.uuidv7().pk() }), { unscoped: true });
    expect(() => crudOf(shop.app, stranger)).toThrow('"stranger" is not part of this app');
  });
});

const tickets = model('tickets', {
  id: t.uuidv7().pk(),
  org: t.text(20).readOnly(),
  owner_id: t.uuid().readOnly(),
  title: t.text(100),
  priority: t.int().dbDefault(0),
  internal: t.bool().dbDefault(false),
  secret: t.text(20).dbDefault(''),
  status: t.enum(['open', 'closed']).dbDefault('open'),
  ...versioned(),
});
const changes: Change[] = [];
const shared = {
  owner: 'owner_id',
  tenant: 'org',
  version: 'version',
  fields: { secret: visibleTo(isStaff), priority: writableBy(isStaff) },
  state: 'status',
  transitions: { close: { from: ['open'], to: 'closed', permission: isStaff } },
  onChange: (change: unknown) => void changes.push(change as Change),
} as const;

describeDatabases('a resource as the admin site reaches it', (database) => {
  let started: TestApp;
  const everyTenant = resource(tickets, { ...shared, admin: { rows: { internal: false }, tenant: 'all' } });
  class TicketController extends CrudController(everyTenant, { permission: isAuthenticated }) {}
  const module: Module = {
    name: 'tickets',
    models: [tickets],
    migrations: [migration('0001_initial', [createTable('tickets', tickets.columns)])],
  };
  beforeAll(async () => {
    started = await testApp({
      database: database.db,
      authenticators: [byName],
      tenant: () => 'north',
      mount: { '/v1': { '/tickets': TicketController } },
      modules: [module],
    });
  });
  afterAll(() => started.close());
  afterEach(() => void (changes.length = 0));

  const site = (person: Person = 'sue') => new AdminAccess(started.app, everyTenant, callerOf(person));
  const values = { title: 'Help', org: 'south', owner_id: people.cid.id };

  test('a new row gets owner and tenant from the form; the change says that the admin site made it', async () => {
    const made = await site().create(values, { sent: Object.keys(values) });
    expect(made).toMatchObject(values);
    expect(changes).toMatchObject([{ operation: 'create', via: 'admin', user: { username: 'sue' } }]);
    const theirs = crudOf(started.app, everyTenant).as(callerOf('cid'));
    expect((await theirs.find(made.id as string)).title).toBe('Help');
    // A member of staff sees everything in the site, and only her own rows everywhere else.
    expect(await site().find(made.id as string)).toMatchObject({ title: 'Help' });
    await expect(
      crudOf(started.app, everyTenant)
        .as(callerOf('sue'))
        .find(made.id as string),
    ).rejects.toMatchObject({ code: 'not_found' });
  });

  test('only rows that the resource says are in the site, and a write cannot take one out of it', async () => {
    const made = await site().create(values, { sent: [] });
    await expect(site().update(made.id as string, { internal: true }, { sent: ['internal'] })).rejects.toMatchObject({ code: 'not_found' });
    await expect(site().create({ ...values, internal: true }, { sent: [] })).rejects.toMatchObject({ code: 'not_found' });
    const shown = await site().byKeys([made.id as string], 'any', ['title']);
    expect(shown).toMatchObject([{ key: made.id, item: { title: 'Help' } }]);
  });

  test('a stale form is refused, fields that staff may not write too, and owner and tenant never change', async () => {
    const made = await site().create(values, { sent: [] });
    const id = made.id as string;
    const updated = await site().update(id, { title: 'Now', org: 'north', owner_id: people.ann.id }, { sent: ['title'], version: 1 });
    expect(updated).toMatchObject({ title: 'Now', org: 'south', owner_id: people.cid.id, version: 2 });
    await expect(site().update(id, { title: 'Late' }, { sent: ['title'], version: 1 })).rejects.toMatchObject({
      code: 'precondition_failed',
    });
    await expect(site('ann').update(id, { priority: 1 }, { sent: ['priority'] })).rejects.toMatchObject({ code: 'permission_denied' });
    expect((await site().columns()).has('secret')).toBe(true);
    expect((await site('ann').columns()).has('secret')).toBe(false);
  });

  test('transitions ask their permission; removing goes through the pipeline', async () => {
    const made = await site().create(values, { sent: [] });
    const id = made.id as string;
    expect(await site('ann').transitions(made)).toEqual([]);
    await expect(site('ann').transition(id, 'close')).rejects.toMatchObject({ code: 'permission_denied' });
    expect(await site().transitions(made)).toEqual(['close']);
    expect(await site().transition(id, 'close')).toMatchObject({ status: 'closed' });
    await site().destroy(id);
    expect(changes.map(({ operation, via }) => [operation, via])).toEqual([
      ['create', 'admin'],
      ['transition:close', 'admin'],
      ['destroy', 'admin'],
    ]);
  });
});
