import type { ErrorMap } from '../errors/error-map.ts';
import type { Permission } from '../permissions/permission.ts';
import type { Throttle } from '../throttle/throttle.ts';
import type { Deprecation } from './route.ts';

/** A group of operations: a class whose route fields are plain data. Options of the whole group are `static`. */
// oxlint-disable-next-line typescript/no-extraneous-class -- subclasses add the route fields
export abstract class Controller {
  /** Exists in the type only: without it every value would pass as a controller. */
  declare protected readonly isController: true;
  static readonly tags?: readonly string[];
  /** Added to every route's own permission, never replaced by it. */
  static readonly permission?: Permission;
  static readonly throttles?: readonly Throttle[];
  static readonly errors?: ErrorMap;
  static readonly deprecated?: boolean | Deprecation;
  static readonly description?: string;
}

/** The static side of a controller, without its constructor's arguments. */
export interface ControllerOptions {
  readonly name: string;
  readonly tags?: readonly string[];
  readonly permission?: Permission;
  readonly throttles?: readonly Throttle[];
  readonly errors?: ErrorMap;
  readonly deprecated?: boolean | Deprecation;
  readonly description?: string;
}

/** What `mount` takes: a class the app instantiates, or an instance built with arguments. */
export type ControllerClass = (new () => Controller) & ControllerOptions;
export type Mountable = ControllerClass | Controller;

export const controllerOptionNames = ['tags', 'permission', 'throttles', 'errors', 'deprecated', 'description'] as const;
