import type { Dialect } from '../../dialect.ts';
import type { Model } from '../../declare/model.ts';
import type { Encrypted } from '../../declare/encrypted-column.ts';
import type { Columns, RowOf } from '../../declare/rows.ts';
import type { WhereSql } from './where-sql.ts';

type Order<V> = { readonly [K in 'gt' | 'gte' | 'lt' | 'lte']?: V };
/** Text as it is, no wildcards; A–Z match a–z, nothing else is folded. */
type Text = { readonly [K in 'contains' | 'starts' | 'ends']?: string };
type Equal<V> = { readonly eq?: V | null; readonly ne?: V | null; readonly in?: readonly V[]; readonly nin?: readonly V[] };
type IsNull = { readonly isnull?: boolean };

/** The operators of a column by the type of its values. Which of them a kind of column has is checked again when compiled. */
type Operators<V> = [V] extends [string]
  ? Equal<V> & IsNull & Order<V> & (string extends V ? Text : unknown)
  : [V] extends [number | bigint | Date]
    ? Equal<V> & IsNull & Order<V>
    : [V] extends [boolean | Uint8Array]
      ? Equal<V> & IsNull
      : IsNull;

type Scalar = string | number | bigint | boolean | Date | Uint8Array;

/** A value means `eq`, null means `isnull: true`. JSON and array columns can only be asked for NULL. */
type Condition<V> = IsAny<V> extends true ? ValueCondition<V> : [V] extends [Encrypted<infer T>] ? Searched<T> : ValueCondition<V>;
/** Columns that are not known have values of any type. */
type IsAny<V> = 0 extends 1 & V ? true : false;
type Searched<T> = ([T] extends [Scalar] ? T | { readonly eq?: T | null; readonly in?: readonly T[] } : never) | IsNull | null;
type ValueCondition<V> = ([V] extends [Scalar] ? V : never) | Operators<V> | null;

/** The columns of the models that relations lead to, by the relation's name. */
export type RelatedColumns = Readonly<Record<string, Columns>>;

type RelationConditions<R extends RelatedColumns> = {
  readonly [K in keyof R]?: { readonly some: Where<R[K]> } | { readonly none: Where<R[K]> } | { readonly is: Where<R[K]> };
};

interface Logic<C extends Columns, R extends RelatedColumns> {
  /** Every one; an empty list is true. */
  readonly and?: readonly Where<C, R>[];
  /** At least one; an empty list is false. */
  readonly or?: readonly Where<C, R>[];
  /** The condition does not hold. */
  readonly not?: Where<C, R>;
}

/**
 * Which rows, as data: `{ status: 'open', total: { gte: '10.00' }, or: [{ owner_id: id }, { public: true }] }`. Members are joined by AND.
 * The same tree is compiled to SQL and evaluated on a row in JavaScript; both are three-valued, so `ne` and `not` do not match NULL.
 */
// oxlint-disable-next-line typescript/no-empty-object-type -- no relations
export type Where<C extends Columns = Columns, R extends RelatedColumns = {}> =
  | WhereSql
  | ({ readonly [K in Extract<keyof C, string>]?: Condition<NonNullable<RowOf<C>[K]>> } & Logic<C, R> & RelationConditions<R>);

/** How rows of a model are read from something else than its table. */
export interface JoinedTable {
  /** What stands in `from`. */
  readonly source: string;
  /** The condition that joins it, under an alias, to a column (SQL). */
  on(alias: string, column: string, dialect: Dialect): string;
}

/** What a relation leads to; needed to compile a tree that has relations. */
export interface WhereRelation {
  readonly kind: 'one' | 'many';
  /** `one`: the model referred to. `many`: the model whose rows refer to this row. */
  readonly model: Model;
  /** `one`: the column of this row that refers to the other. `many`: the column of the other rows that refers to this one. */
  readonly column: string;
  /** The column referred to. Default: the primary key. */
  readonly references?: string;
  /** Which of the other rows exist for this caller: soft deletion, policy. */
  readonly where?: Where | boolean;
  /** Set where the other rows are not in the table of their model. */
  readonly table?: JoinedTable | undefined;
}

/** Finds a relation of a model by its name; undefined when there is none. */
export type WhereRelations = (name: string, model: Model) => WhereRelation | undefined;
