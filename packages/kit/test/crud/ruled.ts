import { z } from 'zod';
import type { Module } from '../../src/app/declare/module.ts';
import { ruleKinds, type RuleKind } from '../../src/auth/rights/rule-result.ts';
import { grants } from '../../src/contrib/grants/grant/access.ts';
import { objectGrants } from '../../src/contrib/grants/module.ts';
import { objectActions } from '../../src/contrib/grants/declare/object-actions.ts';
import { hasGrant } from '../../src/contrib/grants/rows/permission.ts';
import { mcp } from '../../src/contrib/mcp/module.ts';
import { count, CrudController, filter, resource, visibleTo, writableBy } from '../../src/crud/index.ts';
import { createTable, migration, model, softDelete, t } from '../../src/db/index.ts';
import { Controller, jsonSchema, route } from '../../src/http/index.ts';
import { all, allowAny, hasRole, hasRule, isAuthenticated } from '../../src/permissions/index.ts';
import type { TestAppOptions } from '../../src/testing/test-app.ts';
import { people, type Person } from './shop.ts';

/** What each rule of the application returns now; without an entry, what lets the request through. */
export const returned: { [K in RuleKind]?: { readonly value: unknown } } = {};
const valid: { readonly [K in RuleKind]?: unknown } = {
  rows: true,
  access: true,
  filter: {},
  search: { or: [] },
  guard: true,
  validate: [],
  events: null,
  permission: true,
  'permission rows': true,
  'grant condition': true,
  'grant decision': true,
  tenant: 'north',
  membership: { roles: ['admin'] },
  'throttle key': null,
  'throttle rate': null,
  'idempotency caller': 'somebody',
  groupsOf: [],
};
// oxlint-disable-next-line typescript/no-explicit-any -- rules that are written in JavaScript return anything
export function rule(kind: RuleKind): any {
  return Object.hasOwn(returned, kind) ? returned[kind]?.value : valid[kind];
}
export function forgetReturned(): void {
  for (const kind of Object.keys(ruleKinds) as RuleKind[]) delete returned[kind];
}

const columns = () => ({
  id: t.uuidv7().pk(),
  owner_id: t.uuid().nullable().readOnly(),
  org: t.text(20).dbDefault('north').readOnly(),
  title: t.text(60),
  cost: t.int().dbDefault(0),
  status: t.enum(['open', 'paid']).dbDefault('open'),
  ...softDelete(),
});
export const notes = model('notes', columns());
export const papers = model('papers', columns());
export const sheets = model('sheets', columns());
export const offices = model('offices', columns());
const drafts = model('drafts', columns());
const bills = model('bills', columns());
export const TABLES = ['notes', 'papers', 'sheets', 'offices', 'drafts', 'bills'] as const;

const sheetActions = objectActions(sheets, {
  actions: ['view', 'change', 'delete'],
  backend: { name: 'own', condition: () => rule('grant condition'), decide: () => rule('grant decision') },
});

