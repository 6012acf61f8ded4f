import type { Model } from '../../db/declare/model.ts';
import type { Columns } from '../../db/declare/rows.ts';
import type { Where } from '../../db/sql/where/where.ts';
import type { UnknownColumn } from './checked-where.ts';
import { readOptions } from '../../options/read-options.ts';
import { anything, filledText, guard, listOf, wholeNumber } from '../../options/value-rule.ts';

/** Names of columns, as text. */
export type Name<C> = Extract<keyof C, string>;

/** This row refers to one of the model's. */
export interface ToOne<C extends Columns = Columns, K extends string = string> {
  readonly kind: 'one';
  readonly model: () => Model<C>;
  /** The column of this row that refers to the other. */
  readonly column: K;
  /**
   * Callers who see this row also see the other one, where it matches this condition: the other row is part of this one. Which rows clients may
   * refer to is still decided by the resource of the other. Relations of modules have it; `one()` never does.
   */
  readonly seenWithRow?: Where<C> | undefined;
}

/** Rows of the model refer to this one. */
export interface ToMany<C extends Columns = Columns> {
  readonly kind: 'many';
  readonly model: () => Model<C>;
  /** The column of the other rows that refers to this one. */
  readonly column: string;
  readonly order: readonly string[];
  /** Rows per parent; undefined when the declaration does not say. */
  readonly limit: number | undefined;
  readonly where: Where<C> | undefined;
}

// oxlint-disable-next-line typescript/no-explicit-any -- any columns: relations of different models stand in one record
export type Relation = ToOne<any> | ToMany<any>;
/** What `one()`, `many()` and `people()` return. Errors of the compiler have this name, where a relation is declared as something else. */
// oxlint-disable-next-line typescript/no-explicit-any -- as above
type RelationByOneOrMany = ToOne<any> | ToMany<any>;
export type Relations = Readonly<Record<string, RelationByOneOrMany>>;

export interface ManyOptions<C extends Columns> {
  /** Column names; a leading minus means descending. Default: the key. */
  readonly order?: readonly (Name<C> | `-${Name<C>}`)[];
  /** At most this many per parent. Default: 20. Maximum: 100. */
  readonly limit?: number;
  /** Only these. */
  readonly where?: Where<C>;
}

/** Rows per parent of a to-many expansion whose declaration has no limit. */
export const EXPAND_LIMIT_DEFAULT = 20;
export const EXPAND_LIMIT_MAX = 100;

/**
 * The row that `column` refers to: `customer: one(() => customers, 'customer_id')`. Models, not resources: types would be circular.
 *
 * @example
 * ```ts
 * const orderResource = resource(orders, { owner: 'owner_id', relations: { customer: one(() => customers, 'customer_id') } });
 * ```
 */
export function one<C extends Columns, const K extends string>(model: () => Model<C>, column: K): ToOne<C, K> {
  return Object.freeze({ kind: 'one', model, column });
}

/**
 * The rows whose `column` refers to this one: `items: many(() => orderItems, 'order_id', { order: ['sku'], limit: 50 })`.
 *
 * @example
 * ```ts
 * const orderResource = resource(orders, {
 *   owner: 'owner_id',
 *   relations: { items: many(() => orderItems, 'order_id', { order: ['sku'], limit: 50 }) },
 * });
 * ```
 */
export function many<C extends Columns>(model: () => Model<C>, column: Name<C>, options: ManyOptions<C> = {}): ToMany<C> {
  const {
    order = [],
    limit,
    where,
  } = readOptions('many()', options, { order: listOf(filledText), limit: wholeNumber(1, EXPAND_LIMIT_MAX), where: guard(anything) });
  return Object.freeze({ kind: 'many', model, column, order, limit, where });
}

/** Relations to one row whose column this model does not have, replaced by a type that no value fits. */
export type KnownColumns<R, C> = {
  readonly [K in keyof R]: R[K] extends { readonly kind: 'one'; readonly column: infer N }
    ? string extends N
      ? unknown
      : N extends keyof C
        ? unknown
        : UnknownColumn<N>
    : unknown;
};
