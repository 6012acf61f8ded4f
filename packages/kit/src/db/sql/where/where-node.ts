import type { SearchParameter } from '../../sealing/keyed-parameter.ts';
import type { ModelColumn } from '../model-statements.ts';
import type { SqlCondition } from './where-sql.ts';
import type { JoinedTable } from './where.ts';

/** A tree of conditions after it was checked: names are resolved, values are in the form that statements take. */
export type WhereNode =
  | { readonly node: 'constant'; readonly value: boolean }
  | { readonly node: 'all' | 'any'; readonly of: readonly WhereNode[] }
  | { readonly node: 'not'; readonly of: WhereNode }
  /** False or unknown. */
  | { readonly node: 'untrue'; readonly of: WhereNode }
  | { readonly node: 'null'; readonly column: ModelColumn; readonly isNull: boolean }
  /** Is, or is not, the empty text: written into the statement, so that a partial index with the same words serves it. */
  | { readonly node: 'empty'; readonly column: ModelColumn; readonly isEmpty: boolean }
  | { readonly node: 'compare'; readonly column: ModelColumn; readonly operator: CompareOperator; readonly value: WhereValue }
  | { readonly node: 'among'; readonly column: ModelColumn; readonly negated: boolean; readonly values: readonly WhereValue[] }
  /** An encrypted column is one of some plaintexts, by its search values. */
  | { readonly node: 'search'; readonly column: ModelColumn; readonly parameter: SearchParameter }
  | { readonly node: 'text'; readonly column: ModelColumn; readonly operator: TextOperator; readonly folded: string }
  | { readonly node: 'exists'; readonly name: string; readonly edge: Edge; readonly negated: boolean; readonly of: WhereNode }
  | { readonly node: 'sql'; readonly condition: SqlCondition };

/** How the other table is joined to the row. */
export interface Edge {
  readonly table: string;
  readonly theirColumn: string;
  readonly myColumn: string;
  /** Set where the other rows are not in the table. */
  readonly joined: JoinedTable | undefined;
}

export type CompareOperator = 'eq' | 'ne' | 'gt' | 'gte' | 'lt' | 'lte';
export type TextOperator = 'contains' | 'starts' | 'ends';

export interface WhereValue {
  /** As code has it. */
  readonly given: unknown;
  /** As the column's encoder writes it. */
  readonly encoded: unknown;
  /** Set where it is a time that moves with the clock: how far it is from now. */
  readonly offsetMs?: number;
}

export const TRUE: WhereNode = { node: 'constant', value: true };
export const FALSE: WhereNode = { node: 'constant', value: false };

export function allOf(nodes: readonly WhereNode[]): WhereNode {
  const kept = nodes.filter((each) => each.node !== 'constant' || !each.value);
  if (kept.some((each) => each.node === 'constant')) return FALSE;
  return kept.length === 0 ? TRUE : kept.length === 1 ? (kept[0] as WhereNode) : { node: 'all', of: kept };
}

export function anyOf(nodes: readonly WhereNode[]): WhereNode {
  const kept = nodes.filter((each) => each.node !== 'constant' || each.value);
  if (kept.some((each) => each.node === 'constant')) return TRUE;
  return kept.length === 0 ? FALSE : kept.length === 1 ? (kept[0] as WhereNode) : { node: 'any', of: kept };
}

export function notOf(of: WhereNode): WhereNode {
  if (of.node === 'constant') return of.value ? FALSE : TRUE;
  return of.node === 'not' ? of.of : { node: 'not', of };
}

export function untrueOf(of: WhereNode): WhereNode {
  return of.node === 'constant' ? notOf(of) : { node: 'untrue', of };
}

/** The ASCII letters, and nothing else, in lower case: what both databases fold in the same way. */
export function foldCase(text: string): string {
  return text.replaceAll(/[A-Z]+/g, (letters) => letters.toLowerCase());
}