const actions = { state: 'status', transitions: { pay: { from: ['open'], to: 'paid', guard: () => rule('guard') } } } as const;
export const noteResource = resource(notes, { rows: () => rule('rows'), ...actions });
export const billResource = resource(bills, {
  unscoped: true,
  validate: () => rule('validate'),
  events: () => rule('events'),
  admin: { rows: true },
  ...actions,
});
const features = {
  filters: { title: ['eq'], mine: filter(z.boolean(), () => rule('filter') as { title: string }) },
  search: { name: 'own', columns: ['title'], where: () => rule('search') },
  stats: { metrics: { n: count() } },
  export: ['jsonl', 'csv'],
  import: { formats: ['jsonl'] },
  bulk: { create: true, update: true, destroy: true, mode: 'partial' },
  meta: true,
  restore: true,
  operations: { list: { tool: true }, partialUpdate: { tool: true } },
} as const;
class NoteController extends CrudController(noteResource, { permission: isAuthenticated, ...features }) {}
/** The same rows, for those whom a permission of the application admits to each. */
class GuardedController extends CrudController(billResource, {
  permission: hasRule(() => (Object.hasOwn(returned, 'permission rows') ? 'unknown' : rule('permission')), {
    rows: () => rule('permission rows'),
  }),
  ...features,
}) {}
class BillController extends CrudController(billResource, { permission: isAuthenticated, ...features }) {}
export const paperResource = resource(papers, {
  access: { name: 'own', actionOf: () => 'view', condition: () => rule('access') },
  admin: { rows: true },
  ...actions,
});
class PaperController extends CrudController(paperResource, { permission: isAuthenticated, ...features }) {}
class SheetController extends CrudController(resource(sheets, { access: grants(sheetActions) }), {
  permission: isAuthenticated,
  ...features,
}) {}
class GrantedController extends CrudController(
  resource(drafts, {
    unscoped: true,
    fields: { cost: visibleTo(hasRule(() => rule('permission'))), title: writableBy(hasRule(() => rule('permission'))) },
  }),
  { permission: isAuthenticated, ...features },
) {}
class OfficeController extends CrudController(resource(offices, { tenant: 'org', ...actions }), {
  permission: isAuthenticated,
  ...features,
}) {}
class ByHandController extends Controller {
  one = route.get('/sheet/:id', { permission: hasGrant('change', sheets as never) }, async ({ authorize, params }) => {
    await authorize({ id: (params as { id: string }).id });
  });
  measured = route.get(
    '/measured',
    {
      permission: allowAny,
      throttles: [
        {
          name: 'own',
          phase: 'client',
          key: () => (Object.hasOwn(returned, 'throttle rate') ? 'a' : rule('throttle key')),
          rate: () => rule('throttle rate'),
        },
      ],
    },
    () => undefined,
  );
  follow = route.stream(
    '/follow',
    {
      permission: all(
        hasRole('admin'),
        hasRule(() => rule('permission')),
      ),
      response: jsonSchema<object>({}),
    },
    async function* () {
      yield { data: { title: 'secret' } };
    },
  );
  once = route.post(
    '/once',
    { permission: allowAny, atomic: true, idempotent: { anonymous: () => rule('idempotency caller') } },
    () => undefined,
  );
}

const tables = migration(
  '0001_ruled',
  [notes, papers, sheets, offices, drafts, bills].map((each) => createTable(each.name, each.columns)),
);
const events: Module = {
  name: 'events',
  provides: () => ({ events: { publish: async () => undefined } }),
};

/** An application whose every rule returns what a test says. */
export const ruledApp: Omit<TestAppOptions, 'database'> = {
  authenticators: [
    {
      name: 'name',
      securityScheme: { type: 'http', scheme: 'name' },
      authenticate({ headers: { 'x-user': name } }) {
        if (Object.hasOwn(returned, 'authenticate')) return rule('authenticate');
        if (typeof name !== 'string' || !(name in people)) return null;
        const user = { id: people[name as Person].id, username: name, email: null, is_active: true, is_staff: true, is_superuser: false };
        return { user, scheme: 'name', scopes: null };
      },
    },
  ],
  tenant: () => rule('tenant'),
  membership: () => rule('membership'),
  mount: {
    '/v1': {
      '/notes': NoteController,
      '/bills': BillController,
      '/guarded': GuardedController,
      '/papers': PaperController,
      '/sheets': SheetController,
      '/drafts': GrantedController,
      '/offices': OfficeController,
      '/own': ByHandController,
    },
  },
  modules: [
    { name: 'ruled', models: [notes, papers, sheets, offices, drafts, bills], migrations: [tables] },
    objectGrants({
      objects: [sheetActions],
      groups: { groupsOf: () => rule('groupsOf'), findById: async () => null, findByName: async () => null },
    }),
    mcp(),
    events,
  ],
};
