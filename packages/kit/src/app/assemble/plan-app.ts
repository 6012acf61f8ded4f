import type { Logger } from 'pino';
import type { Authenticator } from '../../auth/request/authenticator.ts';
import { directoryOf, type UserDirectory } from '../../auth/people/user-directory.ts';
import { systemClock, type Clock } from '../../db/clock.ts';
import { Replicas } from '../../db/engine/replicas.ts';
import { Container } from '../../di/container.ts';
import type { Registration } from '../../di/registration.ts';
import { compileRoutes, type CompiledMount, type MountPlan } from '../../http/compile/compile-routes.ts';
import type { CompiledRoute } from '../../http/exchange/compiled-route.ts';
import { ControllerBase } from '../../http/compile/controller.ts';
import type { Middleware } from '../../http/exchange/middleware.ts';
import { isRoute } from '../../http/declare/route.ts';
import { groupValueFaults, middleware as aMiddleware, throttle as aThrottle, usableItems } from '../../http/compile/value-faults.ts';
import { TrustedProxies } from '../../http/exchange/trusted-proxies.ts';
import { openApiDocument } from '../../openapi/document.ts';
import { schemaNameFaults } from '../../openapi/schemas-of-routes.ts';
import { clientNames } from '../../openapi/clients/client-names.ts';
import { referenceController } from '../../openapi/reference/controller.ts';
import { allowAny } from '../../permissions/built-ins.ts';
import { didYouMean } from '../../options/did-you-mean.ts';
import type { Fault } from '../../options/fault.ts';
import { INPUT_LIMITS, type InputLimits } from '../../options/input-limits.ts';
import { optionFaults, unknownNames } from '../../options/read-options.ts';
import { isMembers, type ValueRule } from '../../options/value-rule.ts';
import { memoryStorage } from '../../throttle/memory-storage.ts';
import type { ThrottleStorage } from '../../throttle/storage.ts';
import type { Throttle } from '../../throttle/throttle.ts';
import { readSettings, type Settings } from '../declare/config.ts';
import { createLog } from './create-log.ts';
import { sensitiveShapesOf, type SensitiveShapes } from '../check/sensitive-shapes.ts';
import { replicaFaults, replicasOf } from '../check/replica-faults.ts';
import { encryptedModels, readAppKeys } from '../data/app-keys.ts';
import { databaseSources, Databases } from '../data/databases.ts';
import { databasesOf } from '../data/migration-modules.ts';
import { foreignCopyFaults } from '../declare/define-plugin.ts';
import { loginFaults, type LoginProvider } from '../declare/login-provider.ts';
import type { Module } from '../declare/module.ts';
import { moduleConflicts } from '../check/module-conflicts.ts';
import { resourcesOf } from '../declare/resources-of.ts';
import { anAuthenticator, aModule, appRules, aRegistration, versionOptionNames } from '../declare/option-rules.ts';
import type { AppOptions, Controllers, GiveEachControllerAPath, VersionMount } from '../declare/options.ts';
import { orderModules } from './order-modules.ts';
import { silencedFaults } from '../check/silenced-checks.ts';
import { membersOnly } from '../tenants/members-only.ts';
import { tenantHeader } from '../tenants/tenant-places.ts';
import type { ModuleTenants } from '../tenants/tenant-directory.ts';
import { testedAuthenticators, type TestedOptions } from './tested-authenticators.ts';

/** Long enough for replicas that are busy, short enough for people who look at a list. */
const REPLICA_LAG_MS_MAX = 5_000;

/** Everything `createApp` decides before any I/O. */
export interface AppPlan {
  readonly settings: Settings;
  readonly inputLimits: InputLimits;
  readonly clock: Clock;
  readonly log: Logger;
  /** In the order they start. */
  readonly modules: readonly Module[];
  readonly authenticators: readonly Authenticator[];
  readonly users: UserDirectory | null;
  readonly login: LoginProvider | null;
  readonly tenants: ModuleTenants;
  readonly middleware: readonly Middleware[];
  readonly databases: Databases;
  /** Null where no route reads from one. */
  readonly replicas: Replicas | null;
  readonly services: Container;
  readonly throttleStorage: ThrottleStorage;
  readonly trustedProxies: TrustedProxies;
  readonly compiled: CompiledMount;
  readonly faults: readonly Fault[];
}

