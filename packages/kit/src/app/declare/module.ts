import type { FastifyInstance, FastifyPluginAsync, InjectOptions, LightMyRequestResponse } from 'fastify';
import type { Authenticator } from '../../auth/request/authenticator.ts';
import type { UserDirectory, UserSource } from '../../auth/people/user-directory.ts';
import type { KeyWrapping } from '../../db/sealing/data-keys.ts';
import type { Clock } from '../../db/clock.ts';
import type { Database, Db } from '../../db/engine/db.ts';
import type { Backfill } from '../../db/backfills/backfill.ts';
import type { TriggeredTable } from '../../db/migrations/core/change-sql.ts';
import type { Migration } from '../../db/migrations/migration.ts';
import type { Container } from '../../di/container.ts';
import type { Registration } from '../../di/registration.ts';
import type { EventHandler } from '../../events/event-handler.ts';
import type { ErrorCatalog } from '../../errors/catalog.ts';
import type { Model } from '../../db/declare/model.ts';
import type { Erasing } from '../../db/declare/personal-column.ts';
import type { ErrorMap } from '../../errors/error-map.ts';
import type { CompiledRoute } from '../../http/exchange/compiled-route.ts';
import type { ControllerBase, Mountable } from '../../http/compile/controller.ts';
import type { DeclaredParts } from '../../http/compile/declared-parts.ts';
import type { Fault } from '../../options/fault.ts';
import type { InputLimits } from '../../options/input-limits.ts';
import type { Log } from '../../http/log.ts';
import type { Middleware } from '../../http/exchange/middleware.ts';
import type { HealthCheck } from '../../middleware/health.ts';
import type { MetricRegistry } from '../../observe/metric-registry.ts';
import type { Rule } from '../../permissions/permission.ts';
import type { ThrottleStorage } from '../../throttle/storage.ts';
import type { AdminDeclaration } from '../admin/declaration.ts';
import type { PortalDeclaration } from '../admin/portal-page.ts';
import type { Check } from './check.ts';
import type { Command } from './command.ts';
import type { Settings } from './config.ts';
import type { LoginProvider } from './login-provider.ts';
import type { ProvidedRegistry, Registry } from './registry.ts';
import type { Seed } from './seed.ts';
import type { ModuleTenants } from '../tenants/tenant-directory.ts';
import type { TenantPlace } from '../tenants/tenant-places.ts';

