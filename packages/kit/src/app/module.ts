import type { FastifyInstance, FastifyPluginAsync, InjectOptions, LightMyRequestResponse } from 'fastify';
import type { Authenticator } from '../auth/authenticator.ts';
import type { UserDirectory } from '../auth/user-directory.ts';
import type { Clock } from '../db/clock.ts';
import type { Database } from '../db/db.ts';
import type { Container } from '../di/container.ts';
import type { Registration } from '../di/registration.ts';
import type { ErrorCatalog } from '../errors/catalog.ts';
import type { CompiledRoute } from '../http/compiled-route.ts';
import type { Mountable } from '../http/controller.ts';
import type { Log } from '../http/log.ts';
import type { Middleware } from '../http/middleware.ts';
import type { MetricRegistry } from '../observe/metric-registry.ts';
import type { ThrottleStorage } from '../throttle/storage.ts';
import type { AdminDeclaration } from './admin-declaration.ts';
import type { Check } from './check.ts';
import type { Command } from './command.ts';
import type { Settings } from './config.ts';
import type { Registry } from './registry.ts';

/** A part of an application: accounts, API keys, webhooks, your own. Everything in it is data or a hook. */
export interface Module {
  readonly name: string;
  /** Names of modules that must be installed too; they are set up and started first. */
  readonly requires?: readonly string[];
  readonly models?: readonly ModelLike[];
  readonly migrations?: readonly MigrationLike[];
  /** Aliases of the databases its tables are in; `default` alone unless said. */
  readonly databases?: readonly string[];
  readonly authenticators?: readonly Authenticator[];
  readonly users?: UserDirectory;
  readonly services?: readonly Registration[];
  readonly errors?: ErrorCatalog;
  readonly middleware?: readonly Middleware[];
  readonly commands?: readonly Command<App>[];
  readonly checks?: readonly Check<App>[];
  /** Controllers the module brings to an address of its own: `{ '/admin': AdminController }`. Routes like any other, also when they collide. */
  readonly mount?: Readonly<Record<string /* '/admin' */, Mountable>>;
  /** What the admin site shows for this module. */
  readonly admin?: AdminDeclaration;
  /** Synchronous wiring while the app is created: registries, throttle storages. No I/O; the databases are not open yet. */
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
  /** The app is about to serve: start timers, workers and listeners. */
  start?(app: App): void | Promise<void>;
  /** Runs in reverse order for every module that was set up, started or not; after the last request and before the databases close. */
  stop?(): void | Promise<void>;
}

export type ModelLike = object;
export type MigrationLike = object;

/** A created application. */
export interface App {
  readonly title: string;
  readonly version: string;
  readonly description: string | undefined;
  readonly settings: Settings;
  /** The route table as data. */
  readonly routes: readonly CompiledRoute[];
  readonly modules: readonly Module[];
  readonly authenticators: readonly Authenticator[];
  readonly users: UserDirectory | null;
  readonly registry: Registry;
  readonly services: Container;
  readonly throttleStorage: ThrottleStorage;
  readonly clock: Clock;
  readonly log: Log;
  /** The `default` database. Throws a sentence before `ready()`. */
  readonly db: Database;
  readonly databases: Readonly<Record<string, Database>>;
  /** The app's own server. Made when first asked for; an app used as a plugin never makes one. */
  readonly fastify: FastifyInstance;
  /** The app inside a foreign server: `server.register(app.plugin, { prefix: '/api' })`. */
  readonly plugin: FastifyPluginAsync;
  /** Opens the databases and nothing more: for migrations, which come before anything may read a table. Repeatable. */
  openDatabases(): Promise<App>;
  /** Opens databases, sets up modules, runs checks. Repeatable. */
  ready(): Promise<App>;
  /** Starts the modules (timers, workers). Repeatable; `listen` does it. */
  start(): Promise<void>;
  /** Starts modules, then listens. Returns the address. */
  listen(options?: { readonly host?: string; readonly port?: number }): Promise<string>;
  inject(request: InjectOptions | string): Promise<LightMyRequestResponse>;
  /** Graceful: stops accepting, finishes what is open within `shutdownTimeoutMs`, stops modules in reverse, closes databases. */
  close(): Promise<void>;
}
