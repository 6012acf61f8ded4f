import type { FastifyInstance, FastifyPluginAsync, InjectOptions, LightMyRequestResponse } from 'fastify';
import type { Authenticator } from '../../auth/request/authenticator.ts';
import type { UserDirectory } from '../../auth/people/user-directory.ts';
import type { Clock } from '../../db/clock.ts';
import type { Database } from '../../db/engine/db.ts';
import type { Container } from '../../di/container.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import type { EventHandler } from '../../events/event-handler.ts';
import { bindEvents, unbindEvents } from '../../events/event-hub.ts';
import { authenticatorHost } from './authenticator-host.ts';
import { createHost } from './create-host.ts';
import { closeServer, settledWithin } from './close-server.ts';
import type { CompiledRoute } from '../../http/exchange/compiled-route.ts';
import type { Host } from '../../http/exchange/host.ts';
import type { Log } from '../../http/log.ts';
import { serveRoutes, type ServedRoutes } from '../../http/serve/serve-routes.ts';
import type { HealthCheck } from '../../middleware/health.ts';
import { isProduction } from '../../middleware/config.ts';
import { isMembers, wrongValue } from '../../options/value-rule.ts';
import type { Fault } from '../../options/fault.ts';
import type { InputLimits } from '../../options/input-limits.ts';
import type { ThrottleStorage } from '../../throttle/storage.ts';
import { addAppOfDatabase, removeAppOfDatabase } from '../data/apps-of-database.ts';
import { collectRegistry } from './collect-registry.ts';
import type { Settings } from '../declare/config.ts';
import { Connections } from '../data/connections.ts';
import { isSilenced } from '../check/silenced-checks.ts';
import { serveCors, type CorsOptions } from '../declare/cors.ts';
import { healthChecks, stuckDatabases } from './health-checks.ts';
import { InFlight } from './in-flight.ts';
import { modelDriftFaults, unknownReferences } from '../data/migration-modules.ts';
import type { App, Module, MountedController, ResourceDeclaration } from '../declare/module.ts';
import type { AppOptions } from '../declare/options.ts';
import { ownFastify } from './own-fastify.ts';
import { pruneChangesRegularly } from '../data/prune-changes.ts';
import { pruneIdempotencyRegularly } from '../data/prune-idempotency.ts';
import { planApp, type AppPlan } from './plan-app.ts';
import { proxyWarning } from '../check/proxy-warning.ts';
import { emptyRegistry, type Registry } from '../declare/registry.ts';
import { undurableHandlers } from '../check/undurable-handlers.ts';
import { isError, StartUpError } from '../check/start-up-error.ts';
import { ownRegistry } from './own-registry.ts';
import { resourcesOf } from '../declare/resources-of.ts';
import { Steps } from './steps.ts';

/**
 * Checks everything and throws every fault at once; no I/O. Databases open in `ready()`.
 *
 * @example
 * ```ts
 * const app = createApp({
 *   database: 'sqlite:./data/app.db',
 *   modules: [accounts()],
 *   mount: { '/v1': { '/account': AccountController, '/orders': OrderController } },
 * });
 * await app.listen({ port: 3000 });
 * ```
 */
export function createApp(options: AppOptions): App {
  if (!isMembers(options))
    throw new StartUpError([
      wrongValue('createApp()', 'the options object', options, "{ mount: { '/v1': { '/orders': OrderController } } }"),
    ]);
  return new Application(options);
}

