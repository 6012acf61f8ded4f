/**
 * A controller of the toolkit declares its own options here, one rule each: `static readonly [controllerOptions] = { allowRateLimit: flag }`.
 * They are statics like `permission`, and checked at start-up like it.
 */
export const controllerOptions: unique symbol = Symbol('kit.controllerOptions');

/**
 * Options that a base class took as arguments, each with the call that takes it: `{ filters: 'CrudController(resource, { filters: … })' }`. An
 * attribute of such a name, on the class or its instances, would do nothing.
 */
export const argumentOptions: unique symbol = Symbol('kit.argumentOptions');

/** Metadata of every route of a controller of the toolkit; a route's own comes after it. */
export const routeMetadata: unique symbol = Symbol('kit.routeMetadata');
