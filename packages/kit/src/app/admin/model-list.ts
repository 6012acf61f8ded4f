// Lists and pages of a module that are not made of a resource: `screen()` makes those that are.
import type { Db } from '../../db/engine/db.ts';
import type { Model } from '../../db/declare/model.ts';
import { quoteName } from '../../db/declare/names.ts';
import { isUuid } from '../../db/values/uuid.ts';
import type { AdminListQuery } from './declaration.ts';
import {
  AdminConditions,
  type AdminOrder,
  type AdminOrders,
  adminRows,
  type AdminRows,
  type AdminSelect,
  type SearchNote,
  sortableColumns,
} from './list.ts';
import { adminColumn, adminField, isIndexed, keyKindOf, labelOf, type ModelColumn, orderOf, shownColumns } from './model-columns.ts';
import { type AdminSearch, boundOrder, newestRows, searchRows } from './search-rows.ts';
import type { AdminSection } from './sections.ts';
import type { AdminColumn, AdminField, AdminRow, AdminValue } from './shapes.ts';

/** A column by its name, or with what the model does not say about it. One that the model does not have needs its kind. */
export type ShownColumn = string | (Pick<AdminColumn, 'name'> & Partial<AdminColumn>);

/** Columns of a model as the site shows them, and the values of a row for them. */
export interface ModelView {
  readonly columns: readonly AdminColumn[];
  /** Of a row, the values of these columns; `more` are those that the row does not have, or has otherwise. */
  values(row: object, more?: AdminRow['values']): AdminRow['values'];
}

/** Columns that are sensitive or internal cannot be shown: naming one is an error. */
export function modelView(model: Model, columns: readonly ShownColumn[]): ModelView {
  const shown = new Map(shownColumns(model).map((column) => [column.name, column]));
  return {
    columns: columns.map((column) => columnOf(model, shown, column)),
    values(row, more = {}) {
      const known = columns.map((column) => (typeof column === 'string' ? column : column.name)).filter((name) => shown.has(name));
      const own = known.map((name) => [name, valueOf((row as Readonly<Record<string, unknown>>)[name])] as const);
      return { ...Object.fromEntries(own), ...more };
    },
  };
}

function columnOf(model: Model, shown: ReadonlyMap<string, ModelColumn>, column: ShownColumn): AdminColumn {
  const given = typeof column === 'string' ? { name: column } : column;
  const { name } = given;
  const own = shown.get(name);
  if (own !== undefined) return { ...adminColumn(own, false), ...given };
  if (given.kind === undefined || Object.hasOwn(model.columns, name))
    throw new TypeError(`The admin site cannot show "${name}" of "${model.name}": it is not a column, or it is sensitive.`);
  return { label: labelOf(name), ...given, kind: given.kind };
}

/** Empty text stands for nothing in columns that are not nullable, such as `tenant_key`. */
function valueOf(value: unknown): AdminValue {
  if (value instanceof Date) return value.toISOString();
  if (typeof value === 'bigint') return Number(value);
  return value === undefined || value === '' ? null : value;
}

/** A field of a form, as the column says; `given` replaces what it says. */
export function modelField(model: Model, name: string, given: Partial<AdminField> = {}): AdminField {
  const column = shownColumns(model).find((each) => each.name === name);
  if (column === undefined) throw new TypeError(`The admin site has no field for "${name}" of "${model.name}".`);
  return { ...adminField(column, true), ...given };
}

/** How a list finds its rows. */
export interface ListFilters {
  readonly search?: Pick<AdminSearch, 'columns' | 'equals'>;
  /** The columns that filters compare, by the names of the filters. */
  readonly equals?: Readonly<Record<string, string>>;
  /** A filter that no index helps with: besides those of `equals`, which the model tells. */
  readonly isUnindexed?: boolean;
}

export interface ModelListOptions {
  readonly columns: readonly ShownColumn[];
  /** Orders of columns that the model does not have, or has in another way; null: the list cannot be ordered by it. */
  readonly orders?: Readonly<Record<string, AdminOrder | string | null>>;
  /** What the list goes by. Default: the primary key. */
  readonly key?: string;
}