class Application implements App {
  readonly title: string;
  readonly version: string;
  readonly description: string | undefined;
  readonly registry: Registry;
  readonly plugin: FastifyPluginAsync;
  readonly resources: readonly ResourceDeclaration[];
  readonly eventHandlers: readonly EventHandler[];
  readonly seeds: App['seeds'];
  readonly silencedChecks: Readonly<Record<string, string>>;
  readonly rules: App['rules'];
  readonly hasTenants: boolean;
  readonly tenantPlaces: App['tenantPlaces'];
  readonly keyWrapping: AppOptions['keyWrapping'];
  readonly warnings: readonly Fault[];
  readonly #plan: AppPlan;
  readonly #cors: CorsOptions | undefined;
  readonly #host: Host;
  readonly #served: ServedRoutes;
  readonly #inFlight = new InFlight();
  readonly #draining = new AbortController();
  readonly #stopping = new AbortController();
  /** `ready`, `monitor` and `start` each run the one before them first. `close` may come at any time; `stop` follows the last request. */
  readonly #steps = new Steps<'ready' | 'monitor' | 'start' | 'close' | 'stop'>();
  /** What the checks of the modules found when the databases were open. */
  #moduleWarnings: readonly Fault[] = [];
  /** What was started and has to be stopped, oldest first. */
  readonly #running: { readonly what: string; readonly stop: () => unknown }[] = [];
  #fastify: FastifyInstance | undefined;
  #connections: Connections | undefined;
  #healthChecks: Readonly<Record<string, HealthCheck>> | undefined;