/** Reads all options and collects every fault. */
export function planApp(options: AppOptions): AppPlan {
  const faults = optionFaults('createApp', options, appRules);
  const given = <T>(name: keyof AppOptions, item: ValueRule) => usableItems('createApp', name, options[name], item, []) as readonly T[];
  const { settings, faults: settingFaults } = readSettings({
    ...options.settings,
    ...(Array.isArray(options.trustedProxies) ? { trustedProxies: options.trustedProxies } : {}),
  });
  for (const message of settingFaults) faults.push({ id: 'E011', message });
  const inputLimits: InputLimits = Object.freeze({
    ...INPUT_LIMITS,
    bodyBytes: options.bodyBytesMax ?? INPUT_LIMITS.bodyBytes,
    jsonDepth: options.jsonDepthMax ?? INPUT_LIMITS.jsonDepth,
    jsonMembers: options.jsonMembersMax ?? INPUT_LIMITS.jsonMembers,
    jsonItems: options.jsonItemsMax ?? INPUT_LIMITS.jsonItems,
    idempotencyRecords: options.idempotencyRecordsMax ?? INPUT_LIMITS.idempotencyRecords,
  });
  if (isMembers(options.silencedChecks)) faults.push(...silencedFaults(options.silencedChecks));
  const { ordered, faults: moduleFaults } = orderModules(given<Module>('modules', aModule));
  faults.push(...foreignCopyFaults(ordered), ...moduleFaults, ...moduleConflicts(ordered));
  const declared = [
    ...given<Authenticator>('authenticators', anAuthenticator),
    ...ordered.flatMap((module) => module.authenticators ?? []),
  ];
  faults.push(...duplicateAuthenticators(declared));
  const authenticators = (options as TestedOptions)[testedAuthenticators]?.(declared) ?? declared;
  const login = loginOf(options, ordered, declared, faults);
  const tenants = tenantsOf(options, ordered, faults);
  const middleware = [
    ...given<Middleware>('middleware', aMiddleware),
    ...ordered.flatMap((module) => module.middleware ?? []),
    ...(tenants.directory === undefined && tenants.membership === undefined ? [] : [membersOnly]),
  ];
  const places = [tenants.tenantParameter ?? []].flat();
  const users = usersOf(options, ordered, faults);
  const reference = referenceMount(options, settings, ordered, () => compiled.routes);
  const compiled: CompiledMount = compileRoutes([...mountPlans(options.mount, faults), ...moduleMounts(ordered, login), ...reference], {
    authenticators,
    middleware,
    throttles: given<Throttle>('throttles', aThrottle),
    errors: options.errors,
    moduleErrors: ordered.flatMap((module) => module.errorMap ?? []),
    resources: resourcesOf(options, ordered),
    modules: ordered,
    hasTenants: tenants.tenant !== undefined,
    users,
    rules: options.rules ?? {},
    rates: settings.throttleRates,
    bodyBytesMax: inputLimits.bodyBytes,
    timeoutMs: options.timeoutMs ?? 0,
    tenantHeader: tenantHeader(places),
    tenantParams: places.flatMap((place) => ('path' in place ? [place.path] : [])),
  });
  faults.push(...compiled.faults, ...routeListenerFaults(ordered, compiled.routes));
  if (compiled.faults.length === 0) faults.push(...schemaNameFaults(compiled.routes));
  const sources = databaseSources(options.database, settings.databaseUrl, faults);
  faults.push(...unknownDatabases(ordered, [...sources.keys()]));
  const replicas = replicasOf(compiled.routes);
  faults.push(
    ...replicaFaults(compiled.routes, [...sources.keys()], new Set(['default', ...ordered.flatMap((module) => databasesOf(module))])),
  );
  const encrypted = encryptedModels(ordered, resourcesOf(options, ordered));
  const databases = new Databases(sources, {
    prepare: settings.databasePrepare === 'on',
    replicas,
    readKeys: encrypted.length === 0 ? undefined : () => readAppKeys(encrypted, settings, options.keyWrapping),
  });
  let sensitive: SensitiveShapes | undefined;
  const log = createLog(options.log, settings, () => (sensitive ??= sensitiveShapesOf({ modules: ordered, routes: compiled.routes })));
  return {
    settings,
    inputLimits,
    clock: options.clock ?? systemClock,
    log,
    modules: ordered,
    authenticators,
    users,
    login,
    tenants,
    middleware,
    databases,
    replicas: replicas.size === 0 ? null : new Replicas(() => databases.all, options.replicaLagMsMax ?? REPLICA_LAG_MS_MAX, log),
    services: containerOf(
      [...ordered.flatMap((module) => module.services ?? []), ...given<Registration>('services', aRegistration)],
      faults,
    ),
    throttleStorage: options.throttleStorage ?? memoryStorage(),
    trustedProxies: proxiesOf(settings.trustedProxies, faults),
    compiled,
    faults,
  };
}

function routeListenerFaults(modules: readonly Module[], routes: readonly CompiledRoute[]): Fault[] {
  return modules.flatMap((module) =>
    routes.flatMap((route): Fault[] => {
      try {
        module.onRoute?.(route);
        return [];
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error);
        return [{ id: 'E006', message: `${route.controller}.${route.field}: the module "${module.name}" refuses it: ${reason}` }];
      }
    }),
  );
}

