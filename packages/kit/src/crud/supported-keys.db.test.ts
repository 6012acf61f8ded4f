import { afterAll, beforeAll, expect, test } from 'vitest';
import { startShop, type Person, type ShopApp } from '../../test/crud/shop.ts';
import { createTable, migration, model, softDelete, t } from '../db/index.ts';
import { Controller } from '../http/compile/controller.ts';
import { route } from '../http/declare/route.ts';
import { allowAny, hasRule, isAuthenticated } from '../permissions/index.ts';
import { describeDatabases } from '../testing/databases.ts';
import { CrudController, resource } from './index.ts';

const columns = {
  id: t.uuidv7().pk(),
  org: t.text(20).readOnly(),
  title: t.text(80),
  status: t.enum(['open', 'done']).dbDefault('open'),
  ...softDelete(),
};
const leads = model('leads', columns);
const tables = migration('0001_leads', [createTable('leads', leads.columns)]);
/** A tenant and no owner. */
const leadResource = resource(leads, {
  tenant: 'org',
  softDelete: true,
  input: ['title'],
  state: 'status',
  transitions: { finish: { from: ['open'], to: 'done' } },
});
const operations = { create: { permission: hasRule('may_create') }, destroy: { permission: hasRule(() => true) } } as const;
const everything = {
  filters: { title: ['eq'] },
  restore: true,
  bulk: { create: true, update: true, destroy: true },
  import: { formats: ['csv'] },
} as const;
class Leads extends CrudController(leadResource, { permission: isAuthenticated, ...everything }) {}
/** Operations under rules of the application, which say nothing about anonymous callers. */
class Ruled extends CrudController(leadResource, { permission: isAuthenticated, operations, ...everything }) {}
/** Only the subclass excludes anonymous callers. */
class Closed extends CrudController(leadResource, { permission: hasRule(() => true), ...everything }) {
  static override readonly permission = isAuthenticated;
}
class Open extends CrudController(leadResource, { permission: allowAny, ...everything }) {}
class Off extends CrudController(leadResource, { permission: isAuthenticated, idempotency: false, ...everything }) {}
class Own extends Controller {
  static override readonly permission = isAuthenticated;
  add = route.post('/', { permission: isAuthenticated }, () => void (own += 1));
  read = route.get('/', { permission: isAuthenticated }, () => undefined);
}
let own = 0;

describeDatabases('an idempotency key is honored or refused, never ignored', (database) => {
  let shop: ShopApp;
  let made = 0;
  beforeAll(async () => {
    shop = await startShop({
      database: database.db,
      mount: { '/v1': { '/leads': Leads, '/ruled': Ruled, '/closed': Closed, '/open': Open, '/off': Off, '/own': Own } },
      modules: [{ name: 'leads', models: [leads], migrations: [tables] }],
      rules: { may_create: () => true },
    });
  });
  afterAll(() => shop.close());

  const send = async (path: string, method: string, payload?: unknown, key = `key-${(made += 1)}`, person: Person | null = 'ann') => {
    const response = await shop.inject({
      method: method as 'POST',
      url: `/v1/${path}`,
      headers: {
        'idempotency-key': key,
        ...(person === null ? {} : { 'x-user': person }),
        ...(typeof payload === 'string' ? { 'content-type': 'text/csv' } : {}),
      },
      ...(payload === undefined ? {} : { payload: payload as object }),
    });
    const { statusCode: status, body, headers } = response;
    return { status, body: body === '' ? undefined : response.json(), isReplayed: headers['idempotent-replayed'] === 'true' };
  };
  const twice = async (path: string, method: string, payload?: unknown) => {
    const key = `twice-${(made += 1)}`;
    return [await send(path, method, payload, key), await send(path, method, payload, key)] as const;
  };
  const newLead = async () => (await shop.call('ann', 'POST', 'leads', { title: `lead ${(made += 1)}` })).body.id as string;
  const countLeads = async () => (await database.db.query<{ n: number | bigint }>('select count(*) as n from leads'))[0]!.n;

  test.each(['leads', 'ruled', 'closed'])('%s: every POST and DELETE is done once', async (path) => {
    const rows = Number(await countLeads());
    const [first, second] = await twice(path, 'POST', { title: 'once' });
    expect([first.status, second.status, second.isReplayed, second.body]).toEqual([201, 201, true, first.body]);
    expect((await twice(`${path}/bulk`, 'POST', { items: [{ title: 'a' }, { title: 'b' }] }))[1].isReplayed).toBe(true);
    expect((await twice(`${path}/import`, 'POST', 'title\none\ntwo\n'))[1].isReplayed).toBe(true);
    expect(Number(await countLeads()) - rows).toBe(5);
    const id = await newLead();
    const done = await twice(`${path}/${id}/finish`, 'POST');
    expect(done.map(({ status }) => status)).toEqual([200, 200]);
    const gone = await twice(`${path}/${id}`, 'DELETE');
    expect(gone.map(({ status }) => status)).toEqual([204, 204]);
    const back = await twice(`${path}/${id}/restore`, 'POST');
    expect(back.map(({ status }) => status)).toEqual([200, 200]);
    const bulk = await twice(`${path}/bulk-delete`, 'POST', { ids: [id] });
    expect(bulk.map(({ status }) => status)).toEqual([204, 204]);
  });

  test('writes that do not honor keys refuse them, and nothing is done', async () => {
    const id = await newLead();
    const rows = await countLeads();
    own = 0;
    for (const [path, method, payload] of [
      ['open', 'POST', { title: 'x' }],
      ['open/bulk', 'POST', { items: [{ title: 'x' }] }],
      ['open/import', 'POST', 'title\nx\n'],
      [`open/${id}`, 'DELETE', undefined],
      ['off', 'POST', { title: 'x' }],
      [`off/${id}/finish`, 'POST', undefined],
      [`leads/${id}`, 'PATCH', { title: 'x' }],
      [`leads/${id}`, 'PUT', { title: 'x' }],
      ['own', 'POST', undefined],
    ] as const) {
      const { status, body } = await send(path, method, payload);
      expect([path, method, status, body?.code]).toEqual([path, method, 400, 'idempotency_not_supported']);
    }
    expect([await countLeads(), own]).toEqual([rows, 0]);
    expect((await shop.call('ann', 'GET', `leads/${id}`)).body).toMatchObject({ status: 'open' });
    expect((await shop.call('ann', 'POST', 'own')).status).toBe(204);
  });

  test('who may not call hears that first', async () => {
    expect((await send('off', 'POST', { title: 'x' }, 'k', null)).status).toBe(401);
    expect((await send('leads', 'POST', { title: 'x' }, 'k', 'nil')).body.code).toBe('tenant_required');
  });

  test('reads ignore a key, also QUERY and its alias', async () => {
    const id = await newLead();
    for (const [path, method, payload] of [
      ['leads', 'GET', undefined],
      ['open', 'GET', undefined],
      [`off/${id}`, 'GET', undefined],
      ['leads', 'QUERY', { where: {} }],
      ['leads/query', 'POST', { where: {} }],
      ['off/query', 'POST', { where: {} }],
    ] as const)
      expect([path, (await send(path, method, payload)).status]).toEqual([path, 200]);
    expect((await send('own', 'GET')).status).toBe(204);
  });
});
