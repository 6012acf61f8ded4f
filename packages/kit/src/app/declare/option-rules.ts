import type { PortalDeclaration, PortalTenants } from '../admin/portal-page.ts';
import type { Authenticator } from '../../auth/request/authenticator.ts';
import { userDirectory } from '../../auth/people/user-directory-rule.ts';
import type { Registration } from '../../di/registration.ts';
import { isErrorDefinition } from '../../errors/catalog.ts';
import { errorMap, middleware, throttle } from '../../http/compile/value-faults.ts';
import { implementationOf, objectOf, type OptionRules } from '../../options/read-options.ts';
import {
  aFunction,
  aList,
  anything,
  clock,
  either,
  filledText,
  guard,
  isMembers,
  listOf,
  milliseconds,
  objectWith,
  oneOf,
  recordOf,
  required,
  rule,
  text,
  type ValueRule,
  wholeNumber,
} from '../../options/value-rule.ts';
import { Permission } from '../../permissions/permission.ts';
import type { AdminDeclaration } from '../admin/declaration.ts';
import type { Check } from './check.ts';
import type { Command } from './command.ts';
import { corsRule } from './cors.ts';
import { loginProvider, pageAddress } from './login-provider.ts';
import type { Module } from './module.ts';
import type { Seed } from './seed.ts';
import { tenantPlaces } from '../tenants/tenant-places.ts';
import type { ModuleTenants } from '../tenants/tenant-directory.ts';
import type { AppOptions, VersionMount } from './options.ts';

export const anAuthenticator = implementationOf<Authenticator>('an authenticator, such as new ApiKeyAuth()', {
  name: required(filledText),
  challenge: either('a string, or a list of them', filledText, listOf(filledText)),
  issuers: listOf(filledText),
  scopeAtIssuer: aFunction,
  securityScheme: required(objectWith('an OpenAPI security scheme: { type: "http", scheme: "bearer" }')),
  raises: listOf(rule('an error of a catalog, such as coreErrors.invalid_credentials', isErrorDefinition)),
  authenticate: required(aFunction),
  callsRoute: aFunction,
  verifyCsrf: aFunction,
  principalsOf: aFunction,
  install: aFunction,
  healthChecks: recordOf(aFunction),
});

export const aRegistration = implementationOf<Registration>('a service, such as singleton(mailer, {}, () => new Mailer())', {
  service: required(objectWith('a service: service("mailer")')),
  lifetime: required(oneOf('singleton', 'scoped', 'transient')),
  dependencies: required(recordOf(objectWith('a service: service("mailer")'))),
  create: required(aFunction),
  dispose: aFunction,
});

const command = implementationOf<Command>('a command: { name, summary, configure }', {
  name: required(filledText),
  summary: required(text),
  configure: required(aFunction),
});

const check = implementationOf<Check>('a check: { name, run }', { name: required(filledText), run: required(aFunction) });

const declaration = implementationOf<AdminDeclaration>('what the admin site shows: { resources: [modelResource(orders)] }', {
  // Each resource is checked by the admin site.
  resources: listOf(objectWith('a resource, such as modelResource(orders)', 'list', 'read')),
  pages: listOf(objectWith('a page: { name, label, group, read }', 'read')),
  sections: aFunction,
  timeline: aFunction,
  waiting: aFunction,
  overview: aFunction,
  uploads: objectWith('{ table, targets, origin, attach }', 'targets', 'attach'),
});

const aSeed = implementationOf<Seed>('a seed: seed("demo", async ({ put, id }) => { … })', {
  name: required(filledText),
  run: required(aFunction),
});

const membershipBatch = rule(
  "a function (db, asked) => memberships, or 'not known'",
  (value) => typeof value === 'function' || value === 'not known',
);