function mountPlans(mount: AppOptions['mount'] | undefined, faults: Fault[]): MountPlan[] {
  if (typeof mount !== 'object' || mount === null) {
    faults.push({ id: 'E011', message: 'createApp: "mount" is missing.', hint: "mount: { '/v1': { '/orders': OrderController } }." });
    return [];
  }
  return Object.entries(mount).flatMap(([path, given]) => {
    const where = `mount["${path}"]`;
    const misplaced = mountFault(where, given);
    if (misplaced !== undefined) {
      faults.push(misplaced);
      return [];
    }
    const version: VersionMount = isVersion(given) ? given : { controllers: given as Controllers };
    const unusable = groupValueFaults(where, version);
    faults.push(...unknownNames(where, version, versionOptionNames), ...unusable);
    if (unusable.length > 0) return [];
    if (typeof version.controllers !== 'object' || version.controllers === null) {
      faults.push({ id: 'E008', message: `${where}: has no controllers.`, hint: "{ controllers: { '/orders': OrderController } }." });
      return [];
    }
    return {
      path,
      controllers: version.controllers,
      deprecated: version.deprecated ?? false,
      errors: version.errors,
      middleware: version.middleware ?? [],
      throttles: version.throttles ?? [],
      permission: version.permission,
    };
  });
}

/** Mistakes that would mount nothing: a controller without its prefix, a prefix without its slash. */
function mountFault(where: string, given: unknown): Fault | undefined {
  const hint = "mount: { '/v1': { '/orders': OrderController } }.";
  if (typeof given !== 'object' || given === null || Object.values(given).some(isRoute))
    return { id: 'E008', message: `${where}: takes controllers by prefix.`, hint };
  const bare = Object.entries(given).find(([key, value]) => !key.startsWith('/') && isController(value));
  return bare && { id: 'E004', message: `${where}: the prefix "${bare[0]}" does not start with "/".`, hint };
}

function isController(value: unknown): boolean {
  return typeof value === 'function' ? value.prototype instanceof ControllerBase : value instanceof ControllerBase;
}

function moduleMounts(modules: readonly Module[], login: LoginProvider | null): MountPlan[] {
  return modules.flatMap(({ mount }) => {
    if (mount === undefined) return [];
    return [atRoot(typeof mount === 'function' ? mount({ login }) : mount)];
  });
}

function atRoot(controllers: Controllers): MountPlan {
  return { path: '/', controllers, deprecated: false, errors: undefined, middleware: [], throttles: [], permission: undefined };
}

/** What the modules send, for the OpenAPI document. */
export function openApiWebhooks(modules: readonly Module[]): Readonly<Record<string, object>> {
  return Object.assign({}, ...modules.map((module) => module.openApiWebhooks ?? {})) as Readonly<Record<string, object>>;
}

/** The reference page is made of ordinary routes: middleware, permissions and error maps apply to it too. */
function referenceMount(
  options: AppOptions,
  settings: Settings,
  modules: readonly Module[],
  routes: () => readonly CompiledRoute[],
): MountPlan[] {
  const docs = options.docs ?? true;
  if (docs === false) return [];
  const { path = '/docs', permission = allowAny } = docs === true ? {} : docs;
  const { title = 'API', version = '0.0.0', description } = options;
  const document = () =>
    JSON.stringify(
      openApiDocument(routes(), {
        spec: '3.1',
        title,
        version,
        description,
        errorFormat: settings.errorFormat,
        throttleRates: settings.throttleRates,
        servers: settings.apiServers.map((url) => ({ url })),
        webhooks: openApiWebhooks(modules),
      }),
    );
  const index = () => ({
    title,
    version,
    links: { docs: path, openapi: `${path.slice(0, path.lastIndexOf('/'))}/openapi.json`, ...siteLinks(routes()) },
  });
  const facts = () => ({ clients: clientNames(routes()), session: sessionPath(routes()) });
  return [atRoot({ '/': referenceController({ path, permission, document, index, facts }) })];
}

/** The route that returns the CSRF token of a session: that of accounts, or of the admin site. */
function sessionPath(routes: readonly CompiledRoute[]): string | null {
  const found = routes.filter(
    ({ method, path, response }) =>
      method === 'GET' && !path.includes(':') && JSON.stringify(response?.json ?? {}).includes('"csrf_token"'),
  );
  return found.toSorted((a, b) => Number(a.hidden) - Number(b.hidden))[0]?.path ?? null;
}

/** Sites for people among the routes: each names itself with `metadata: { site: 'admin' }`. */
function siteLinks(routes: readonly CompiledRoute[]): Record<string, string> {
  return Object.fromEntries(
    routes.flatMap(({ path, metadata }) => {
      const { site } = metadata as { readonly site?: unknown };
      return typeof site === 'string' ? [[site, path.endsWith('/') ? path : `${path}/`]] : [];
    }),
  );
}

