import { columnsOf, evaluateWhere, isEvaluable } from './evaluate-where.ts';
import { allOf, anyOf, FALSE, notOf, TRUE, untrueOf, type WhereNode } from './where-node.ts';

/** Rows that relations lead to from every row of a list, by the name of the relation: with a part of their columns, or null where there is none. */
export type KnownRows = ReadonlyMap<string, Readonly<Record<string, unknown>> | null>;

/** The tree without the conditions on relations that known rows decide. */
export function decidedNode(node: WhereNode, known: KnownRows): WhereNode {
  const decided = (each: WhereNode) => decidedNode(each, known);
  switch (node.node) {
    case 'all':
      return allOf(node.of.map(decided));
    case 'any':
      return anyOf(node.of.map(decided));
    case 'not':
      return notOf(decided(node.of));
    case 'untrue':
      return untrueOf(decided(node.of));
    case 'exists': {
      const row = known.get(node.name);
      if (row === undefined || (row !== null && !isDecided(node.of, row))) return node;
      return (row !== null && evaluateWhere(node.of, row) === true) === node.negated ? FALSE : TRUE;
    }
    default:
      return node;
  }
}

function isDecided(node: WhereNode, row: object): boolean {
  return isEvaluable(node) && [...columnsOf(node)].every(({ name }) => Object.hasOwn(row, name));
}
