import type { ColumnType } from 'kysely';
import type { Column } from '../declare/column.ts';
import type { HasColumns, Written } from '../declare/rows.ts';

type TableOf<C> = {
  [K in keyof C]: C[K] extends Column<infer S, infer O, boolean>
    ? ColumnType<S, O extends true ? Written<S> | undefined : Written<S>, Written<S>>
    : never;
};

/** Kysely's table map of some models: `type Shop = Tables<{ orders: typeof orders; customers: typeof customers }>`. */
export type Tables<M extends Readonly<Record<string, HasColumns>>> = { [K in keyof M]: TableOf<M[K]['columns']> };
