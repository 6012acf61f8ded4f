import { afterAll, beforeAll, expect, test } from 'vitest';
import { byName, people, type Person } from '../../test/crud/shop.ts';
import type { Module } from '../app/declare/module.ts';
import { createTable, migration, model, t, versioned } from '../db/index.ts';
import { hasRule, isAuthenticated, isStaff } from '../permissions/index.ts';
import { describeDatabases } from '../testing/databases.ts';
import { testApp, type TestApp } from '../testing/test-app.ts';
import { count, CrudController, crudOf, many, resource, visibleTo } from './index.ts';

const invoices = model('invoices', {
  id: t.uuidv7().pk(),
  org: t.text(20).readOnly(),
  owner_id: t.uuid().readOnly(),
  title: t.text(100),
  is_draft: t.bool().dbDefault(false),
  margin: t.int().dbDefault(0),
  ...versioned(),
});
const remarks = model('remarks', {
  id: t.uuidv7().pk(),
  invoice_id: t.ref(() => invoices),
  owner_id: t.uuid().readOnly(),
  text: t.text(100),
});

const invoiceResource = resource(invoices, {
  tenant: 'org',
  owner: 'owner_id',
  version: 'version',
  fields: { margin: visibleTo(hasRule('back-office')) },
  relations: { remarks: many(() => remarks, 'invoice_id', { limit: 10 }) },
  audiences: { staff: { rows: { is_draft: false }, tenant: 'all' }, team: { rows: true } },
});
const remarkResource = resource(remarks, { owner: 'owner_id', audiences: { staff: { rows: true } } });
const all = {
  filters: { title: ['eq'] },
  stats: { metrics: { number: count() } },
  export: ['jsonl'],
  import: { formats: ['jsonl'] },
  bulk: { create: true, update: true, destroy: true },
  meta: true,
  expand: ['remarks'],
} as const;

class InvoiceController extends CrudController(invoiceResource, { permission: isAuthenticated, ...all }) {}
class BackOfficeController extends CrudController(invoiceResource, { permission: isStaff, audience: 'staff', ...all }) {}
class TeamController extends CrudController(invoiceResource, { permission: isAuthenticated, audience: 'team', ...all }) {}

const module: Module = {
  name: 'invoices',
  models: [invoices, remarks],
  resources: [remarkResource],
  migrations: [
    migration('0001_initial', [
      createTable('invoices', invoices.columns),
      createTable('remarks', { ...remarks.columns, invoice_id: t.ref('invoices') }),
    ]),
  ],
};

/** ann and bob are of one tenant, cid is of another; sue is staff. */
const tenantOf = (name: string) => (name === 'cid' ? 'south' : 'north');