  constructor(options: AppOptions) {
    this.title = options.title ?? 'API';
    this.version = options.version ?? '0.0.0';
    this.description = options.description;
    this.#plan = planApp(options);
    this.#cors = options.cors;
    this.resources = resourcesOf(options, this.#plan.modules);
    this.eventHandlers = [...(options.handlers ?? []), ...this.#plan.modules.flatMap((module) => module.handlers ?? [])];
    this.seeds = options.seeds ?? [];
    this.silencedChecks = options.silencedChecks ?? {};
    this.rules = options.rules ?? {};
    this.keyWrapping = options.keyWrapping;
    this.hasTenants = this.#plan.tenants.tenant !== undefined;
    this.tenantPlaces = [this.#plan.tenants.tenantParameter ?? []].flat();
    // Modules are not asked what they provide to an app that cannot start.
    const isPlanned = !this.#plan.faults.some(isError);
    const { registry, faults: conflicts } = isPlanned
      ? collectRegistry(this.#plan.modules, this, ownRegistry(this.#plan))
      : { registry: emptyRegistry, faults: [] };
    this.registry = registry;
    // A value that is no resource is a fault of the plan.
    const declared = [...this.controllers, ...this.resources.filter(isMembers)];
    const found = [...this.#plan.faults, ...conflicts, ...declared.flatMap((each) => each.faults?.(this) ?? [])];
    const faults = found.filter(isError);
    if (faults.length > 0) throw new StartUpError(faults);
    // In development clients come directly.
    const exposed = isProduction() ? proxyWarning(this) : [];
    this.warnings = [...found, ...exposed].filter(({ id }) => isSilenced(this, id) === undefined);
    const undurable = registry.jobs === null ? undurableHandlers(this.eventHandlers) : [];
    if (undurable.length > 0) throw new StartUpError(undurable);
    this.#host = createHost(this.#plan, options, registry, {
      draining: this.#draining.signal,
      stopping: this.#stopping.signal,
      track: (work) => this.#inFlight.track(work),
    });
    this.#served = { ...this.#plan.compiled, appMiddleware: this.#plan.middleware, appThrottles: options.throttles ?? [] };
    this.plugin = (fastify) => this.#serve(fastify, 'foreign');
    for (const module of this.#plan.modules) module.install?.(this);
    const { metrics } = this.registry;
    if (metrics !== null) for (const module of this.#plan.modules) module.metrics?.(metrics, this);
    const host = authenticatorHost(this);
    for (const authenticator of this.authenticators) authenticator.install?.(host);
    for (const controller of this.controllers) controller.install?.(this);
  }

  get settings(): Settings {
    return this.#plan.settings;
  }

  get inputLimits(): InputLimits {
    return this.#plan.inputLimits;
  }

  get healthChecks(): Readonly<Record<string, HealthCheck>> {
    return (this.#healthChecks ??= healthChecks(this));
  }

  get isStopping(): boolean {
    return this.#steps.hasBegun('close');
  }

  get stuckDatabases(): readonly string[] {
    return stuckDatabases(this.#plan.databases.all);
  }

  get routes(): readonly CompiledRoute[] {
    return this.#plan.compiled.routes;
  }

  get modules(): readonly Module[] {
    return this.#plan.modules;
  }

  get controllers(): readonly MountedController[] {
    return this.#plan.compiled.controllers;
  }

  get authenticators(): readonly Authenticator[] {
    return this.#plan.authenticators;
  }

  get users(): UserDirectory | null {
    return this.#plan.users;
  }

  get services(): Container {
    return this.#plan.services;
  }

  get throttleStorage(): ThrottleStorage {
    return this.#plan.throttleStorage;
  }

  get clock(): Clock {
    return this.#plan.clock;
  }

  get log(): Log {
    return this.#plan.log;
  }

  get db(): Database {
    return this.#plan.databases.get('default');
  }

  get databases(): Readonly<Record<string, Database>> {
    return this.#plan.databases.all;
  }

  get fastify(): FastifyInstance {
    if (this.#fastify === undefined) {
      this.#fastify = ownFastify(this.#host, this.#served);
      this.#connections = new Connections(this.#fastify.server);
      this.#fastify.register((fastify) => this.#serve(fastify, 'own'));
    }
    return this.#fastify;
  }

  async #serve(fastify: FastifyInstance, server: 'own' | 'foreign'): Promise<void> {
    if (this.#cors !== undefined) await serveCors(fastify, this.#cors);
    serveRoutes(fastify, this.#host, this.#served, server);
    for (const module of this.#plan.modules) await module.serve?.(fastify, this);
    fastify.addHook('onReady', async () => void (await this.ready()));
    if (server === 'foreign') fastify.addHook('onListen', () => this.#startWithServer());
    fastify.addHook('preClose', async () => this.#endStreams());
    fastify.addHook('onClose', () => this.#stop());
  }

  /** Fastify already listens, and reports a failure only to its own logger, which may be off. */
  async #startWithServer(): Promise<void> {
    try {
      await this.start();
    } catch (error) {
      this.log.error({ err: error }, 'the server listens, but the modules of the app could not be started');
    }
  }

  async openDatabases({ createFiles = true }: { readonly createFiles?: boolean } = {}): Promise<App> {
    try {
      await this.#plan.databases.open(this.clock, this.#plan.log, createFiles);
    } catch (error) {
      await this.#stop();
      throw error;
    }
    return this;
  }

  ready(): Promise<App> {
    return this.#steps.run('ready', () => this.#open());
  }

  async #open(): Promise<App> {
    const { databases, clock, log, services, throttleStorage, modules } = this.#plan;
    try {
      const drift = modelDriftFaults(this);
      if (drift.length > 0) throw new StartUpError(drift);
      await databases.open(clock, log);
      this.#bindDatabases();
      throttleStorage.open?.({ db: this.db, log });
      await services.start();
      this.#bindEvents();
      for (const module of modules) {
        this.#running.push({ what: `the module ${module.name}`, stop: () => module.stop?.() });
        await module.setup?.(this);
      }
      await this.#runChecks();
    } catch (error) {
      await this.#stop();
      throw error;
    }
    return this;
  }

  #bindEvents(): void {
    const { services, log } = this.#plan;
    const { jobs } = this.registry;
    const startDurable = jobs === null ? null : jobs.start.bind(jobs);
    for (const database of Object.values(this.databases))
      bindEvents({ database, handlers: this.eventHandlers, services, log, startDurable });
  }

  async #runChecks(): Promise<void> {
    // A check that several modules share runs once.
    const checks = new Set(this.#plan.modules.flatMap((module) => module.checks ?? []));
    const ofModules = [...checks].map(async (check) => check.run(this));
    const ofDeclarations = [...this.controllers, ...this.resources].map(async (each) => each.databaseFaults?.(this) ?? []);
    const faults = (await Promise.all([...ofModules, ...ofDeclarations, unknownReferences(this)])).flat();
    this.#moduleWarnings = faults.filter((fault) => !isError(fault) && isSilenced(this, fault.id) === undefined);
    const fatal = faults.filter(isError);
    if (fatal.length > 0) throw new StartUpError(fatal);
  }

  monitor(): Promise<readonly string[]> {
    return this.#steps.run('monitor', () => this.#monitor());
  }

  async #monitor(): Promise<readonly string[]> {
    await this.ready();
    const lines: string[] = [];
    for (const module of this.#plan.modules) {
      const line = await module.monitor?.(this);
      if (typeof line === 'string') lines.push(line);
    }
    return lines;
  }

  start(): Promise<void> {
    return this.#steps.run('start', () => this.#start());
  }

  async #start(): Promise<void> {
    await this.monitor();
    // Here and not before: a command that is not about them must not begin with them. `kit check` and `kit doctor` print them.
    for (const { id, message, hint } of [...this.warnings, ...this.#moduleWarnings])
      this.log.warn({ check: id }, `${id} ${message} ${hint ?? ''}`);
    this.#host.blocking.start();
    if (this.routes.some(({ idempotency }) => idempotency !== undefined))
      this.#running.push({ what: 'the pruning of idempotency records', stop: pruneIdempotencyRegularly(this.db, this.log) });
    if (this.routes.some(({ live }) => live !== undefined))
      this.#running.push({ what: 'the removal of old changes', stop: pruneChangesRegularly(this.db, this.log) });
    for (const module of this.#plan.modules) await module.start?.(this);
  }

  async listen({ host = '127.0.0.1', port = 3000 }: { readonly host?: string; readonly port?: number } = {}): Promise<string> {
    try {
      await this.start();
      if (this.#steps.hasBegun('close')) throw new Error('The app was closed before it listened.');
      return await this.fastify.listen({ host, port });
    } catch (error) {
      await this.close();
      throw error;
    }
  }

  async inject(request: InjectOptions | string): Promise<LightMyRequestResponse> {
    await this.ready();
    return this.fastify.inject(request);
  }

  close(): Promise<void> {
    return this.#steps.run('close', () => this.#close());
  }

  async #close(): Promise<void> {
    // Otherwise a start that is under way would open connections and start workers after the end, and nothing would close them.
    await settledWithin(this.settings.shutdownTimeoutMs, this.#steps.settled('start', 'monitor', 'ready'));
    const [fastify, connections] = [this.#fastify, this.#connections];
    if (fastify === undefined || connections === undefined) return this.#stop();
    await closeServer(fastify, connections, this.settings, {
      endStreams: () => this.#endStreams(),
      giveUp: () => {
        this.log.warn('requests were still open at the shutdown deadline');
        this.#stopping.abort(coreErrors.unavailable({ detail: 'The server is stopping.' }));
      },
    });
  }

  #endStreams(): void {
    this.#draining.abort(coreErrors.unavailable({ detail: 'The server is stopping; connect again.' }));
  }

  #stop(): Promise<void> {
    return this.#steps.run('stop', () => this.#end());
  }

  /** From a database to the app that is open on it; until the modules, whose jobs use it, have stopped. */
  #bindDatabases(): void {
    for (const database of Object.values(this.databases)) {
      addAppOfDatabase(database, this);
      this.#running.push({ what: `the database ${database.using}`, stop: () => removeAppOfDatabase(database, this) });
    }
  }

  /** After the last request: stops everything it could use, newest first. One failure does not stop the rest. */
  async #end(): Promise<void> {
    const { log, services, throttleStorage, databases } = this.#plan;
    this.#draining.abort(coreErrors.unavailable());
    this.#host.blocking.stop();
    const timeIsUp = Promise.withResolvers<void>();
    const grace = setTimeout(() => timeIsUp.resolve(), this.settings.shutdownTimeoutMs);
    if (await this.#inFlight.settle(timeIsUp.promise)) log.warn('work of requests was still running when the databases closed');
    clearTimeout(grace);
    const attempt = async (what: string, work: () => unknown) => {
      try {
        await work();
      } catch (error) {
        log.error({ err: error }, `${what} could not be stopped`);
      }
    };
    for (const { what, stop } of this.#running.reverse()) await attempt(what, stop);
    await attempt('the services', () => services.end());
    await attempt('the throttle storage', () => throttleStorage.close?.());
    for (const database of Object.values(this.databases)) unbindEvents(database);
    await databases.close(log);
    this.#plan.log.flush?.();
  }
}
