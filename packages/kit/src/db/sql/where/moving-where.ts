import type { ModelColumn } from '../model-statements.ts';
import type { WhereNode } from './where-node.ts';
import { whereShape, whereValues } from './write-where.ts';

/** A column that a condition compares with the time: with now, or with a time that is always as far from it. */
export interface TimeBound {
  readonly column: ModelColumn;
  /** What the condition compares with, less the time that it is asked at. */
  readonly offsetMs: number;
}

/**
 * One condition at any time, from what a rule gave at two: `{ due_at: { lt: now } }` compares with a time that moves as the clock does. Undefined where
 * something else differs between the two. The times should be apart by seconds and a fraction, so that a rule that rounds them does not look as if it moved.
 */
export function movingNode(first: WhereNode, later: WhereNode, at: Date, laterAt: Date): WhereNode | undefined {
  return whereShape(first) === whereShape(later) ? moved(first, later, at.getTime(), laterAt.getTime()) : undefined;
}

function moved(first: WhereNode, later: WhereNode, at: number, laterAt: number): WhereNode | undefined {
  switch (first.node) {
    case 'all':
    case 'any': {
      const others = (later as typeof first).of;
      const parts = first.of.flatMap((each, place) => moved(each, others[place] as WhereNode, at, laterAt) ?? []);
      return parts.length === first.of.length ? { node: first.node, of: parts } : undefined;
    }
    case 'not':
    case 'untrue': {
      const of = moved(first.of, (later as typeof first).of, at, laterAt);
      return of === undefined ? undefined : { node: first.node, of };
    }
    case 'compare': {
      const { column, operator, value } = first;
      if (column.definition.kind !== 'timestamp' || operator === 'eq' || operator === 'ne') return same(first, later);
      const [given, givenLater] = [value.given, (later as typeof first).value.given].map((each) => (each as Date).getTime()) as [
        number,
        number,
      ];
      return givenLater - given === laterAt - at ? { ...first, value: { ...value, offsetMs: given - at } } : same(first, later);
    }
    default:
      return same(first, later);
  }
}

function same(first: WhereNode, later: WhereNode): WhereNode | undefined {
  return valuesText(first) === valuesText(later) ? first : undefined;
}

function valuesText(node: WhereNode): string {
  return JSON.stringify(whereValues(node, 'postgres'), (_name, value: unknown) => (typeof value === 'bigint' ? `${value}n` : value));
}

/** The times that a moving condition compares with, each once. */
export function timeBounds(node: WhereNode): TimeBound[] {
  const found = new Map<string, TimeBound>();
  collect(node, found);
  return [...found.values()];
}

function collect(node: WhereNode, found: Map<string, TimeBound>): void {
  if (node.node === 'all' || node.node === 'any') for (const each of node.of) collect(each, found);
  else if (node.node === 'not' || node.node === 'untrue') collect(node.of, found);
  else if (node.node === 'compare' && node.value.offsetMs !== undefined) {
    const { column, value } = node;
    found.set(`${column.name} ${value.offsetMs}`, { column, offsetMs: value.offsetMs as number });
  }
}

/** A moving condition at one time. */
export function nodeAt(node: WhereNode, time: Date): WhereNode {
  switch (node.node) {
    case 'all':
    case 'any':
      return { node: node.node, of: node.of.map((each) => nodeAt(each, time)) };
    case 'not':
    case 'untrue':
      return { node: node.node, of: nodeAt(node.of, time) };
    case 'compare': {
      const { offsetMs } = node.value;
      if (offsetMs === undefined) return node;
      const given = new Date(time.getTime() + offsetMs);
      return { ...node, value: { given, encoded: node.column.encode(given) } };
    }
    default:
      return node;
  }
}