/** Prefixes start with "/", options do not. */
function isVersion(given: VersionMount | Controllers | GiveEachControllerAPath): given is VersionMount {
  return Object.keys(given).some((key) => !key.startsWith('/'));
}

/** A module without its database would fail at its first statement, or never be migrated. */
function unknownDatabases(modules: readonly Module[], aliases: readonly string[]): Fault[] {
  if (aliases.length === 0) return [];
  return modules.flatMap((module) =>
    databasesOf(module)
      .filter((alias) => !aliases.includes(alias))
      .map((alias) => ({
        id: 'E006' as const,
        message: `The module "${module.name}" has tables in the database "${alias}", which the app does not have.`,
        hint: `The app has ${aliases.join(', ')}.${didYouMean(alias, aliases)}`,
      })),
  );
}

function duplicateAuthenticators(authenticators: readonly Authenticator[]): Fault[] {
  const names = authenticators.map(({ name }) => name);
  return [...new Set(names.filter((name, index) => names.indexOf(name) !== index))].map((name) => ({
    id: 'E005',
    message: `Two authenticators are named "${name}".`,
    hint: 'Routes and the OpenAPI document refer to them by name: rename one.',
  }));
}

function usersOf(options: AppOptions, modules: readonly Module[], faults: Fault[]): UserDirectory | null {
  if (options.users !== undefined) return directoryOf(options.users);
  const bringing = modules.filter((module) => module.users !== undefined);
  if (bringing.length > 1) {
    const names = bringing.map(({ name }) => name).join(' and ');
    faults.push({ id: 'E006', message: `${names} both provide users.`, hint: 'Choose one: createApp({ users }).' });
  }
  const users = bringing[0]?.users;
  return users === undefined ? null : directoryOf(users);
}

/** Null for an unusable one as well: its faults stop the start. */
function loginOf(
  { login: own }: AppOptions,
  modules: readonly Module[],
  authenticators: readonly Authenticator[],
  faults: Fault[],
): LoginProvider | null {
  const bringing = modules.filter(({ login }) => login !== undefined);
  if (own === undefined && bringing.length > 1) {
    const names = bringing.map(({ name }) => name).join(' and ');
    faults.push({ id: 'E006', message: `${names} both provide a login.`, hint: 'Choose one: createApp({ login }).' });
  }
  const login = own ?? withPages(bringing[0]?.login, modules);
  if (!isMembers(login) || !Array.isArray(login.authenticators)) return null;
  const unusable = loginFaults(login, authenticators);
  faults.push(...unusable);
  return unusable.length > 0 ? null : login;
}

/** A module's login that nobody has a page for is none: what needs one says so. */
function withPages(login: LoginProvider | undefined, modules: readonly Module[]): LoginProvider | undefined {
  if (login === undefined) return undefined;
  const pages = modules.find(({ loginPages }) => loginPages !== undefined)?.loginPages;
  if (login.loginUrl === undefined && login.form === undefined && pages === undefined) return undefined;
  return { ...pages, ...login };
}

/** The app's own resolver replaces that of a module: who reads the tenant must also prove the membership. */
function tenantsOf(options: AppOptions, modules: readonly Module[], faults: Fault[]): ModuleTenants {
  if (options.tenant !== undefined) return { ...options, ...membershipOf(options) };
  const bringing = modules.filter((module) => module.tenants !== undefined);
  if (bringing.length > 1) {
    const names = bringing.map(({ name }) => name).join(' and ');
    faults.push({ id: 'E006', message: `${names} both provide tenants.`, hint: 'Choose one: createApp({ tenant, membership }).' });
  }
  return bringing[0]?.tenants ?? options;
}

/** Without `membership`, the batch decides requests, too. */
function membershipOf({ membership, memberships }: AppOptions): Pick<ModuleTenants, 'membership'> {
  if (membership !== undefined || typeof memberships !== 'function') return {};
  return { membership: async ({ db, user, tenant }) => (await memberships(db, [{ userId: user.id, tenant }]))[0] ?? null };
}

function containerOf(registrations: readonly Registration[], faults: Fault[]): Container {
  try {
    return new Container(registrations);
  } catch (error) {
    faults.push({ id: 'E011', message: error instanceof Error ? error.message : String(error) });
    return new Container([]);
  }
}

function proxiesOf(given: readonly string[] | undefined, faults: Fault[]): TrustedProxies {
  try {
    return new TrustedProxies(given);
  } catch (error) {
    faults.push({ id: 'E011', message: error instanceof Error ? error.message : String(error) });
    return new TrustedProxies();
  }
}
