import type { CompiledWhere } from '../../db/where/compile-where.ts';
import type { OrderTerm } from '../declare/ordering.ts';
import type { Edge, Policy } from '../policy/policy.ts';

/** Characters of a condition that a log line shows. */
const SHAPE_LENGTH_MAX = 200;

/**
 * What a page reads, for the log, where it may read many rows: undefined when an index serves it. That is so when every condition compares a
 * column with one value, those columns are the first ones of an index, and the order follows in it. An index of the owner alone does not
 * serve a filter: it leads to all rows of the owner.
 */
export function longPage(policy: Policy, conditions: readonly CompiledWhere[], order: readonly OrderTerm[] = []): string | undefined {
  const fixed = new Set<string>();
  for (const { constant, equalities } of conditions) {
    if (constant === true) continue;
    if (equalities === undefined) return describe(policy, conditions, order);
    for (const name of equalities) fixed.add(name);
  }
  // One row at most.
  for (const name of fixed) if (name === policy.key.name || policy.findColumn(name)?.settings.unique === true) return undefined;
  if (isServed(policy, fixed, order, isTime)) return undefined;
  return `${describe(policy, conditions, order)}: no index begins with (${[...fixed, orderText(order)].join()})`;
}

/**
 * What the rows of a to-many relation cost, likewise: a few per parent in their order. The rows of one parent have one owner, so that what the
 * caller may see of them does not count.
 */
export function longChildren({ name, target, column, where }: Edge, order: readonly OrderTerm[]): string | undefined {
  if (where === undefined && isServed(target, new Set([column]), order, () => true)) return undefined;
  return `${target.model.name} of ${name} by ${column}, order by ${orderText(order)}`;
}

type MayTie = (policy: Policy, before: OrderTerm | undefined) => boolean;

/** `mayTie`: whether so few rows are equal in an order up to its key that sorting them costs nothing. */
function isServed(policy: Policy, fixed: ReadonlySet<string>, order: readonly OrderTerm[], mayTie: MayTie): boolean {
  const indexes = policy.model.table.indexes.filter(({ where }) => where === undefined);
  return [[policy.key.name], ...indexes.map(({ columns }) => columns)].some((columns) => serves(policy, columns, fixed, order, mayTie));
}

function serves(
  policy: Policy,
  columns: readonly string[],
  fixed: ReadonlySet<string>,
  order: readonly OrderTerm[],
  mayTie: MayTie,
): boolean {
  const first = columns.slice(0, fixed.size).map((each) => each.replace(/^-/, ''));
  if (first.length < fixed.size || !first.every((name) => fixed.has(name))) return false;
  const rest = columns.slice(fixed.size);
  let isReversed: boolean | undefined;
  const terms = order.filter(({ column }) => !fixed.has(column));
  for (const [place, { column, descending }] of terms.entries()) {
    const indexed = rest[place];
    if (indexed === undefined) {
      const isLastKey = place > 0 && place === terms.length - 1 && column === policy.key.name;
      return isLastKey && mayTie(policy, terms[place - 1]);
    }
    if (indexed.replace(/^-/, '') !== column) return false;
    const differs = indexed.startsWith('-') !== descending;
    isReversed ??= differs;
    if (differs !== isReversed) return false;
  }
  return true;
}

/** Few rows have the same time. */
function isTime(policy: Policy, term: OrderTerm | undefined): boolean {
  return term !== undefined && policy.settingsOf(term.column).kind === 'timestamp';
}

/** Names and operators, never values. */
export function describe({ model }: Policy, conditions: readonly CompiledWhere[], order: readonly OrderTerm[] = []): string {
  const shapes = conditions.filter(({ constant }) => constant !== true).map(({ shape }) => shape);
  const where = shapes.length === 0 ? '' : ` where ${shapes.join(' and ').slice(0, SHAPE_LENGTH_MAX)}`;
  return `${model.name}${where}${order.length === 0 ? '' : ` order by ${orderText(order)}`}`;
}

function orderText(order: readonly OrderTerm[]): string {
  return order.map(({ column, descending }) => `${descending ? '-' : ''}${column}`).join();
}
