import type { Columns } from '../../db/declare/rows.ts';
import type { Name, ToMany } from './relation.ts';

/** Rows of a to-many relation that are written with their parent. */
export interface NestedRelation<N extends string = string> {
  /** Columns of the child that a client may send here. */
  readonly input: readonly N[];
  /** What happens to children that a PUT, or a PATCH with the member, does not name. Default: `keep`. */
  readonly missing?: 'keep' | 'delete';
  /** Children of one request. Default: 100. */
  readonly max?: number;
}

type ChildOf<X> = X extends ToMany<infer C> ? C : Columns;

/** `items: { input: ['sku', 'amount'], missing: 'delete', max: 50 }`. */
export type NestedOptions<R> = {
  readonly [K in Extract<keyof R, string>]?: R[K] extends { readonly kind: 'many' } ? NestedRelation<Name<ChildOf<R[K]>>> : never;
};
