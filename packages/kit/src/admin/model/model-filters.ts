import type { AdminListQuery } from '../../app/admin/declaration.ts';
import { type AdminConditions, type AdminOrders, SEARCHED_ROWS_MAX } from '../../app/admin/list.ts';
import type { AdminFilterOperator } from '../../app/admin/shapes.ts';
import { readParameter } from '../../crud/parameters/parameter-value.ts';
import type { Db } from '../../db/engine/db.ts';
import { quoteName } from '../../db/declare/names.ts';
import { compileWhere } from '../../db/sql/where/compile-where.ts';
import type { Where } from '../../db/sql/where/where.ts';
import { isIndexed, type ModelColumn, ordersOf } from '../../app/admin/model-columns.ts';
import { DELETED, type Plan } from './model-plan.ts';
import { adminFilterNames } from '../wire/wire.ts';

type Operator = AdminFilterOperator | 'from' | 'to';

/** A filter of a list that is set. */
export interface UsedFilter {
  readonly column: ModelColumn;
  readonly operator: Operator;
  readonly text: string;
}

export function usedFilters({ filtered, shape }: Plan, filters: AdminListQuery['filters']): readonly UsedFilter[] {
  return filtered.flatMap((column) => {
    const declared = shape.filters.find(({ name }) => name === column.name);
    return [...(declared === undefined ? [] : adminFilterNames(declared))].flatMap(([name, operator]) => {
      const text = filters[name];
      return text === undefined ? [] : [{ column, operator, text }];
    });
  });
}

/** The filter as a condition; false: no row can have such a value. */
export function filterWhere({ column: { name, settings }, operator, text }: UsedFilter): Where | boolean {
  if (operator === 'empty') return { [name]: { isnull: text === 'yes' } } as Where;
  if (operator === 'contains') return { [name]: { contains: text } } as Where;
  const values = (operator === 'in' ? text.split(',') : [text]).map((each) => readParameter(settings, textOf(settings.kind, each)));
  const read = values.flatMap((each) => (each.fault === undefined ? [each.value] : []));
  const [value] = read;
  if (read.length < values.length || value === undefined) return operator === 'not';
  if (operator === 'in') return { [name]: { in: read } } as Where;
  // Rows without a value do not have this one.
  if (operator === 'not') return { or: [{ [name]: { ne: value } }, { [name]: { isnull: true } }] } as Where;
  // A range of time ends before its end, so that days meet without a gap; one of numbers or dates has both ends.
  const compared = operator === 'to' && settings.kind === 'timestamp' ? 'lt' : COMPARED[operator];
  return { [name]: { [compared]: value } } as Where;
}

const COMPARED = { is: 'eq', from: 'gte', to: 'lte' } as const;

function textOf(kind: string, text: string): string {
  if (kind === 'bool') return text === 'yes' ? 'true' : 'false';
  return kind === 'uuid' ? text.toLowerCase() : text;
}

/**
 * Whether an index finds the rows of the filters in the order of the list: one of them is enough. Several values (`in`) are not in order: SQLite
 * walked a table from its newest row to find two rare ones.
 */
export function isFilterIndexed(plan: Plan, used: readonly UsedFilter[], filters: AdminListQuery['filters']): boolean {
  const isOfDeleted = plan.softDeletes && filters['deleted'] === 'yes';
  if (used.length === 0 && !isOfDeleted) return true;
  return (
    used.some(({ column, operator }) => operator === 'is' && isIndexed(plan.model, column.name)) ||
    (isOfDeleted && isIndexed(plan.model, DELETED))
  );
}

/** The column of a range that an index has in order. SQLite stores decimals as text, which is another order. */
export function indexedRange(plan: Plan, used: readonly UsedFilter[], dialect: Db['dialect']): ModelColumn | undefined {
  const ranges = used.filter(({ operator }) => operator === 'from' || operator === 'to').map(({ column }) => column);
  return ranges.find(
    ({ name, settings }) => (settings.kind !== 'decimal' || dialect === 'postgres') && isIndexed(plan.model, name, { whole: true }),
  );
}

/** Bounds a list to the {@link SEARCHED_ROWS_MAX} rows at the upper end of a range, where it has more. */
export async function newestOfRange(
  db: Db,
  where: AdminConditions,
  { model }: Plan,
  { name }: ModelColumn,
  used: readonly UsedFilter[],
): Promise<void> {
  const column = `t.${quoteName(name)}`;
  const bounds = used.filter((each) => each.column.name === name && each.operator !== 'empty').map(filterWhere);
  const compiled = compileWhere(model, { and: bounds } as Where);
  if (compiled.constant === false) return;
  const parameters: unknown[] = [];
  const [row] = await db.query<{ value: unknown }>(
    `select ${column} as value from ${quoteName(model.name)} t where ${compiled.append(db.dialect, 't', parameters)}
     order by ${column} desc limit 1 offset ${SEARCHED_ROWS_MAX}`,
    parameters,
    { replanned: true, mayBeLong: `the newest rows of a range of ${model.name}` },
  );
  if (row === undefined) return;
  where.searched = SEARCHED_ROWS_MAX;
  where.add(`${column} >= ${where.parameter(row.value)}`);
}

/** Orders of a list that a range has narrowed: by its column as the index has it, by another one only after the rows were found. */
export function rangeOrders({ model, orders }: Plan, range: ModelColumn): AdminOrders {
  const others = Object.fromEntries(Object.entries(orders).map(([name, order]) => [name, { ...order, indexed: false }]));
  const own = ordersOf(model, [range])[range.name];
  if (own === undefined) return others;
  // A row of a range has a value.
  const definition = own.definition === undefined ? {} : { definition: { ...own.definition, nullable: false } };
  return { ...others, [range.name]: { ...own, ...definition, nullable: false, indexed: true } };
}
