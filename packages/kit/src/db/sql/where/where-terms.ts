import { searchColumnName } from '../../declare/encrypted-column.ts';
import type { Dialect } from '../../dialect.ts';
import type { ModelColumn } from '../model-statements.ts';
import type { WhereNode } from './where-node.ts';
import { indexWords } from './where-sql.ts';

/** One of the conditions that every row of a statement meets, as far as an index can serve it. */
export type WhereTerm =
  /** The column has one of this many values; NULL is one. */
  | { readonly kind: 'equal'; readonly column: string; readonly values: number }
  /** The column is in a range. */
  | { readonly kind: 'range'; readonly column: string }
  /** The column is not the empty text. */
  | { readonly kind: 'filled'; readonly column: string }
  /** The condition of a partial index, in its words. */
  | { readonly kind: 'words'; readonly text: string }
  /** No index serves it: each row is looked at. */
  | { readonly kind: 'other'; readonly columns: readonly string[] };

/** The terms of a tree, all of which a row must meet. */
export function whereTerms(node: WhereNode, dialect: Dialect): WhereTerm[] {
  switch (node.node) {
    case 'all':
      return node.of.flatMap((each) => whereTerms(each, dialect));
    case 'constant':
      return node.value ? [] : [other()];
    case 'null':
      return [node.isNull ? equal(node.column, 1) : other(node.column)];
    case 'empty':
      return [node.isEmpty ? equal(node.column, 1) : { kind: 'filled', column: node.column.name }];
    case 'compare':
      if (node.operator === 'ne' || !isStoredAsCompared(node.column, dialect)) return [other(node.column)];
      return [node.operator === 'eq' ? equal(node.column, 1) : { kind: 'range', column: node.column.name }];
    case 'among':
      return [node.negated || !isStoredAsCompared(node.column, dialect) ? other(node.column) : equal(node.column, node.values.length)];
    case 'search':
      return [{ kind: 'equal', column: searchColumnName(node.column.name), values: 2 }];
    case 'text':
      return [other(node.column)];
    case 'sql':
      return node.condition.isIndexed ? [{ kind: 'words', text: indexWords(node.condition.textFor(dialect)) }] : [other()];
    default:
      return [other()];
  }
}

/** An index contains what is stored: decimals on SQLite are text, and compared as numbers. */
export function isStoredAsCompared({ definition }: Pick<ModelColumn, 'definition'>, dialect: Dialect): boolean {
  return definition.kind !== 'decimal' || dialect === 'postgres';
}

function equal({ name }: ModelColumn, values: number): WhereTerm {
  return { kind: 'equal', column: name, values };
}

function other(column?: ModelColumn): WhereTerm {
  return { kind: 'other', columns: column === undefined ? [] : [column.name] };
}
