import type { Clock } from '../../db/clock.ts';
import type { Db } from '../../db/engine/db.ts';
import type { Columns, RowOf } from '../../db/declare/rows.ts';
import type { AnswerOf, Schema } from '../../http/declare/schema.ts';
import type { CrudCaller } from './crud-caller.ts';
import type { Paths, RowOfPaths } from './paths.ts';
import type { Name } from './relation.ts';

/** What a computed field may use besides its row. `now` is the moment of the request, on every row the same; `clock` stands still at it. */
export interface ComputedContext {
  readonly now: Date;
  readonly clock: Clock;
  readonly caller: CrudCaller;
}

/** What `load` may use: also the database of the rows, or the open transaction of a write. */
export interface LoadContext extends ComputedContext {
  readonly db: Db;
}

/** A field computed from others when a row is shown. Exactly the columns that `requires` names are loaded for it. */
export interface ComputedField {
  readonly requires: readonly string[];
  readonly response: Schema;
  // oxlint-disable-next-line typescript/no-explicit-any -- erased: `resource()` checked it against the columns that `requires` names
  readonly value?: ((row: any, context: ComputedContext) => unknown) | undefined;
  // oxlint-disable-next-line typescript/no-explicit-any -- as above
  readonly load?: ((rows: readonly any[], context: LoadContext) => unknown) | undefined;
  readonly ofRow?: true | undefined;
}

/** The value of each row, or the values of all rows of a page together. */
type ValueOrLoad<R, V> =
  | {
      /** Gets the required columns; those of a relation are below its name, or null where the caller does not see the other row. */
      readonly value: (row: R, context: ComputedContext) => V | Promise<V>;
      readonly load?: never;
    }
  | {
      /** Gets the required columns of all rows of a page, and returns their values in the same order: one statement for a page. */
      readonly load: (rows: readonly R[], context: LoadContext) => readonly V[] | Promise<readonly V[]>;
      /** The values depend on the required columns alone, so that they can be part of a live list. */
      readonly ofRow?: true;
      readonly value?: never;
    };

/** Computed fields by name. `Q` has the paths that each of them requires, `Y` the schema of each. */
export type ComputedFields<C extends Columns, R, Q, Y> = {
  readonly [K in keyof Q]: {
    /** Columns (`due_at`), and columns of to-one relations (`customer.terms`). */
    readonly requires: readonly (Q[K] extends Name<C> | Paths<R> ? Q[K] : Name<C> | Paths<R>)[];
  } & ValueOrLoad<RowOfPaths<C, R, Q[K]>, Computed<Y, K>>;
} & {
  /** The schema of the value. */
  readonly [K in keyof Y]: { readonly response: Y[K] & Schema };
};

/** Columns in another form, by name. `Z` has the columns that each of them requires. */
export type ShownColumns<C extends Columns, Z> = {
  readonly [K in keyof Z]: K extends Name<C>
    ? {
        /** Columns that `value` reads besides its own. */
        readonly requires: readonly (Z[K] extends Name<C> ? Z[K] : Name<C>)[];
        /** The schema of the value. */
        readonly response: Schema;
      } & ValueOrLoad<Pick<RowOf<C>, K | Extract<Z[K], Name<C>>>, unknown>
    : never;
};

type Computed<Y, K> = K extends keyof Y ? AnswerOf<Y[K] & Schema> : unknown;
