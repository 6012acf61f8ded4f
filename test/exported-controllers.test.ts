import { randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { allowAny, Controller, createApp, hasScopes, isAuthenticated, isStaff, migrateApp, type App, type Module, type Route } from 'kit';
import { accounts, accountsOf, AccountController, createUser } from 'kit/contrib/accounts';
import { ApiKeyController, apiKeys, createApiKey, ServiceUserController } from 'kit/contrib/apikeys';
import { audit, AuditController, TenantAuditController } from 'kit/contrib/audit';
import { grants, objectActions, objectGrants, sharing } from 'kit/contrib/grants';
import { JobController, jobs } from 'kit/contrib/jobs';
import { mcp } from 'kit/contrib/mcp';
import { PersonalDataController, personalData } from 'kit/contrib/personal';
import { QuotaController, RequestController, requests, UsageController } from 'kit/contrib/requests';
import { TenantController, tenants } from 'kit/contrib/tenants';
import { diskStore, UploadController, uploads } from 'kit/contrib/uploads';
import { TenantWebhookController, WebhookEndpointController, webhooks } from 'kit/contrib/webhooks';
import { CrudController, resource } from 'kit/crud';
import { createTable, migration, model, t } from 'kit/db';
import { HealthController } from 'kit/middleware';
import { root } from './architecture/module-graph.ts';

type ControllerClass = new () => Controller;
type Fields = 'none' | 'all' | readonly string[];
/** Who gets past the guard of which routes. Whatever else they are told then (404, 422) is not about the guard. */
interface Guard {
  readonly controller: ControllerClass;
  /** The factory of the module that a controller does not start without. */
  readonly module?: string;
  readonly anonymous: Fields;
  readonly keyWithoutScopes: Fields;
  /** A key with the scope `*`, of a superuser. */
  readonly keyWithEveryScope: Fields;
}

const notes = model('guard_notes', { id: t.uuidv7().pk(), title: t.text(80) });
const noteActions = objectActions(notes, {
  actions: ['view', 'change', 'delete', 'share'],
  sets: { viewer: ['view'], manager: ['viewer', 'change', 'delete', 'share'] },
  creator: 'manager',
});
const noteResource = resource(notes, { access: grants(notes) });
class Notes extends CrudController(noteResource, {
  permission: hasScopes({ allowUnscoped: true }),
  scope: 'notes',
}) {}
class StaffNotes extends CrudController(noteResource, { permission: isStaff }) {}

const scoped = { anonymous: 'none', keyWithoutScopes: 'none', keyWithEveryScope: 'all' } as const;
/** The token in a link from a mail is the credential. */
const links = ['acceptInvitation', 'confirmEmail', 'confirmReset', 'reset'];
const account = ['login', 'logout', 'me', ...links];
const guards: Readonly<Record<string, Guard>> = {
  AccountController: {
    controller: AccountController,
    module: 'accounts()',
    anonymous: ['login', 'logout', ...links],
    keyWithoutScopes: account,
    keyWithEveryScope: account,
  },
  ApiKeyController: {
    controller: ApiKeyController as unknown as ControllerClass,
    module: 'apiKeys()',
    anonymous: 'none',
    keyWithoutScopes: 'none',
    keyWithEveryScope: 'none',
  },
  AuditController: { controller: AuditController as unknown as ControllerClass, module: 'audit()', ...scoped },
  HealthController: { controller: HealthController, anonymous: 'all', keyWithoutScopes: 'all', keyWithEveryScope: 'all' },
  JobController: { controller: JobController as unknown as ControllerClass, module: 'jobs()', ...scoped },
  PersonalDataController: {
    controller: PersonalDataController,
    module: 'personalData()',
    anonymous: 'none',
    keyWithoutScopes: 'none',
    keyWithEveryScope: 'none',
  },
  QuotaController: { controller: QuotaController as unknown as ControllerClass, module: 'requests()', ...scoped },
  RequestController: { controller: RequestController as unknown as ControllerClass, module: 'requests()', ...scoped },
  TenantController: {
    controller: TenantController as unknown as ControllerClass,
    module: 'tenants()',
    anonymous: ['acceptInvitation'],
    keyWithoutScopes: 'none',
    // A key acts in its tenant: it neither makes, joins, deletes nor transfers one, and takes no copy of it.
    keyWithEveryScope: [
      'changeMember',
      'choose',
      'invitations',
      'invite',
      'leave',
      'members',
      'mine',
      'read',
      'removeMember',
      'rename',
      'resendInvitation',
      'revokeInvitation',
      'undelete',
    ],
  },
  ServiceUserController: {
    controller: ServiceUserController as unknown as ControllerClass,
    module: 'apiKeys()',
    anonymous: 'none',
    keyWithoutScopes: 'none',
    keyWithEveryScope: 'none',
  },
  UploadController: { controller: UploadController, module: 'uploads()', ...scoped },
  UsageController: { controller: UsageController as unknown as ControllerClass, module: 'requests()', ...scoped },
  // The owner of these keys manages no tenant.
  TenantAuditController: {
    controller: TenantAuditController as unknown as ControllerClass,
    module: 'audit()',
    anonymous: 'none',
    keyWithoutScopes: 'none',
    keyWithEveryScope: 'none',
  },
  TenantWebhookController: {
    controller: TenantWebhookController as unknown as ControllerClass,
    module: 'webhooks()',
    anonymous: 'none',
    keyWithoutScopes: 'none',
    keyWithEveryScope: 'none',
  },
  WebhookEndpointController: { controller: WebhookEndpointController as unknown as ControllerClass, module: 'webhooks()', ...scoped },
  'CrudController()': {
    controller: StaffNotes as unknown as ControllerClass,
    anonymous: 'none',
    keyWithoutScopes: 'all',
    keyWithEveryScope: 'all',
  },
  'sharing()': { controller: sharing(Notes) as unknown as ControllerClass, ...scoped },
};

const folder = mkdtempSync(join(tmpdir(), 'kit-guards-'));
const modules = [
  accounts({ passwordCost: { logN: 4, r: 8, p: 1 } }),
  apiKeys(),
  audit(),
  objectGrants({ objects: [noteActions] }),
  jobs({ jobs: [] }),
  requests(),
  personalData(),
  tenants({ create: isAuthenticated }),
  uploads({ store: diskStore({ folder }), cleanEverySeconds: 0 }),
  webhooks(),
  { name: 'notes', models: [notes], migrations: [migration('0001_initial', [createTable('guard_notes', notes.columns)])] },
];
const everyAuthenticator = modules.flatMap(({ authenticators = [] }: Module) => authenticators.map(({ name }) => name));

const named = <T extends ControllerClass>(prefix: string, base: ControllerClass, type: T): T =>
  Object.defineProperty(type, 'name', { value: `${prefix}${base.name}` });

/** Generic operations do not start outside of their class. */
const LOOSE = 'routes taken out of their class';
const hasVariant = (name: string, variant: string): boolean => variant !== LOOSE || !('crudResource' in guards[name]!.controller);

/** What an app may do to a controller, on purpose or not. */
const variants: Readonly<Record<string, (base: ControllerClass) => ControllerClass>> = {
  'as it is': (base) => base,
  'in a version that admits everyone': (base) => base,
  'a subclass with a permission of its own': (base) =>
    named(
      'Open',
      base,
      class extends base {
        static readonly permission = allowAny;
      },
    ),
  'wrapped routes that admit everyone': (base) => wrapped('Wrapped', base, { permission: allowAny, scope: undefined, auth: undefined }),
  'wrapped routes that ask every authenticator': (base) => wrapped('Asking', base, { permission: allowAny, auth: everyAuthenticator }),
  [LOOSE]: (base) =>
    named(
      'Loose',
      base,
      class extends Controller {
        constructor() {
          super();
          Object.assign(this, Object.fromEntries(routesOf(new base())));
        }
      },
    ),
};

function routesOf(controller: Controller): readonly (readonly [string, Route])[] {
  return Object.entries(controller).filter((entry): entry is [string, Route] => (entry[1] as Partial<Route> | null)?.isRoute === true);
}

function wrapped(prefix: string, base: ControllerClass, facts: object): ControllerClass {
  class Wrapping extends base {
    constructor() {
      super();
      for (const [field] of routesOf(this)) Object.assign(this, { [field]: this.wrap(field, facts) });
    }
  }
  return named(prefix, base, Wrapping);
}

const variantPaths = Object.keys(variants).map((variant, index) => [variant, `/v${index}`] as const);
const controllerPaths = Object.keys(guards).map((name, index) => [name, `/c${index}`] as const);

test('every controller that is exported has its guard in the table', async () => {
  const { exports } = JSON.parse(readFileSync(join(root, 'packages/kit/package.json'), 'utf8')) as { exports: Record<string, unknown> };
  const subpaths = Object.keys(exports).filter((path) => path !== './package.json');
  const loaded = await Promise.all(subpaths.map((path) => import(`kit${path.slice(1)}`) as Promise<Record<string, unknown>>));
  const controllers = loaded.flatMap((module) =>
    Object.entries(module).flatMap(([name, value]) => (typeof value === 'function' && value.prototype instanceof Controller ? [name] : [])),
  );
  expect(controllers.length).toBeGreaterThan(6);
  expect(controllers.filter((name) => guards[name] === undefined)).toEqual([]);
});

describe.each(
  Object.entries(guards).flatMap(([name, { controller, module }]) => (module === undefined ? [] : [{ name, controller, module }])),
)('$name', ({ name, controller, module }) => {
  test(`does not start without ${module}`, () => {
    const create = () => createApp({ database: 'sqlite::memory:', log: { level: 'silent' }, mount: { '/v1': { '/x': controller } } });
    expect(create).toThrow(`${name} is mounted without its module. Add ${module} to the modules of createApp.`);
  });
});

test('controllers of the toolkit start without a warning, whose reason nobody could change who mounts them', async () => {
  class EndpointsOfUsersInTenants extends WebhookEndpointController {
    static override readonly tenantField = 'tenant_key';
    static override readonly liveDeliveries = true;
  }
  const own = Object.entries(guards).filter(([name]) => !name.endsWith(')'));
  const mount = Object.fromEntries(own.map(([name, { controller }]) => [`/${name}`, controller]));
  const product = createApp({
    database: 'sqlite::memory:',
    log: { level: 'silent' },
    // All of them are offered to agents, too.
    modules: [...modules, mcp({ include: [...own.map(([, { controller }]) => controller), EndpointsOfUsersInTenants] })],
    mount: { '/v1': { ...mount, '/endpoints': EndpointsOfUsersInTenants } },
  });
  await migrateApp(product);
  await product.ready();
  const warnings = product.warnings.map(({ id, message }) => `${id} ${message}`);
  await product.close();
  expect(warnings).toEqual([]);
});

describe.each(controllerPaths)('the guard of %s holds', (name, controllerPath) => {
  const { anonymous, keyWithoutScopes, keyWithEveryScope } = guards[name]!;
  test.each(variantPaths.filter(([variant]) => hasVariant(name, variant)))('%s', async (_, variantPath) => {
    const routes = app.routes.filter(
      ({ path }) => path.startsWith(`${variantPath}${controllerPath}/`) || path === `${variantPath}${controllerPath}`,
    );
    expect(routes.length).toBeGreaterThan(0);
    const fields = routes.map(({ field }) => field).sort();
    const passing = (given: Fields) => (given === 'all' ? fields : given === 'none' ? [] : [...given].sort());
    expect({
      anonymous: await fieldsThatAnswer(routes, {}),
      keyWithoutScopes: await fieldsThatAnswer(routes, { 'x-api-key': keys.withoutScopes }),
      keyWithEveryScope: await fieldsThatAnswer(routes, { authorization: `Bearer ${keys.withEveryScope}` }),
    }).toEqual({
      anonymous: passing(anonymous),
      keyWithoutScopes: passing(keyWithoutScopes),
      keyWithEveryScope: passing(keyWithEveryScope),
    });
  });
});

let app: App;
const keys = { withoutScopes: '', withEveryScope: '' };
beforeAll(async () => {
  const mount = Object.fromEntries(
    variantPaths.map(([variant, path]) => {
      const controllers = Object.fromEntries(
        controllerPaths
          .filter(([name]) => hasVariant(name, variant))
          .map(([name, at]) => [at, variants[variant]!(guards[name]!.controller)]),
      );
      return [path, variant === 'in a version that admits everyone' ? { controllers, permission: allowAny } : controllers];
    }),
  );
  app = createApp({ database: 'sqlite::memory:', log: { level: 'silent' }, modules, mount });
  await migrateApp(app);
  await app.ready();
  const user = await createUser(
    app.db,
    { username: 'root', password: null, is_staff: true, is_superuser: true },
    accountsOf(app.db).management(null),
  );
  keys.withoutScopes = (await createApiKey(app.db, { user, name: 'none', scopes: [] })).raw;
  keys.withEveryScope = (await createApiKey(app.db, { user, name: 'every', scopes: ['*'] })).raw;
});
afterAll(async () => {
  await app?.close();
  rmSync(folder, { recursive: true, force: true });
});

async function fieldsThatAnswer(routes: App['routes'], headers: Record<string, string>): Promise<string[]> {
  const answering: string[] = [];
  for (const { method, path, field } of routes) {
    const hasBody = method !== 'GET' && method !== 'DELETE';
    const url = path.replaceAll(/:\w+/g, randomUUID());
    const { statusCode } = await app.inject({ method: method as 'GET', url, headers, ...(hasBody ? { payload: {} } : {}) });
    if (statusCode !== 401 && statusCode !== 403) answering.push(field);
  }
  return answering.sort();
}
