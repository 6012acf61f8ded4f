/**
 * A controller of the toolkit declares its own options here, one rule each: `static readonly [controllerOptions] = { allowRateLimit: flag }`.
 * They are statics like `permission`, and checked at start-up like it.
 */
export const controllerOptions: unique symbol = Symbol('kit.controllerOptions');
