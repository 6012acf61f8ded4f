import type { Registration } from './registration.ts';
import type { Service } from './service.ts';
import { findServiceFaults } from './verify.ts';

/** What a handler sees: ask for a service, get its instance. */
export interface ServiceScope {
  get<T>(service: Service<T>): Promise<T>;
}

type Registrations = ReadonlyMap<Service<unknown>, Registration>;

/** Instances of one lifetime and the disposers they left, in the order they were finished. */
class Instances {
  readonly #owner: string;
  readonly #built = new Map<Service<unknown>, Promise<unknown>>();
  readonly #building = new Set<Promise<unknown>>();
  readonly #disposers: { readonly name: string; readonly run: () => unknown }[] = [];
  #ended = false;

  constructor(owner: string) {
    this.#owner = owner;
  }

  /** The shared instance; callers that arrive while it is being built wait for the same one. A failure is not kept. */
  shared(registration: Registration, create: () => Promise<unknown>): Promise<unknown> {
    const known = this.#built.get(registration.service);
    if (known !== undefined) return known;
    const built = this.fresh(registration, create);
    this.#built.set(registration.service, built);
    built.catch(() => this.#built.delete(registration.service));
    return built;
  }

  fresh(registration: Registration, create: () => Promise<unknown>): Promise<unknown> {
    if (this.#ended) {
      return Promise.reject(
        new Error(
          `${registration.service.name} was asked for after its ${this.#owner} ended. Await everything a handler starts before it returns.`,
        ),
      );
    }
    const building = create().then((instance) => {
      const { dispose } = registration;
      if (dispose !== undefined) this.#disposers.push({ name: registration.service.name, run: () => dispose(instance) });
      return instance;
    });
    this.#building.add(building);
    const settled = (): boolean => this.#building.delete(building);
    building.then(settled, settled);
    return building;
  }

  /** Newest first, because a dependent is always finished after what it depends on. One failure does not stop the rest. */
  async end(): Promise<void> {
    this.#ended = true;
    while (this.#building.size > 0) await Promise.allSettled(this.#building);
    const failures: unknown[] = [];
    for (let disposer = this.#disposers.pop(); disposer !== undefined; disposer = this.#disposers.pop()) {
      try {
        await disposer.run();
      } catch (cause) {
        failures.push(new Error(`The service ${disposer.name} could not be disposed of.`, { cause }));
      }
    }
    this.#built.clear();
    if (failures.length > 0) throw new AggregateError(failures, `${failures.length} service(s) could not be disposed of.`);
  }
}

/** One request's services. Costs one small object until something is asked for. */
export class Scope implements ServiceScope, AsyncDisposable {
  readonly #container: Container;
  readonly #context: unknown;
  #instances: Instances | undefined;
  #ended = false;

  constructor(container: Container, context: unknown) {
    this.#container = container;
    this.#context = context;
  }

  get<T>(service: Service<T>): Promise<T> {
    return this.#container.resolve(service, this) as Promise<T>;
  }

  /** @internal */
  get context(): unknown {
    return this.#context;
  }

  /** @internal */
  instances(): Instances {
    if (this.#instances === undefined) {
      this.#instances = new Instances('request');
      if (this.#ended) void this.#instances.end();
    }
    return this.#instances;
  }

  /** Nothing to do, and no promise to wait for, when no service of the request was ever built. */
  end(): Promise<void> | undefined {
    this.#ended = true;
    return this.#instances?.end();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end();
  }
}

/** The application's services: refuses a graph that cannot be built, then builds singletons once and scopes per request. */
export class Container implements ServiceScope, AsyncDisposable {
  readonly #registrations: Registrations;
  readonly #instances = new Instances('application');

  constructor(registrations: readonly Registration[]) {
    const faults = findServiceFaults(registrations);
    if (faults.length > 0) throw new Error(`The services cannot be built:\n${faults.map((fault) => `- ${fault}`).join('\n')}`);
    this.#registrations = new Map(registrations.map((registration) => [registration.service, registration]));
  }

  get<T>(service: Service<T>): Promise<T> {
    return this.resolve(service, undefined) as Promise<T>;
  }

  has(service: Service<unknown>): boolean {
    return this.#registrations.has(service);
  }

  /** Builds every singleton, so that a wrong address or password fails the start and not a request. */
  async start(): Promise<void> {
    for (const { service, lifetime } of this.#registrations.values()) {
      if (lifetime !== 'singleton') continue;
      await this.get(service).catch((cause: unknown) => {
        throw new Error(`The service ${service.name} could not be built: ${cause instanceof Error ? cause.message : String(cause)}`, {
          cause,
        });
      });
    }
  }

  /** `context` is what fromContext() services read: the application passes the request's. */
  scope(context?: unknown): Scope {
    return new Scope(this, context);
  }

  /** @internal */
  resolve(service: Service<unknown>, scope: Scope | undefined): Promise<unknown> {
    const registration = this.#registrations.get(service);
    if (registration === undefined) {
      return Promise.reject(new Error(`Nothing provides ${service.name}. Add it to the services of the application.`));
    }
    if (registration.lifetime === 'singleton') return this.#instances.shared(registration, () => this.#create(registration, undefined));
    if (registration.lifetime === 'scoped') {
      if (scope === undefined)
        return Promise.reject(
          new Error(`${service.name} is scoped: it exists only inside a request. Ask for it through the handler's services.`),
        );
      return scope.instances().shared(registration, () => this.#create(registration, scope));
    }
    return (scope?.instances() ?? this.#instances).fresh(registration, () => this.#create(registration, scope));
  }

  async #create(registration: Registration, scope: Scope | undefined): Promise<unknown> {
    const dependencies: Record<string, unknown> = {};
    for (const [name, needed] of Object.entries(registration.dependencies)) dependencies[name] = await this.resolve(needed, scope);
    return registration.create(dependencies, scope?.context);
  }

  /** Disposes of singletons, newest first. End the open scopes before it. */
  async end(): Promise<void> {
    await this.#instances.end();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end();
  }
}
