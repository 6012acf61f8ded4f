import type { OutputOf, Schema } from '../../http/declare/schema.ts';
import { readOptions } from '../../options/read-options.ts';
import { filledText } from '../../options/value-rule.ts';
import type { CrudCaller } from './crud-caller.ts';

/** A filter of the application's own: a typed parameter that becomes a condition of the page's one statement. */
export interface CustomFilter<W = unknown> {
  readonly isFilter: true;
  readonly schema: Schema;
  readonly where: (value: never, caller: CrudCaller) => W;
  readonly description: string | undefined;
}

/**
 * `mine: filter(z.boolean(), (value, { user }) => (value && user !== null ? { owner_id: user.id } : {}))`. The schema types, checks and
 * documents the parameter; the function returns the condition as data.
 *
 * @example
 * ```ts
 * class OrderController extends CrudController(orderResource, {
 *   permission: isAuthenticated,
 *   filters: { status: ['eq', 'in'], mine: filter(z.boolean(), (value, { user }) => (value && user ? { owner_id: user.id } : {})) },
 * }) {}
 * ```
 */
export function filter<S extends Schema, const W>(
  schema: S,
  where: (value: OutputOf<S>, caller: CrudCaller) => W,
  options: {
    /** Of the parameter, for the OpenAPI document. */
    readonly description?: string;
  } = {},
): CustomFilter<W> {
  readOptions('filter()', options, { description: filledText });
  return Object.freeze({ isFilter: true, schema, where: where, description: options.description });
}

export function isCustomFilter(value: unknown): value is CustomFilter {
  return typeof value === 'object' && value !== null && (value as Partial<CustomFilter>).isFilter === true;
}
