export { defineErrors, errorCatalogs, isErrorDefinition } from './catalog.ts';
export type { ErrorCatalog, ErrorDefinition, ErrorDetails, ErrorEntry } from './catalog.ts';
export { coreErrors } from './core-errors.ts';
export { ErrorMap, errors, type ErrorClass, type ErrorRule } from './error-map.ts';
export { isKitError, KitError, type FieldError, type KitErrorOptions } from './kit-error.ts';
export { renderError, toKitError, type ErrorFormat, type RenderedError, type RenderOptions } from './render.ts';
export { translateServerError, translateSocketError } from './server-errors.ts';
