import type { AdminContext, AdminListQuery } from '../app/admin/declaration.ts';
import { adminFilterNames } from '../app/admin/filter-names.ts';
import { type AdminOrders, isIndexed, type ModelColumn, ordersOf } from '../app/admin/model-columns.ts';
import type { AdminFilterOperator } from '../app/admin/shapes.ts';
import { readParameter } from '../crud/parameters/parameter-value.ts';
import type { Db } from '../db/engine/db.ts';
import type { Model } from '../db/declare/model.ts';
import { compileWhere } from '../db/sql/where/compile-where.ts';
import type { Where } from '../db/sql/where/where.ts';
import { coreErrors } from '../errors/core-errors.ts';
import { isKitError } from '../errors/kit-error.ts';
import { DELETED, type Plan, type PlannedFilter } from './screen-plan.ts';

type Operator = AdminFilterOperator | 'from' | 'to';

/** A filter of a list that is set. */
export interface UsedFilter {
  readonly name: string;
  readonly filter: PlannedFilter;
  readonly operator: Operator;
  readonly text: string;
}

/** A filter that compares a column. */
interface ColumnFilter extends UsedFilter {
  readonly column: ModelColumn;
}

export function usedFilters({ filters }: Plan, set: AdminListQuery['filters']): readonly UsedFilter[] {
  return filters.flatMap((filter) =>
    [...adminFilterNames(filter.shape)].flatMap(([name, operator]) => {
      const text = set[name];
      return text === undefined ? [] : [{ name, filter, operator, text }];
    }),
  );
}

function ofColumns(used: readonly UsedFilter[]): ColumnFilter[] {
  return used.flatMap((each) => (each.filter.column === undefined ? [] : [{ ...each, column: each.filter.column }]));
}

const NONE = { or: [] } as Where;

/** The filter as a condition. One on a value that is not shown would tell it. */
export async function filterWhere(
  { model }: Plan,
  used: UsedFilter,
  shows: (name: string) => boolean,
  context: AdminContext,
): Promise<Where> {
  const { column, custom } = used.filter;
  const { operator } = used;
  if (custom !== undefined) {
    const where = await custom.where(used.text, context, endOf(operator));
    return isStorable(model, where) ? where : NONE;
  }
  if (column === undefined || !shows(column.name)) return NONE;
  return columnWhere({ ...used, column });
}

/** False: a value of the condition is one that its column cannot have, as a text that is longer than its limit. No row has it. */
function isStorable(model: Model, where: Where): boolean {
  try {
    compileWhere(model, where);
    return true;
  } catch (error) {
    const { cause } = error as Error;
    // Other faults, and relations of the resource, are for the statement.
    return !isKitError(cause) || cause.code !== 'value_not_storable';
  }
}

function columnWhere({ name: filter, column: { name, settings }, operator, text }: ColumnFilter): Where {
  if (operator === 'empty') return { [name]: { isnull: text === 'yes' } } as Where;
  if (operator === 'contains') return { [name]: { contains: text } } as Where;
  const values = (operator === 'in' ? text.split(',') : [text]).map((each) => readParameter(settings, textOf(settings.kind, each)));
  const read = values.flatMap((each) => (each.fault === undefined ? [each.value] : []));
  const [value] = read;
  // A name where an id belongs comes from a link that somebody wrote: no record is an answer to another question.
  if (settings.reference !== undefined && read.length < values.length)
    throw coreErrors.validation_error({
      errors: [{ location: ['query', `filter.${filter}`], code: 'invalid', message: 'Use the id of a record.' }],
    });
  if (read.length < values.length || value === undefined) return operator === 'not' ? ({ and: [] } as Where) : NONE;
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
export function isFilterIndexed(
  plan: Plan,
  used: readonly (UsedFilter & { readonly where: Where })[],
  set: AdminListQuery['filters'],
): boolean {
  const isOfDeleted = plan.softDeletes && set['deleted'] === 'yes';
  if (used.length === 0 && !isOfDeleted) return true;
  if (used.every((each) => indexOf(each) === 'alone') && !isOfDeleted) return true;
  return (
    used.some(isFoundByIndex) ||
    ofColumns(used).some(({ column, operator }) => operator === 'is' && isIndexed(plan.model, column.name)) ||
    (isOfDeleted && isIndexed(plan.model, DELETED))
  );
}

/** The words say that an index finds the rows of the filter. */
export function isFoundByIndex(used: UsedFilter & { readonly where: Where }): boolean {
  return indexOf(used) === true;
}

function indexOf({ filter: { custom }, text, where }: UsedFilter & { readonly where: Where }): boolean | 'alone' {
  const given = custom?.isIndexed ?? false;
  return typeof given === 'function' ? given(text, where) : given;
}

function endOf(operator: Operator): 'from' | 'to' | 'is' {
  return operator === 'from' || operator === 'to' ? operator : 'is';
}

/** A range of a column that an index has in order. */
export interface IndexedRange {
  readonly column: ModelColumn;
  readonly bounds: Where;
}

/** SQLite stores decimals as text, which is another order. */
export function indexedRange(plan: Plan, used: readonly UsedFilter[], dialect: Db['dialect']): IndexedRange | undefined {
  const filters = ofColumns(used);
  const found = filters.find(
    ({ operator, column: { name, settings } }) =>
      (operator === 'from' || operator === 'to') &&
      (settings.kind !== 'decimal' || dialect === 'postgres') &&
      isIndexed(plan.model, name, { whole: true }),
  );
  if (found === undefined) return undefined;
  const { column } = found;
  const bounds = filters.filter((each) => each.column.name === column.name && each.operator !== 'empty').map(columnWhere);
  return { column, bounds: { and: bounds } as Where };
}

/** Orders of a list that a range has narrowed: by its column as the index has it, by another one only after the rows were found. */
export function rangeOrders({ model, orders }: Plan, range: ModelColumn): AdminOrders {
  const others = Object.fromEntries(Object.entries(orders).map(([name, order]) => [name, { ...order, indexed: false }]));
  const own = ordersOf(model, [range], 't0')[range.name];
  if (own === undefined) return others;
  // A row of a range has a value.
  const definition = own.definition === undefined ? {} : { definition: { ...own.definition, nullable: false } };
  return { ...others, [range.name]: { ...own, ...definition, nullable: false, indexed: true } };
}
