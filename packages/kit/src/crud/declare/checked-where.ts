import type { WhereSql } from '../../db/sql/where/where-sql.ts';

/** Shown by the compiler where a condition has a name that is neither a column nor a relation of the model. No value has this type. */
export interface UnknownColumn<N> {
  readonly unknownColumn: N;
}

/** Shown by the compiler for `some` or `none` of a relation that leads to one row: such a relation takes `is`. No value has this type. */
export interface UseIsForToOneRelation<N> {
  readonly useIs: N;
}

/** Shown by the compiler for a rule that returns something else than a condition. No value has this type. */
export interface ReturnACondition {
  readonly conditionIsMissing: never;
}

/** What a condition is not: each member of a condition is optional, so strings, lists, functions and promises would pass for one. */
export interface NoOtherValue {
  /** A string or a list is not a condition. */
  readonly concat?: never;
  /** A function is not a condition. */
  readonly bind?: never;
  /** A promise is not a condition: await it. */
  readonly then?: never;
  /** A number is not a condition. */
  readonly toFixed?: never;
}

/**
 * Anything, unless a condition that a function returns has a name that the model does not have: the compiler checks the members of an object
 * literal only where its type is written down, and this one is inferred. Names only: an intersection with `Where` costs far more.
 */
// A type with both is the constraint itself, which the compiler takes when a value does not fit: it reports that value.
export type NamesChecked<W, C, R> = [boolean | WhereSql] extends [W]
  ? unknown
  : [Mistake<W, C, R>] extends [never]
    ? unknown
    : Mistake<W, C, R>;

type Mistake<W, C, R> = W extends boolean | WhereSql
  ? never
  : W extends Condition
    ? {
        [K in keyof W]-?: K extends 'and' | 'or'
          ? W[K] extends readonly (infer E)[]
            ? Mistake<E, C, R>
            : never
          : K extends 'not'
            ? Mistake<W[K], C, R>
            : K extends keyof C
              ? never
              : K extends keyof R
                ? RelationMistake<W[K], R[K], K>
                : UnknownColumn<K>;
      }[keyof W]
    : ReturnACondition;

type Condition = object & NoOtherValue;

type RelationMistake<W, X, N> = X extends { readonly kind: infer Kind; readonly model: () => { readonly columns: infer C } }
  ? {
      [K in keyof W]-?: Kind extends 'one'
        ? K extends 'is'
          ? Mistake<W[K], C, object>
          : UseIsForToOneRelation<N>
        : Mistake<W[K], C, object>;
    }[keyof W]
  : never;