/** A part of an application: accounts, API keys, webhooks, your own. Everything in it is data or a hook. */
export interface Module {
  /** Identifies the module, among others in the ids of its migrations: `shop/0001_initial`. */
  readonly name: string;
  /** Names of modules that must be installed too; they are set up and started first. */
  readonly requires?: readonly string[];
  /** Names of modules that come first where they are installed, so that their middleware, `setup` and `start` run before this one's. */
  readonly after?: readonly string[];
  /** The tables of the module, compared with its migrations at startup. */
  readonly models?: readonly Model[];
  /** The migrations of the module, in the order in which they run. */
  readonly migrations?: readonly Migration[];
  /** Back-fills of large tables, what `backfill(…)` of `kit/db` returns: `kit backfill run` runs them. */
  readonly backfills?: readonly Backfill[];
  /** Aliases of the databases its tables are in. Default: `default` alone. */
  readonly databases?: readonly string[];
  /** How requests are authenticated, after those of the app. */
  readonly authenticators?: readonly Authenticator[];
  /** The table of users, or how to find them. One module of an app provides it. */
  readonly users?: UserSource;
  /** How people log in with a browser. The admin site uses it. */
  readonly login?: LoginProvider;
  /** Pages for people, for a `login` of another module that has none. */
  readonly loginPages?: Required<Pick<LoginProvider, 'loginUrl' | 'accountUrl'>>;
  /** The tenants of the app, unless `createApp` is given a `tenant`. */
  readonly tenants?: ModuleTenants;
  /** Services that handlers get from `services`, what `singleton(…)`, `scoped(…)` or `value(…)` of `kit/di` returns. */
  readonly services?: readonly Registration[];
  /** The errors of the module, what `defineErrors(…)` returns: listed in the OpenAPI document. */
  readonly errors?: ErrorCatalog;
  /** Requests that the module sends to others, for the OpenAPI document's `webhooks`: path items by name. */
  readonly openApiWebhooks?: Readonly<Record<string, object>>;
  /** Runs around every request of the app. */
  readonly middleware?: readonly Middleware[];
  /** Asked after the app's own map, for every route. */
  readonly errorMap?: ErrorMap;
  /** Policies of models that have no controller: what `resource(…)` of `kit/crud` returns. */
  readonly resources?: readonly ResourceDeclaration[];
  /** Handlers of domain events, after those of the app. */
  readonly handlers?: readonly EventHandler[];
  /** Background jobs of the module, what `job(…)` of `kit/contrib/jobs` returns: run when the jobs module is installed. */
  readonly jobs?: readonly JobDeclaration[];
  /** Rows for development and tests, run by `kit seed` before those of the app. */
  readonly seeds?: readonly Seed[];
  /** Commands that `kit` gets from the module. */
  readonly commands?: readonly Command<App>[];
  /** Run at startup and by `kit check`. */
  readonly checks?: readonly Check<App>[];
  /**
   * Controllers at an address of the module's own: `{ '/admin': AdminController }`. Checked like all other routes. A function is called once,
   * with the login provider of the app; null when there is none.
   */
  readonly mount?: ModuleMount | ((app: { readonly login: LoginProvider | null }) => ModuleMount);
  /** What `ready` of HealthController reports for it, by name. `{ warning }` reports a problem that does not stop the work. */
  readonly healthChecks?: Readonly<Record<string, HealthCheck>>;
  /** What the admin site shows for this module. */
  readonly admin?: AdminDeclaration;
  /** What the developers' portal shows for this module. */
  readonly portal?: PortalDeclaration;
  /**
   * What is wrong with the module's data in this database, in sentences; empty where nothing is. Asked after a restore and after a copy, of databases
   * that are not open in the app. It changes nothing.
   */
  verifyData?(db: Db): Promise<readonly string[]>;
  /**
   * Rows of a table are about to be erased, in this transaction: those of a person or tenant, or those whose retention is over. For what belongs to them and is in no
   * table, such as files.
   */
  beforeErase?(tx: Db, model: Model, rows: readonly Readonly<Record<string, unknown>>[], erasing: Erasing): Promise<void>;
  /** The files that belong to a row of its tables, for the export of a person or tenant. */
  filesOfRow?(app: App, model: Model, row: Readonly<Record<string, unknown>>): Promise<readonly ExportedFile[]>;
  /** Looks at every route of the app while it is created; throwing is a fault of the route. */
  onRoute?(route: CompiledRoute): void;
  /**
   * What the module provides for others: the audit sink, the event publisher, a listener for user changes. Called once while the app is
   * created, before `install`; `app.registry` does not exist yet. Two modules that provide the same thing fail the start.
   */
  provides?(app: App): ProvidedRegistry;
  /** Synchronous wiring while the app is created. No I/O; the databases are not open yet. */
  install?(app: App): void;
  /**
   * Declares the module's metrics. Called once, after every module is installed, and only when metrics() is among the modules: without it
   * nothing is counted. Keep what `counter()` and `histogram()` return and use it as `sent?.add({ outcome })`.
   */
  metrics?(registry: MetricRegistry, app: App): void;
  /** Fastify routes or plugins of the module's own (an admin site's files), inside the app's context. */
  serve?(fastify: FastifyInstance, app: App): void | Promise<void>;
  /** Databases are open, nothing is served yet. */
  setup?(app: App): void | Promise<void>;
  /**
   * The process is long-lived, a server or a worker: start what monitors it, such as a port for metrics. Called before `start`; commands that
   * run until they are stopped call it without `start`. A text that it returns is printed for the operator: `Metrics for Prometheus: http://…`.
   */
  monitor?(app: App): string | undefined | void | Promise<string | undefined | void>;
  /** The app is about to serve: start timers, workers and listeners. */
  start?(app: App): void | Promise<void>;
  /** Runs in reverse order for every module that was set up, started or not; after the last request and before the databases close. */
  stop?(): void | Promise<void>;
}

/** A file in an export. */
export interface ExportedFile {
  /** With folders: `uploads/0192…/invoice.pdf`. */
  readonly name: string;
  /** Its bytes, a piece after the other. */
  open(): Promise<AsyncIterable<Uint8Array>>;
}

export type ModuleMount = Readonly<Record<string /* '/admin' */, Mountable>>;

/** A background job, declared with `job(…)` of `kit/contrib/jobs`. */
export interface JobDeclaration {
  readonly name: string;
  readonly queue: string;
}

/** A policy on a model: which of its rows and fields a caller may see and change. Declared with `resource(…)` of `kit/crud`. */
export interface ResourceDeclaration {
  readonly isResource: true;
  readonly name: string;
  readonly model: Model;
  /** Faults of the declaration. Called when everything is mounted and no database is open. */
  faults?(app: App): readonly Fault[];
  /** Faults of what the declaration needs in the databases, which are open now. */
  databaseFaults?(app: App): Promise<readonly Fault[]>;
}

