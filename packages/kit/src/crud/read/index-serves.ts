import type { Dialect } from '../../db/dialect.ts';
import type { CompiledWhere } from '../../db/sql/where/compile-where.ts';
import type { OrderTerm } from '../options/ordering.ts';
import type { Edge, Policy } from '../policy/policy.ts';
import { longRead, termsOf } from './long-read.ts';

/** Characters of a condition that a log line shows. */
const SHAPE_LENGTH_MAX = 200;

/** What a page reads, for the log, where it may read many rows: undefined when an index serves it. */
export function longPage(
  policy: Policy,
  conditions: readonly CompiledWhere[],
  dialect: Dialect,
  ordering: readonly OrderTerm[] = [],
): string | undefined {
  const long = longRead({ table: policy.model.table, terms: termsOf(conditions, dialect), ordering, dialect });
  return long && `${describe(policy, conditions, ordering)}: ${long.reason}`;
}

/**
 * What the rows of a to-many relation cost, likewise: a few per parent in their order. The rows of one parent have one owner, so that what the
 * caller may see of them does not count; nor does sorting those of one parent that are equal.
 */
export function longChildren({ name, target, column, where }: Edge, ordering: readonly OrderTerm[], dialect: Dialect): string | undefined {
  const terms = [{ kind: 'equal', column, values: 1 } as const];
  const long = where === undefined ? longRead({ table: target.model.table, terms, ordering, dialect, mayTie: () => true }) : NOT_SERVED;
  return long && `${target.model.name} of ${name} by ${column}, order by ${orderText(ordering)}: ${long.reason}`;
}

const NOT_SERVED = { reason: 'a condition, which no index serves' };

/** Names and operators, never values. */
export function describe({ model }: Policy, conditions: readonly CompiledWhere[], order: readonly OrderTerm[] = []): string {
  const shapes = conditions.filter(({ constant }) => constant !== true).map(({ shape }) => shape);
  const where = shapes.length === 0 ? '' : ` where ${shapes.join(' and ').slice(0, SHAPE_LENGTH_MAX)}`;
  return `${model.name}${where}${order.length === 0 ? '' : ` order by ${orderText(order)}`}`;
}

function orderText(order: readonly OrderTerm[]): string {
  return order.map(({ column, descending }) => `${descending ? '-' : ''}${column}`).join();
}
