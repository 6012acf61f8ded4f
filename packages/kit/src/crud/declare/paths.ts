import type { RowOf } from '../../db/declare/rows.ts';
import type { Name, ToMany, ToOne } from './relation.ts';

export type ColumnsOf<X> = X extends ToOne<infer C> ? C : X extends ToMany<infer C> ? C : never;
export type ToOneNames<R> = { [K in Extract<keyof R, string>]: R[K] extends ToOne ? K : never }[Extract<keyof R, string>];
/** Columns of rows that a to-one relation leads to: `customer.name`. */
export type Paths<R> = { [K in ToOneNames<R>]: `${K}.${Name<ColumnsOf<R[K]>>}` }[ToOneNames<R>];
/** The value at a path. */
export type PathValue<R, P> = P extends `${infer K}.${infer N}`
  ? K extends keyof R
    ? N extends keyof ColumnsOf<R[K]>
      ? RowOf<ColumnsOf<R[K]>>[N]
      : never
    : never
  : never;

type Flat<X> = { [K in keyof X]: X[K] } & {};
type Head<P> = P extends `${infer K}.${string}` ? K : P;
type Tail<P, K> = P extends `${infer H}.${infer N}` ? (H extends K ? N : never) : never;

/** The columns of a row that paths name; those of a relation are below its name, null where the caller does not see the other row. */
export type RowOfPaths<C, R, P> = Flat<{
  readonly [K in Extract<Head<P>, string>]: K extends keyof C
    ? RowOf<C>[K]
    : K extends keyof R
      ? { readonly [N in Tail<P, K>]: PathValue<R, `${K}.${N}`> } | null
      : never;
}>;