/** A list of the rows of a model. */
export interface ModelList extends ModelView {
  readonly place: Pick<AdminSearch, 'table' | 'alias' | 'key'>;
  readonly orders: AdminOrders;
  /** The section of a record's page with the columns of the list and `more`. */
  facts(title: string, row: object, values: AdminRow['values'], more: readonly ShownColumn[]): AdminSection;
  /** Search, filters, and their bounds where no index finds or orders the rows. */
  conditions(db: Db, query: AdminListQuery, filters: ListFilters, more?: readonly string[]): Promise<AdminConditions>;
  rows<R extends object>(
    db: Db,
    query: AdminListQuery,
    where: AdminConditions,
    select?: Partial<Pick<AdminSelect, 'columns' | 'from' | 'countFrom'>>,
  ): Promise<AdminRows<R> & SearchNote>;
  /** What records are called, by their ids. */
  titles(db: Db, ids: readonly string[], column: string): Promise<ReadonlyMap<string, string>>;
}

export function modelList(model: Model, alias: string, { columns, orders: given = {}, key = 'id' }: ModelListOptions): ModelList {
  const place = { table: model.name, alias, key };
  const orders = listOrders(model, place, columns, given);
  const view = modelView(model, columns);
  const shown = sortableColumns(view.columns, orders);
  return {
    ...view,
    columns: shown,
    place,
    orders,
    facts(title, row, values, more) {
      const besides = modelView(model, more);
      return { kind: 'facts', title, columns: [...shown, ...besides.columns], values: besides.values(row, values) };
    },
    async conditions(db, query, { search, equals = {}, isUnindexed = false }, more = []) {
      const where = new AdminConditions(db.dialect);
      if (query.search !== null && search !== undefined) await searchRows(db, where, { ...place, ...search }, query.search);
      for (const condition of more) where.add(condition);
      const used = Object.entries(equals).filter(([filter]) => query.filters[filter] !== undefined);
      for (const [filter, column] of used) {
        const value = query.filters[filter];
        const isBool = model.columns[column]?.settings.kind === 'bool';
        where.add(`${alias}.${quoteName(column)} = ${where.parameter(isBool ? value === 'yes' : value)}`);
      }
      const isFound = used.some(([, column]) => isIndexed(model, column, { whole: true }));
      if ((isUnindexed || used.length > 0) && !isFound && where.searched === undefined) await newestRows(db, where, place);
      await boundOrder(db, where, query, orders, place);
      return where;
    },
    async rows(db, query, where, select = {}) {
      const from = `from ${quoteName(model.name)} ${alias}`;
      const list = {
        columns: `${alias}.*`,
        from,
        ...select,
        key: `${alias}.${quoteName(key)}`,
        keyKind: keyKindOf(model, key),
        orders,
        ...where.parts,
      };
      return { ...(await adminRows(db, list, query)), ...where.searchNote };
    },
    async titles(db, ids, column) {
      const known = ids.filter(isUuid);
      if (known.length === 0) return new Map();
      const listed = known.map((_, index) => `$${index + 1}`).join(', ');
      const rows = await db.query<{ id: string; title: string }>(
        `select id, ${quoteName(column)} as title from ${quoteName(model.name)} where id in (${listed})`,
        known,
      );
      return new Map(rows.map(({ id, title }) => [id, title]));
    },
  };
}

/** Of the columns that the model has, unless `sortable` is given: that is a column whose order is the order of the key. */
function listOrders(
  model: Model,
  { alias, key }: ModelList['place'],
  columns: readonly ShownColumn[],
  given: NonNullable<ModelListOptions['orders']>,
): AdminOrders {
  const shown = new Map(shownColumns(model).map((column) => [column.name, column]));
  return Object.fromEntries(
    columns.flatMap((column): [string, AdminOrder][] => {
      const { name, sortable } = typeof column === 'string' ? { name: column } : { sortable: undefined, ...column };
      const declared = given[name] === undefined ? name : given[name];
      if (declared === null || sortable !== undefined) return [];
      const own = typeof declared === 'string' ? shown.get(declared) : undefined;
      const order = typeof declared === 'string' ? (own === undefined ? undefined : orderOf(model, own, alias, key)) : declared;
      return order === undefined ? [] : [[name, order]];
    }),
  );
}