/** What a controller may bring besides routes. The app calls these; a subclass that adds one calls `super`'s too. */
export interface MountedController extends ControllerBase {
  /** Called once every controller exists and before the first route is compiled. */
  prepare?(declared: DeclaredParts): void;
  /** Faults of the declaration. Called when everything is mounted and no database is open. */
  faults?(app: App): readonly Fault[];
  /** Faults of what the declaration needs in the databases, which are open now. */
  databaseFaults?(app: App): Promise<readonly Fault[]>;
  /** Tables of the default database whose changes are logged by triggers while the controller is mounted. */
  readonly triggeredTables?: readonly TriggeredTable[];
  /** Wiring while the app is created. */
  install?(app: App): void;
}

/** A created application. */
export interface App {
  readonly title: string;
  readonly version: string;
  readonly description: string | undefined;
  readonly settings: Settings;
  /** How keys of encrypted columns are wrapped; undefined where the settings contain the keys themselves. */
  readonly keyWrapping: KeyWrapping | undefined;
  /** How much a request may bring. */
  readonly inputLimits: InputLimits;
  /** The route table as data. */
  readonly routes: readonly CompiledRoute[];
  readonly modules: readonly Module[];
  /** Every mounted controller, one instance per mount. */
  readonly controllers: readonly MountedController[];
  /** Handlers of domain events, of the app and its modules, in the order in which they run. */
  readonly eventHandlers: readonly EventHandler[];
  /** Policies given to the app and its modules, without those of controllers. */
  readonly resources: readonly ResourceDeclaration[];
  /** The seeds that `createApp` was given, without those of modules. */
  readonly seeds: readonly Seed[];
  /** Warnings that the app silences, with their reasons. */
  readonly silencedChecks: Readonly<Record<string, string>>;
  /** The named rules that `createApp` was given. */
  readonly rules: Readonly<Record<string, Rule>>;
  /** Whether `createApp` was given a tenant resolver, or a module provides one. */
  readonly hasTenants: boolean;
  /** Where requests name their tenant: `{ header: 'X-Tenant' }`. Empty where that is not declared. */
  readonly tenantPlaces: readonly TenantPlace[];
  readonly authenticators: readonly Authenticator[];
  /** What the checks of the declaration warn of (`W…`); they are logged, too. Modules' own checks run with `ready()`. */
  readonly warnings: readonly Fault[];
  readonly users: UserDirectory | null;
  readonly registry: Registry;
  readonly services: Container;
  readonly throttleStorage: ThrottleStorage;
  readonly clock: Clock;
  readonly log: Log;
  /** The `default` database. Throws before `ready()`. */
  readonly db: Database;
  readonly databases: Readonly<Record<string, Database>>;
  /** The app's own server. Made when first asked for; an app used as a plugin never makes one. */
  readonly fastify: FastifyInstance;
  /** The app inside a foreign server: `server.register(app.plugin, { prefix: '/api' })`. */
  readonly plugin: FastifyPluginAsync;
  /** Opens the databases and nothing more: for migrations, which come before anything may read a table. Repeatable. */
  openDatabases(options?: { /** False: a SQLite file that does not exist is not created. */ readonly createFiles?: boolean }): Promise<App>;
  /** Opens databases, sets up modules, runs checks. Repeatable. */
  ready(): Promise<App>;
  /**
   * Starts what watches the process. Repeatable; `start` does it. For commands that run until they are stopped, such as workers: they print
   * what it returns, a line each, for the operator.
   */
  monitor(): Promise<readonly string[]>;
  /** Starts the modules (timers, workers). Repeatable; `listen` does it. */
  start(): Promise<void>;
  /** Starts modules, then listens. Returns the address. */
  listen(options?: { readonly host?: string; readonly port?: number }): Promise<string>;
  inject(request: InjectOptions | string): Promise<LightMyRequestResponse>;
  /** True once `close` was called. `ready` of `HealthController` returns 503 from then on. */
  readonly isStopping: boolean;
  /** What `ready` of `HealthController` checks by itself: whether the databases can be read, written to, and have tables this version can use. */
  readonly healthChecks: Readonly<Record<string, HealthCheck>>;
  /**
   * Graceful: is not ready, and goes on for `shutdownDelayMs`; stops accepting; finishes what is open within `shutdownTimeoutMs`; stops
   * modules in reverse; closes databases.
   */
  close(): Promise<void>;
}