describeDatabases('audiences', (database) => {
  let started: TestApp;
  const ids: Record<string, string> = {};

  async function call(who: Person | null, method: 'GET' | 'POST' | 'PATCH' | 'DELETE' | 'QUERY', path: string, body?: unknown) {
    const response = await started.inject({
      method: method as 'GET',
      url: `/v1/${path}`,
      headers: who === null ? {} : { 'x-user': who },
      ...(body === undefined ? {} : { payload: body as object }),
    });
    const isJson = /^application\/(?:problem\+)?json/.test(String(response.headers['content-type']));
    return { status: response.statusCode, body: isJson && response.body !== '' ? JSON.parse(response.body) : response.body };
  }
  const titles = async (who: Person, path: string) =>
    ((await call(who, 'GET', path)).body.items as { title: string }[]).map(({ title }) => title).sort();

  beforeAll(async () => {
    started = await testApp({
      database: database.db,
      authenticators: [byName],
      tenant: ({ user }) => (user === null ? null : tenantOf(user.username)),
      rules: { 'back-office': ({ audience }) => audience === 'staff' },
      mount: { '/v1': { '/invoices': InvoiceController, '/back-office': BackOfficeController, '/team': TeamController } },
      modules: [module],
    });
    for (const [who, title, isDraft] of [
      ['ann', 'a', false],
      ['bob', 'b', false],
      ['bob', 'draft', true],
      ['cid', 'c', false],
    ] as const) {
      const made = await call(who, 'POST', 'invoices', { title, is_draft: isDraft });
      ids[title] = made.body.id;
    }
    const as = crudOf(started.app, remarkResource).as({ user: userOf('ann'), tenant: 'north' });
    await as.write().create({ invoice_id: ids['a'] as string, text: 'of ann' });
  });
  afterAll(() => started.close());

  const userOf = (person: Person) => ({
    id: people[person].id,
    username: person,
    email: null,
    is_active: true,
    is_staff: person === 'sue',
    is_superuser: false,
  });

  test('every path of a mount reaches the rows of its audience, and no others', async () => {
    expect(await titles('ann', 'invoices')).toEqual(['a']);
    expect(await titles('ann', 'team')).toEqual(['a', 'b', 'draft']);
    expect(await titles('sue', 'back-office')).toEqual(['a', 'b', 'c']);
    for (const [who, path, shown, hidden] of [
      ['ann', 'invoices', 'a', 'b'],
      ['ann', 'team', 'b', 'c'],
      ['sue', 'back-office', 'c', 'draft'],
    ] as const) {
      const number = (await titles(who, path)).length;
      expect((await call(who, 'GET', `${path}/${ids[shown]}`)).status).toBe(200);
      expect((await call(who, 'GET', `${path}/${ids[hidden]}`)).status).toBe(404);
      expect((await call(who, 'PATCH', `${path}/${ids[hidden]}`, { title: 'x' })).status).toBe(404);
      expect((await call(who, 'DELETE', `${path}/${ids[hidden]}`)).status).toBe(404);
      expect((await call(who, 'POST', `${path}/bulk-delete`, { ids: [ids[hidden]] })).status).toBe(404);
      expect((await call(who, 'GET', `${path}/stats?metrics=number`)).body).toMatchObject({ items: [{ number }] });
      expect((await call(who, 'QUERY', path, { where: {} })).body.items).toHaveLength(number);
      expect((await call(who, 'GET', `${path}/export`)).body.trim().split('\n')).toHaveLength(number);
    }
  });

  test('relations lead to the rows that the audience sees', async () => {
    const remarksOf = async (who: Person, path: string) => (await call(who, 'GET', `${path}/${ids['a']}?expand=remarks`)).body.remarks;
    expect(await remarksOf('sue', 'back-office')).toMatchObject([{ text: 'of ann' }]);
    // Remarks have no audience "team": their own rule holds.
    expect(await remarksOf('bob', 'team')).toEqual([]);
    expect(await remarksOf('ann', 'team')).toMatchObject([{ text: 'of ann' }]);
  });

  test('a rule about a field sees the audience', async () => {
    expect((await call('sue', 'GET', `back-office/${ids['a']}`)).body).toHaveProperty('margin');
    expect((await call('ann', 'GET', `invoices/${ids['a']}`)).body).not.toHaveProperty('margin');
    const meta = async (who: Person, path: string) => (await call(who, 'GET', `${path}/meta`)).body.fields;
    expect(await meta('sue', 'back-office')).toContain('margin');
    expect(await meta('sue', 'team')).not.toContain('margin');
  });

  test('programs name an audience; one that the resource does not have is refused', async () => {
    const rows = await crudOf(started.app, invoiceResource)
      .as({ user: userOf('sue'), audience: 'staff' })
      .rows();
    expect(rows.map(({ title }) => title).sort()).toEqual(['a', 'b', 'c']);
    expect(() => crudOf(started.app, invoiceResource).as({ user: userOf('sue'), audience: 'stff' })).toThrow(
      /has no audience "stff".*did you mean "staff"/is,
    );
  });

  test('a created row belongs to its caller, and a write cannot move a row out of the audience', async () => {
    const made = await call('sue', 'POST', 'back-office', { title: 'of sue' });
    expect(made).toMatchObject({ status: 201, body: { title: 'of sue', owner_id: people.sue.id, org: 'north' } });
    expect((await call('sue', 'POST', 'back-office', { title: 'x', owner_id: people.ann.id })).status).toBe(422);
    const moved = await call('sue', 'PATCH', `back-office/${made.body.id}`, { is_draft: true });
    expect(moved.status).toBe(404);
    expect((await call('sue', 'GET', `back-office/${made.body.id}`)).body).toMatchObject({ is_draft: false });
    expect((await call('sue', 'DELETE', `back-office/${made.body.id}`)).status).toBe(204);
  });

  test('callers without credentials are never in an audience', async () => {
    for (const path of ['back-office', 'team', `team/${ids['a']}`]) expect((await call(null, 'GET', path)).status).toBe(401);
    expect((await call('ann', 'GET', 'back-office')).status).toBe(403);
    await expect(crudOf(started.app, invoiceResource).as({ user: null, audience: 'staff' }).rows()).rejects.toMatchObject({
      code: 'not_authenticated',
    });
  });

  test("a resource of the app is in the place of a module's for its audiences, and the controller of the module keeps its own", async () => {
    const ofModule = resource(invoices, { owner: 'owner_id', audiences: { staff: { rows: true } } });
    const ofApp = resource(invoices, { rows: () => ({ title: 'a' }) });
    const holders = resource(remarks, {
      unscoped: true,
      relations: { invoice: { kind: 'one', model: () => invoices, column: 'invoice_id' } as never },
    });
    class Mine extends CrudController(ofModule, { permission: isAuthenticated, operations: { create: false } }) {}
    class Ours extends CrudController(ofApp, { permission: isAuthenticated, operations: { create: false } }) {}
    class Remarks extends CrudController(holders, {
      permission: isAuthenticated,
      expand: ['invoice'] as never,
      operations: { create: false },
    }) {}
    const other = await testApp({
      database: database.db,
      authenticators: [byName],
      tenant: () => 'north',
      silencedChecks: { W010: 'a test', W008: 'a test', W014: 'a test' },
      mount: { '/v1': { '/mine': Mine, '/ours': Ours, '/remarks': Remarks } },
      modules: [{ ...module, resources: [ofModule] }],
    });
    const get = async (who: Person, path: string) =>
      (await other.inject({ method: 'GET', url: `/v1/${path}`, headers: { 'x-user': who } })).json().items;
    expect((await get('bob', 'mine')).map(({ title }: { title: string }) => title).sort()).toEqual(['b', 'draft']);
    expect((await get('bob', 'ours')).map(({ title }: { title: string }) => title)).toEqual(['a']);
    // bob does not own it: what others lead to is the app's resource.
    expect(await get('bob', 'remarks?expand=invoice')).toMatchObject([{ invoice: { title: 'a' } }]);
    await other.close();
  });
});

