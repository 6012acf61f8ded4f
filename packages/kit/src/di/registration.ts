import type { Service, ServiceType } from './service.ts';
import { readOptions, requireArguments } from '../options/read-options.ts';
import { aFunction, aList } from '../options/value-rule.ts';

/** `singleton`: one per application. `scoped`: one per request. `transient`: a new one each time. */
export type Lifetime = 'singleton' | 'scoped' | 'transient';

export type Dependencies = Readonly<Record<string, Service<unknown>>>;
export type Resolved<D extends Dependencies> = { readonly [K in keyof D]: ServiceType<D[K]> };

export interface RegistrationOptions<T> {
  /** Called once when the owner (application or request) ends, dependents before what they depend on. */
  readonly dispose?: (instance: T) => unknown;
}

/** How one service is made: plain data, so the whole graph can be checked before anything is built. */
export interface Registration {
  readonly service: Service<unknown>;
  readonly lifetime: Lifetime;
  readonly dependencies: Dependencies;
  readonly create: (dependencies: Readonly<Record<string, unknown>>, context: unknown) => unknown;
  readonly dispose?: (instance: unknown) => unknown;
}

type Factory<T, D extends Dependencies> = (dependencies: Resolved<D>) => T | Promise<T>;
type Declare = <T, const D extends Dependencies>(
  service: Service<T>,
  dependencies: D,
  create: Factory<T, D>,
  options?: RegistrationOptions<NoInfer<T>>,
) => Registration;

const declare =
  (lifetime: Lifetime): Declare =>
  (service, dependencies, create, options = {}) => {
    readOptions(`${lifetime}()`, options, { dispose: aFunction });
    return Object.freeze({ service, lifetime, dependencies, create, ...options }) as Registration;
  };

/** One instance for the life of the application, built at start in dependency order. */
export const singleton: Declare = declare('singleton');
/** One instance per request, built when something first asks for it. */
export const scoped: Declare = declare('scoped');
/** A new instance for everyone who asks; its disposer runs with the request (or application) that asked. */
export const transient: Declare = declare('transient');

/** An instance that already exists. The caller owns it: it is never disposed of here. */
export function value<T>(service: Service<T>, instance: NoInfer<T>): Registration {
  return Object.freeze({ service, lifetime: 'singleton', dependencies: {}, create: () => instance });
}

/** A scoped service read from what the scope was opened with (the request), e.g. the signed-in user. */
export function fromContext<T, C>(service: Service<T>, read: (context: C) => T): Registration {
  return Object.freeze({ service, lifetime: 'scoped', dependencies: {}, create: (_: unknown, context: unknown) => read(context as C) });
}

/** For tests: the same list with some services made another way. The given list stays as it is. */
export function override(registrations: readonly Registration[], replacements: readonly Registration[]): readonly Registration[] {
  requireArguments('override()', { registrations, replacements }, { registrations: aList, replacements: aList });
  const replaced = new Map(replacements.map((replacement) => [replacement.service, replacement]));
  const known = new Set(registrations.map((registration) => registration.service));
  for (const { service } of replacements) {
    if (!known.has(service))
      throw new Error(`override: nothing provides ${service.name}, so there is nothing to replace. Add it to the list instead.`);
  }
  return registrations.map((registration) => replaced.get(registration.service) ?? registration);
}
