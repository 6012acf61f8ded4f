import type { AnyColumn, Column } from './column.ts';
import type { PlainOf } from './encrypted-column.ts';
import type { JsonParameter } from '../values/json-parameter.ts';

export type Columns = Readonly<Record<string, AnyColumn>>;

export interface HasColumns {
  readonly columns: Columns;
}

type Value<X> = X extends Column<infer S, boolean, boolean> ? S : never;
// oxlint-disable-next-line typescript/no-explicit-any -- matches every value type
type OptionalKeys<C> = { [K in keyof C]: C[K] extends Column<any, true, boolean> ? K : never }[keyof C];
type Flat<X> = { [K in keyof X]: X[K] } & {};

/** Flat, so that an editor shows the values of a row and not the declarations of its columns. */
export type RowOf<C> = { [K in keyof C]: Value<C[K]> } & {};
export type InsertOf<C> = Flat<
  { [K in Exclude<keyof C, OptionalKeys<C>>]: PlainOf<Value<C[K]>> } & { [K in OptionalKeys<C>]?: PlainOf<Value<C[K]>> | null | undefined }
>;
export type UpdateOf<C> = { [K in keyof C]?: PlainOf<Value<C[K]>> | undefined };

// oxlint-disable-next-line typescript/no-explicit-any -- matches every value type
type WritableKeys<C> = { [K in keyof C]: C[K] extends Column<any, boolean> ? K : never }[keyof C];
/** What a client sends to create a row: the columns it may write. */
export type InputOf<C> = InsertOf<Pick<C, WritableKeys<C>>>;
/** What a client sends to change a row. */
export type PatchOf<C> = UpdateOf<Pick<C, WritableKeys<C>>>;

/** A row as code reads it. */
export type Row<M extends HasColumns> = RowOf<M['columns']>;
/** What an insert needs: columns that are nullable or have a default may be left out. */
export type Insert<M extends HasColumns> = InsertOf<M['columns']>;
/** What an update may change. */
export type Update<M extends HasColumns> = UpdateOf<M['columns']>;
/** What `model.input` accepts from a client. Read-only and internal columns are the application's to set. */
export type Input<M extends HasColumns> = InputOf<M['columns']>;
/** What `model.patch` accepts from a client. */
export type Patch<M extends HasColumns> = PatchOf<M['columns']>;

/** JSON values that a driver would take for something else must be marked with `json(…)`. */
export type Written<S> = S extends
  | string
  | number
  | bigint
  | boolean
  | Date
  | Uint8Array
  | null
  | readonly (string | number | bigint | boolean | Date)[]
  ? S
  : unknown extends S
    ? JsonParameter | Readonly<Record<string, unknown>> | null
    : S | JsonParameter<S>;