const plain = model('plain', { id: t.uuidv7().pk(), owner_id: t.uuid().readOnly() });

test('startup reports an audience that does not exist, none where one is needed, and two resources for one', async () => {
  const staffOnly = resource(plain, { audiences: { staff: { rows: true } } });
  const start = (controllers: Record<string, unknown>, resources: object[] = [], modules: Module[] = []) =>
    testApp({ docs: false, mount: { '/v1': controllers as never }, resources: resources as never, modules, database: 'sqlite' }).then(
      () => [],
      (error: { faults?: { id: string; message: string; hint?: string }[] }) =>
        (error.faults ?? []).filter(({ id }) => id === 'E013' || id === 'E017').map(({ id, message, hint }) => `${id} ${message} ${hint}`),
    );
  class Misspelt extends CrudController(staffOnly, { permission: isStaff, audience: 'staf' }) {}
  class Without extends CrudController(staffOnly, { permission: isStaff }) {}
  class Ours extends CrudController(staffOnly, { permission: isStaff, audience: 'staff' }) {}
  expect(await start({ '/a': Misspelt })).toEqual([
    expect.stringMatching(/^E013 Misspelt: .*has no audience "staf".* did you mean "staff"/i),
  ]);
  expect(await start({ '/a': Without })).toEqual([expect.stringMatching(/^E013 Without: .*none is set. Set audience: 'staff'/)]);
  const again = resource(plain, { audiences: { staff: { rows: true } } });
  expect(await start({ '/a': Ours }, [again])).toEqual([
    expect.stringMatching(/^E017 The model "plain" of Ours has two resources for the audience "staff"/),
  ]);
  // One for all others is no clash, nor is one of a module.
  expect(await start({}, [staffOnly, resource(plain, { owner: 'owner_id' })])).toEqual([]);
  expect(await start({}, [staffOnly], [{ name: 'plain', resources: [again] }])).toEqual([]);
  expect(() => resource(plain, { unscoped: true, admin: { rows: true }, audiences: { staff: { rows: true } } })).toThrow(
    /resource\(plain\): has admin and audiences.staff/,
  );
  expect(() => resource(plain, { unscoped: true, audiences: { staff: { row: true } as never } })).toThrow(
    /staff.row".*did you mean "rows"/is,
  );
});
