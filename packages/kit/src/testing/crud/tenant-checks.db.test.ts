import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { accounts, accountsOf, createUser } from '../../contrib/accounts/index.ts';
import { addMember, createTenant, tenants } from '../../contrib/tenants/index.ts';
import type { TenantPlace } from '../../app/tenants/tenant-places.ts';
import { CrudController, resource } from '../../crud/index.ts';
import { createTable, find, list, migration, model, t } from '../../db/index.ts';
import { route } from '../../http/declare/route.ts';
import { isAuthenticated } from '../../permissions/index.ts';
import { describeDatabases, type TestDatabase } from '../databases.ts';
import { testApp, type TestApp } from '../test-app.ts';
import { crudChecks } from './checks.ts';
import { crudTests } from './crud-tests.ts';
import { type CrudCallers, CrudSubject } from './subject.ts';
import { tenantChecks } from './tenant-checks.ts';

const columns = { id: t.uuidv7().pk(), tenant_id: t.uuid().readOnly(), title: t.text(80) };
const indexes = [{ columns: ['tenant_id', '-id'] }];
const papers = model('papers', columns, { indexes });
const tables = {
  name: 'papers',
  models: [papers],
  migrations: [migration('0001_initial', [createTable('papers', columns, { indexes })])],
};
const paperResource = resource(papers, { tenant: 'tenant_id' });
const Anything = z.record(z.string(), z.unknown());
const facts = { permission: isAuthenticated, response: Anything } as const;

class Papers extends CrudController(paperResource, { permission: isAuthenticated, search: ['title'], bulk: { create: true } }) {
  copy = route.post('/:id/copy', { ...facts, params: this.keyParams, status: 201 }, async (context) => {
    const { title } = await this.find(context, context.params.id);
    return this.present(context, await this.write(context).create({ title: `${title} (copy)` }));
  });
}

/** Ada owns `acme`, bob owns `rival`; eve has no tenant. */
async function callersOf({ app }: TestApp): Promise<CrudCallers> {
  const { db } = app;
  const person = async (username: string) => ({ id: (await createUser(db, { username }, accountsOf(db).management(null))).id });
  const [owner, stranger, tenantless] = [await person('ada'), await person('bob'), await person('eve')];
  await createTenant(db, { name: 'Acme', slug: 'acme', owner: owner.id });
  await createTenant(db, { name: 'Rival', slug: 'rival', owner: stranger.id });
  return { owner: { ...owner, tenant: 'acme' }, stranger: { ...stranger, tenant: 'rival' }, tenantless };
}

/** The same person in another tenant. */
async function onePerson(app: TestApp): Promise<CrudCallers> {
  const { owner, stranger } = await callersOf(app);
  await addMember(app.app.db, { tenant: (await slugs(app))['rival'] as string, user: owner.id, roles: ['member'] });
  return { owner, stranger: { ...owner, tenant: stranger?.tenant as string } };
}

async function slugs({ app }: TestApp): Promise<Record<string, string>> {
  const rows = await app.db.query<{ id: string; slug: string }>('select id, slug from tenants');
  return Object.fromEntries(rows.map(({ id, slug }) => [slug, id]));
}

const start =
  (find: TenantPlace, controller: abstract new () => object = Papers, path = '/v1/papers') =>
  (database?: TestDatabase) =>
    testApp({
      ...(database === undefined ? {} : { database: database.db }),
      modules: [accounts({ passwordCost: { logN: 4, r: 8, p: 1 } }), tenants({ find }), tables],
      mount: { [path.slice(0, path.lastIndexOf('/'))]: { [path.slice(path.lastIndexOf('/'))]: controller as never } },
    });
const input = (number: number) => ({ title: `paper ${number}` });

describe('tenants named in a header', () => {
  crudTests(Papers, { app: start({ header: 'X-Studio' }), callers: callersOf, input });
});
/** What depends on where the tenant is named: who is let in, and what others see. The other guarantees are the same for every place. */
const ofPlaces = crudChecks.filter((each) => tenantChecks.includes(each) || each.name.startsWith('1: '));

describe.each([
  ['the path', start({ path: 'tenant' }, Papers, '/t/:tenant/papers'), callersOf],
  ['the host name', start({ subdomainOf: 'example.com' }), onePerson],
])('tenants named in %s', (_, started, callers) => {
  describeDatabases('a resource', (database) => {
    test('keeps out who does not belong to the tenant', async () => {
      expect(ofPlaces.length).toBeGreaterThan(tenantChecks.length);
      await using app = await started(database);
      const subject = new CrudSubject(app, Papers, { callers: await callers(app), input });
      for (const check of ofPlaces) if (check.appliesTo(subject)) await check.run(subject);
    });
  });
});

/** One controller per way to leak. */
const broken: Readonly<Record<string, readonly [check: number, controller: abstract new () => object]>> = {
  'shows another tenant the row': [
    0,
    class Broken extends CrudController(paperResource, { permission: isAuthenticated }) {
      recent = route.get('/recent', facts, async ({ db }) => ({ items: await list(db, papers) }));
    },
  ],
  'tells another tenant that the row exists': [
    0,
    class Broken extends CrudController(paperResource, { permission: isAuthenticated }) {
      length = route.get('/:id/length', { ...facts, params: this.keyParams }, async ({ db, params }) => ({
        length: (await find(db, papers, params.id))?.title.length,
      }));
    },
  ],
  'accepts the tenant of others': [
    1,
    class Broken extends CrudController(paperResource, { permission: isAuthenticated }) {
      override list = route.get('/', facts, () => ({ items: [], count: 0, next: null, previous: null }));
    },
  ],
};

test.each(Object.entries(broken))('a controller that %s fails its test', async (message, [index, controller]) => {
  await using app = await start({ header: 'X-Studio' }, controller)();
  const subject = new CrudSubject(app, controller, { callers: await callersOf(app), input });
  const check = tenantChecks[index] as (typeof tenantChecks)[number];
  expect(check.appliesTo(subject)).toBe(true);
  await expect(check.run(subject)).rejects.toThrow(message);
});

test('as(user, { tenant }) needs an app that declares where the tenant is named, and { headers } works in every app', async () => {
  await using app = await testApp({
    modules: [tables],
    tenant: ({ headers }) => (headers['x-own'] as string | undefined) ?? null,
    mount: { '/v1': { '/papers': Papers } },
  });
  const [tenant, id] = ['01890000-0000-7000-8000-0000000000ac', '01890000-0000-7000-8000-0000000000ad'];
  expect(() => app.as({ id }, { tenant }).get('/v1/papers')).toThrow('createApp({ tenantParameter })');
  const ada = app.as({ id }, { headers: { 'X-Own': tenant } });
  const made = await ada.post('/v1/papers', { title: 'A' });
  expect([made.statusCode, made.json().title]).toEqual([201, 'A']);
  expect((await ada.get('/v1/papers')).json().items).toHaveLength(1);
  expect((await ada.get('/v1/papers', { 'x-own': id })).json().items).toEqual([]);
  expect((await app.as({ id }).get('/v1/papers')).statusCode).toBe(403);
});
