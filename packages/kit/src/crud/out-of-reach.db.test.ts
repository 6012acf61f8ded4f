import { afterAll, beforeAll, expect, test } from 'vitest';
import { byName, people, type Person } from '../../test/crud/shop.ts';
import { createTable, insert, migration, model, t } from '../db/index.ts';
import { allowAny, isAuthenticated } from '../permissions/index.ts';
import { describeDatabases } from '../testing/databases.ts';
import { testApp, type TestApp } from '../testing/test-app.ts';
import { CrudController, many, one, resource } from './index.ts';

/** Firms have a tenant, sites are those of visible firms, and reports of everyone refer to both. */
const ID = '01890000-0000-7000-8000-000000000001';
const firms = model('firms', { id: t.uuidv7().pk(), org: t.text(20).readOnly(), name: t.text(40) });
const sites = model('sites', { id: t.uuidv7().pk(), firm_id: t.ref('firms'), name: t.text(40) });
const reports = model('reports', { id: t.uuidv7().pk(), site_id: t.ref('sites').nullable(), firm_id: t.ref('firms').nullable() });
const module = {
  name: 'sites',
  models: [firms, sites, reports],
  migrations: [
    migration('0001_initial', [
      createTable('firms', firms.columns),
      createTable('sites', sites.columns),
      createTable('reports', reports.columns),
    ]),
  ],
};
const firmResource = resource(firms, { tenant: 'org' });
const siteResource = resource(sites, {
  rows: () => ({ firm: { is: {} } }),
  relations: { firm: one(() => firms, 'firm_id'), reports: many(() => reports, 'site_id', { limit: 5 }) },
});
const reportResource = resource(reports, {
  unscoped: true,
  relations: { site: one(() => sites, 'site_id'), firm: one(() => firms, 'firm_id') },
});
class FirmController extends CrudController(firmResource, { permission: isAuthenticated }) {}
class SiteController extends CrudController(siteResource, { permission: isAuthenticated, parent: { relation: 'firm' } }) {}
class AllSites extends CrudController(siteResource, { permission: isAuthenticated }) {}
class ReportController extends CrudController(reportResource, {
  permission: allowAny,
  filters: { 'site.name': ['eq'], 'firm.name': ['eq'], id: ['eq'] },
  expand: ['site', 'firm', 'site.firm'],
  export: ['jsonl'],
}) {}

describeDatabases('relations to rows of a tenant', (database) => {
  let started: TestApp;
  const ask = async (person: Person | null, method: 'GET' | 'POST' | 'QUERY', url: string, payload?: object) => {
    const response = await started.inject({
      method: method as 'GET',
      url: `/v1/${url}`,
      headers: person === null ? {} : { 'x-user': person },
      ...(payload === undefined ? {} : { payload }),
    });
    return { status: response.statusCode, body: response.json() };
  };

  beforeAll(async () => {
    started = await testApp({
      database: database.db,
      authenticators: [byName],
      tenant: ({ user }) => Object.values(people).find(({ id }) => id === user?.id)?.tenant ?? null,
      modules: [module],
      mount: {
        '/v1': { '/firms': FirmController, '/firms/:firm_id/sites': SiteController, '/sites': AllSites, '/reports': ReportController },
      },
    });
    await insert(database.db, firms, { id: ID, org: 'north', name: 'North' });
    await insert(database.db, sites, { id: ID, firm_id: ID, name: 'Yard' });
    await insert(database.db, reports, { id: ID, site_id: ID, firm_id: ID });
  });
  afterAll(() => started.close());

  const callers = ['nil', null] as const;

  test.each(callers)(
    'an expansion is null for a caller without a tenant, through a rule about another relation, too: %s',
    async (person) => {
      const nothing = { id: ID, site_id: ID, firm_id: ID, site: null, firm: null };
      expect(await ask(person, 'GET', `reports/${ID}?expand=site.firm,firm`)).toEqual({ status: 200, body: nothing });
      expect(await ask(person, 'GET', 'reports?expand=site.firm,firm')).toMatchObject({ status: 200, body: { items: [nothing] } });
      expect(await ask(person, 'GET', 'reports/export?expand=site,firm')).toEqual({ status: 200, body: nothing });
      const seen = await ask('ann', 'GET', `reports/${ID}?expand=site.firm,firm`);
      expect(seen.body).toMatchObject({ site: { name: 'Yard', firm: { name: 'North' } }, firm: { name: 'North' } });
    },
  );

  test.each(callers)('a filter through a relation finds nothing, and a reference is unknown: %s', async (person) => {
    for (const filter of ['site__name=Yard', 'firm__name=North']) {
      expect(await ask(person, 'GET', `reports?${filter}`)).toMatchObject({ status: 200, body: { items: [], count: 0 } });
      expect(await ask('ann', 'GET', `reports?${filter}`)).toMatchObject({ status: 200, body: { count: 1 } });
    }
    const where = { or: [{ site: { is: { name: 'Yard' } } }, { firm: { is: { name: 'North' } } }] };
    expect(await ask(person, 'QUERY', 'reports', { where })).toMatchObject({ status: 200, body: { items: [] } });
    const made = await ask(person, 'POST', 'reports', { site_id: ID, firm_id: ID });
    expect(made).toMatchObject({
      status: 422,
      body: {
        errors: [
          { location: ['body', 'site_id'], code: 'unknown_reference' },
          { location: ['body', 'firm_id'], code: 'unknown_reference' },
        ],
      },
    });
  });

  test('the resource itself, and its rule, still need the tenant; a parent out of reach is a 404', async () => {
    expect(await ask('nil', 'GET', 'firms')).toMatchObject({ status: 403, body: { code: 'tenant_required' } });
    expect(await ask('nil', 'GET', 'sites')).toMatchObject({ status: 403, body: { code: 'tenant_required' } });
    expect(await ask('nil', 'GET', `firms/${ID}/sites`)).toMatchObject({ status: 404, body: { code: 'not_found' } });
    expect(await ask('ann', 'GET', `firms/${ID}/sites`)).toMatchObject({ status: 200, body: { count: 1 } });
  });
});