/** The members of a module, for those that `createApp` is given and those that `definePlugin` declares. */
export const moduleRules: OptionRules<Module> = {
  name: required(filledText),
  requires: listOf(text),
  after: listOf(text),
  models: listOf(objectWith('a model: model("orders", { … })')),
  migrations: listOf(objectWith('a migration: migration("0001_initial", [ … ])')),
  backfills: listOf(objectWith('a back-fill: backfill("0012_full_name", { … })', 'run')),
  databases: listOf(filledText, { min: 1 }),
  authenticators: listOf(anAuthenticator),
  users: userDirectory,
  login: loginProvider,
  loginPages: objectOf<NonNullable<Module['loginPages']>>({ loginUrl: required(pageAddress), accountUrl: required(pageAddress) }),
  tenants: objectOf<ModuleTenants>({
    tenant: required(aFunction),
    membership: aFunction,
    memberships: membershipBatch,
    tenantParameter: tenantPlaces,
    directory: objectWith('a directory of tenants'),
  }),
  services: listOf(aRegistration),
  errors: rule('an error catalog: defineErrors("billing", { … })', isMembers),
  openApiWebhooks: recordOf(anything),
  errorMap,
  handlers: listOf(objectWith('a handler, such as on(OrderPaid, handler)', 'handle')),
  resources: listOf(objectWith('a resource, such as resource(orders, { … })')),
  jobs: listOf(objectWith('a job: job("reports.send", { … })')),
  seeds: listOf(aSeed),
  verifyData: aFunction,
  beforeErase: aFunction,
  filesOfRow: aFunction,
  onRoute: aFunction,
  middleware: listOf(middleware),
  commands: listOf(command),
  checks: listOf(check),
  healthChecks: recordOf(aFunction),
  mount: rule('controllers by prefix: { "/billing": BillingController }', (value) => isMembers(value) || typeof value === 'function'),
  admin: declaration,
  portal: objectOf<PortalDeclaration>({
    pages: required(aList),
    texts: aList,
    tenants: objectOf<PortalTenants>({ resource: required(filledText), title: required(filledText), choose: required(filledText) }),
  }),
  metrics: aFunction,
  monitor: aFunction,
  provides: aFunction,
  install: aFunction,
  serve: aFunction,
  setup: aFunction,
  start: aFunction,
  stop: aFunction,
};

export const aModule = implementationOf<Module>('a module, such as accounts()', moduleRules);

export const permission = rule(
  'a permission, such as isAuthenticated; combine with all(), any(), not()',
  (value) => value instanceof Permission,
);
const path = rule('a path such as "/docs"', (value) => typeof value === 'string' && value.startsWith('/'));
const docs = objectOf<Exclude<NonNullable<AppOptions['docs']>, boolean>>({ path, permission: guard(permission) });
const docsOrFlag: ValueRule = (value, place, name) => (typeof value === 'boolean' ? [] : docs(value, place, name));

/** `database`, `mount`, `settings` and the items of `trustedProxies` are read, and refused, by code of their own. */
export const appRules: OptionRules<AppOptions> = {
  database: anything,
  keyWrapping: objectWith('{ wrapKey, unwrapKey }', 'wrapKey', 'unwrapKey'),
  modules: listOf(aModule),
  mount: anything,
  authenticators: listOf(anAuthenticator),
  users: userDirectory,
  login: loginProvider,
  throttles: guard(listOf(throttle)),
  throttleStorage: objectWith('a throttle storage, such as memoryStorage()', 'take', 'giveBack'),
  errors: errorMap,
  middleware: guard(listOf(middleware)),
  services: listOf(aRegistration),
  rules: guard(recordOf(aFunction)),
  handlers: listOf(objectWith('a handler, such as on(OrderPaid, handler)', 'handle')),
  resources: listOf(objectWith('a resource, such as resource(orders, { … })')),
  seeds: listOf(aSeed),
  silencedChecks: rule("warnings with their reasons: { W008: 'the table has 200 rows' }", isMembers),
  tenant: guard(aFunction),
  membership: guard(aFunction),
  memberships: guard(membershipBatch),
  tenantParameter: guard(tenantPlaces),
  settings: objectWith('an object'),
  log: objectWith('options of pino, or a pino logger'),
  clock,
  trustedProxies: aList,
  cors: corsRule,
  bodyBytesMax: wholeNumber(1),
  jsonDepthMax: wholeNumber(1),
  jsonMembersMax: wholeNumber(1),
  jsonItemsMax: wholeNumber(1),
  idempotencyRecordsMax: wholeNumber(1),
  timeoutMs: milliseconds(0),
  replicaLagMsMax: milliseconds(100),
  title: text,
  version: text,
  description: text,
  docs: docsOrFlag,
};

const versionOptions: Readonly<Record<keyof VersionMount, true>> = {
  controllers: true,
  deprecated: true,
  errors: true,
  middleware: true,
  throttles: true,
  permission: true,
};
export const versionOptionNames: readonly string[] = Object.keys(versionOptions);
