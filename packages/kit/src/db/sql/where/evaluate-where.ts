import { type Comparable, comparableOf, compareValues } from '../../declare/comparable.ts';
import type { ModelColumn } from '../model-statements.ts';
import { foldCase, type CompareOperator, type WhereNode } from './where-node.ts';

/** As in SQL: null is "unknown", what a comparison with NULL gives. */
export type ThreeValued = boolean | null;

type Row = Readonly<Record<string, unknown>>;

/** Whether a tree holds for a row of code, without asking the database. */
export function evaluateWhere(node: WhereNode, row: Row): ThreeValued {
  switch (node.node) {
    case 'constant':
      return node.value;
    case 'all':
      return combine(node.of, row, false);
    case 'any':
      return combine(node.of, row, true);
    case 'not':
      return negate(evaluateWhere(node.of, row));
    case 'untrue':
      return evaluateWhere(node.of, row) !== true;
    case 'null':
      return (valueOf(node.column, row) === null) === node.isNull;
    case 'empty': {
      const value = valueOf(node.column, row);
      return value === null ? null : (value === '') === node.isEmpty;
    }
    case 'compare': {
      const value = valueOf(node.column, row);
      return value === null ? null : holds(node.operator, difference(node.column, value, node.value.given));
    }
    case 'among': {
      const value = valueOf(node.column, row);
      if (value === null) return null;
      return node.values.some(({ given }) => difference(node.column, value, given) === 0) !== node.negated;
    }
    case 'text': {
      const value = valueOf(node.column, row);
      if (value === null) return null;
      const text = foldCase(value as string);
      if (node.operator === 'contains') return text.includes(node.folded);
      return node.operator === 'starts' ? text.startsWith(node.folded) : text.endsWith(node.folded);
    }
    case 'exists':
      return existsIn(node, row);
    default:
      throw new TypeError('SQL and encrypted columns cannot be evaluated in JavaScript: read the row again under the condition.');
  }
}

/** A row that was read together with the row of its relation has that one below its name, or null. */
function existsIn({ name, of }: Extract<WhereNode, { node: 'exists' }>, row: Row): boolean {
  const other = Object.hasOwn(row, name) ? row[name] : undefined;
  if (other === null) return false;
  if (typeof other !== 'object' || Array.isArray(other))
    throw new TypeError(`The row was read without "${name}": read it again under the condition.`);
  return evaluateWhere(of, other as Row) === true;
}

/** Whether {@link evaluateWhere} can answer for a row alone: relations and SQL need the database. */
export function isEvaluable(node: WhereNode): boolean {
  switch (node.node) {
    case 'all':
    case 'any':
      return node.of.every(isEvaluable);
    case 'not':
    case 'untrue':
      return isEvaluable(node.of);
    default:
      return node.node !== 'exists' && node.node !== 'sql' && node.node !== 'search';
  }
}

/** The columns of the row that an evaluable tree reads. */
export function columnsOf(node: WhereNode, found = new Set<ModelColumn>()): ReadonlySet<ModelColumn> {
  if (node.node === 'all' || node.node === 'any') for (const each of node.of) columnsOf(each, found);
  else if (node.node === 'not' || node.node === 'untrue') columnsOf(node.of, found);
  else if ('column' in node) found.add(node.column);
  return found;
}

/** AND is decided by the first false, OR by the first true; otherwise one unknown makes the whole unknown. */
function combine(nodes: readonly WhereNode[], row: Row, decisive: boolean): ThreeValued {
  let result: ThreeValued = !decisive;
  for (const each of nodes) {
    const value = evaluateWhere(each, row);
    if (value === decisive) return decisive;
    if (value === null) result = null;
  }
  return result;
}

function negate(value: ThreeValued): ThreeValued {
  return value === null ? null : !value;
}

function valueOf({ name }: ModelColumn, row: Row): unknown {
  const value = Object.hasOwn(row, name) ? row[name] : undefined;
  if (value === undefined) throw new TypeError(`The row has no column "${name}", which a condition asks for.`);
  return value;
}

function difference({ definition }: ModelColumn, value: unknown, other: unknown): number {
  const left: Comparable = comparableOf(value, definition);
  return compareValues(left, comparableOf(other, definition));
}

function holds(operator: CompareOperator, sign: number): boolean {
  switch (operator) {
    case 'eq':
      return sign === 0;
    case 'ne':
      return sign !== 0;
    case 'gt':
      return sign > 0;
    case 'gte':
      return sign >= 0;
    case 'lt':
      return sign < 0;
    default:
      return sign <= 0;
  }
}
