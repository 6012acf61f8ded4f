import type { OutputOf, Schema } from '../../http/declare/schema.ts';
import { notTrue } from '../../db/sql/where/not-true.ts';
import { inIndexWords, type WhereSql } from '../../db/sql/where/where-sql.ts';
import { jsonSchema } from '../../http/declare/json-schema.ts';
import { readOptions, requireArguments } from '../../options/read-options.ts';
import { filledText } from '../../options/value-rule.ts';
import type { CrudCaller } from './crud-caller.ts';

/** A filter of the application's own: a typed parameter that becomes a condition of the page's one statement. */
export interface CustomFilter<W = unknown> {
  readonly isFilter: true;
  readonly schema: Schema;
  readonly where: (value: never, caller: CrudCaller) => W;
  readonly description: string | undefined;
  /** The condition of the index that serves it; see {@link words}. */
  readonly words: string | undefined;
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
  return Object.freeze({ isFilter: true, schema, where: where, description: options.description, words: undefined });
}

/**
 * A filter that is the condition of a partial index, in its words: `?discounted=true` lists the rows of the index, `false` all others. The columns are
 * written as `this.column`.
 *
 * @example
 * ```ts
 * class OrderController extends CrudController(orderResource, {
 *   permission: isAuthenticated,
 *   filters: { discounted: words("this.status = 'open' and this.discount is not null") },
 * }) {}
 * ```
 */
export function words(
  text: string,
  options: {
    /** Of the parameter, for the OpenAPI document. */
    readonly description?: string;
  } = {},
): CustomFilter<WhereSql> {
  requireArguments('words()', { text }, { text: filledText });
  readOptions('words()', options, { description: filledText });
  const condition = inIndexWords(text);
  // In a plain object: a rule of the application returns those, or SQL.
  const where = (isWanted: boolean) => (isWanted ? condition : ({ and: [notTrue(condition)] } as unknown as WhereSql));
  return Object.freeze({
    isFilter: true,
    schema: jsonSchema<boolean>({ type: 'boolean' }),
    where,
    description: options.description,
    words: text,
  });
}

export function isCustomFilter(value: unknown): value is CustomFilter {
  return typeof value === 'object' && value !== null && (value as Partial<CustomFilter>).isFilter === true;
}
