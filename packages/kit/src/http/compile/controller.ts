import type { ErrorMap } from '../../errors/error-map.ts';
import { InvalidOptions, valueFaults } from '../../options/read-options.ts';
import { anything, guards } from '../../options/value-rule.ts';
import type { Permission } from '../../permissions/permission.ts';
import type { Throttle } from '../../throttle/throttle.ts';
import type { HandlerContext } from '../declare/handler-context.ts';
import type { Middleware } from '../exchange/middleware.ts';
import { routeMetadata } from '../declare/controller-options.ts';
import { isRoute, type Deprecation, type Route } from '../declare/route.ts';
import { routeAround, type WrapOptions } from '../declare/route-around.ts';

/** What `wrap` adds: `undefined` would add nothing, and nobody would see it. */
const addedFacts = guards({ permission: anything, throttles: anything });

/** A group of operations: a class whose route fields are plain data. Options of the whole group are `static`. */
// oxlint-disable-next-line typescript/no-extraneous-class -- subclasses add the route fields
export abstract class ControllerBase {
  /** Exists in the type only: without it every value would pass as a controller. */
  declare protected readonly isController: true;
  static readonly tags?: readonly string[];
  /** Added to every route's own permission and to that of every base class, never replaced by either. */
  static readonly permission?: Permission;
  /** Added to those of every base class. */
  static readonly throttles?: readonly Throttle[];
  /** Asked before those of every base class. */
  static readonly errors?: ErrorMap;
  /** Runs inside that of the app, of the version and of every base class. */
  static readonly middleware?: readonly Middleware[];
  static readonly deprecated?: boolean | Deprecation;
  static readonly description?: string;
}

/**
 * The base class of controllers written by hand.
 *
 * @example
 * ```ts
 * class OrderController extends Controller {
 *   list = route.get('/', { permission: isAuthenticated, response: page(OrderOut) }, ({ db, user }) => ordersOf(db, user));
 * }
 * ```
 */
export abstract class Controller extends ControllerBase {
  /**
   * Overrides an inherited route: `override list = this.wrap('list', { summary: 'Yours' }, (context, next) => next())`.
   * A permission, throttles and errors given here are added to the inherited ones; a permission or throttles that are `undefined` are refused.
   * Other facts replace those of the same name, and `undefined` keeps the inherited value.
   */
  protected wrap(field: string, facts: WrapOptions, handler?: (context: HandlerContext, next: () => unknown) => unknown): Route {
    const faults = valueFaults(`${this.constructor.name}: wrap("${field}")`, facts, addedFacts);
    if (faults.length > 0) throw new InvalidOptions(faults);
    const inherited: unknown = (this as Readonly<Record<string, unknown>>)[field];
    if (isRoute(inherited)) return routeAround(inherited, facts, handler);
    throw new TypeError(`wrap("${field}"): no base class of ${this.constructor.name} has a route of this name`);
  }
}

/** Access options inherited along the class chain. */
export interface InheritedOptions {
  /** Base class first: its denial is the one that is given. */
  readonly permissions: readonly Permission[];
  readonly throttles: readonly Throttle[];
  /** Nearest class first. */
  readonly errors: readonly ErrorMap[];
  /** Base class first. */
  readonly middleware: readonly Middleware[];
  /** Of the nearest class. */
  readonly metadata: Readonly<Record<string, unknown>>;
}

/**
 * Statics shadow those of a base class, and a guard that a subclass shadows is gone without a word. So what guards (`permission`,
 * `throttles`, `errors`, `middleware`) is collected from every class of the chain.
 */
export function inheritedOptions(controller: ControllerBase): InheritedOptions {
  const chain: Partial<ControllerOptions>[] = [];
  for (
    let type: unknown = controller.constructor;
    typeof type === 'function' && type !== Function.prototype;
    type = Object.getPrototypeOf(type)
  )
    chain.unshift(ownOptions(type));
  const own = <V>(values: readonly (V | undefined)[]): V[] => values.filter((value) => value !== undefined);
  return {
    permissions: own(chain.map(({ permission }) => permission)),
    throttles: own(chain.map(({ throttles }) => throttles)).flat(),
    errors: own(chain.map(({ errors }) => errors)).reverse(),
    middleware: own(chain.map(({ middleware }) => middleware)).flat(),
    metadata: (controller.constructor as { readonly [routeMetadata]?: InheritedOptions['metadata'] })[routeMetadata] ?? {},
  };
}

function ownOptions(type: object): Partial<ControllerOptions> {
  const own = Object.entries(Object.getOwnPropertyDescriptors(type)).map(([name]) => [name, Reflect.get(type, name)] as const);
  return Object.fromEntries(own.filter(([name]) => chainedOptionNames.has(name)));
}

const chainedOptionNames: ReadonlySet<string> = new Set(['permission', 'throttles', 'errors', 'middleware']);

/** The static side of a controller, without its constructor's arguments. */
export interface ControllerOptions {
  /** Names the controller in operation ids. */
  readonly name: string;
  /** Tags of its operations in the OpenAPI document. */
  readonly tags?: readonly string[];
  /** Part of the permission of every route. */
  readonly permission?: Permission;
  /** Limits of every route. */
  readonly throttles?: readonly Throttle[];
  /** Errors of other libraries, by class, and what they become. */
  readonly errors?: ErrorMap;
  /** Runs around the routes of the controller. */
  readonly middleware?: readonly Middleware[];
  /** Marks every route as deprecated. */
  readonly deprecated?: boolean | Deprecation;
  /** Of its tag in the OpenAPI document. */
  readonly description?: string;
}

/** What `mount` takes: a class the app instantiates, or an instance built with arguments. */
export type ControllerClass = (new () => ControllerBase) & ControllerOptions;
export type Mountable = ControllerClass | ControllerBase;

export const controllerOptionNames = ['tags', 'permission', 'throttles', 'errors', 'middleware', 'deprecated', 'description'] as const;
