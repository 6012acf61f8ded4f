import type { AdminContext, AdminListQuery } from '../../app/admin/declaration.ts';
import type { AdminRow, AdminValue } from '../../app/admin/shapes.ts';
import { AdminConditions, adminRows, type AdminRows, type AdminSelect, type SearchNote } from '../../app/admin/list.ts';
import { isUuid } from '../../db/values/uuid.ts';
import type { Db } from '../../db/engine/db.ts';
import type { Model } from '../../db/declare/model.ts';
import { boundOrder, newestRows, searchRows } from '../../app/admin/search-rows.ts';
import { compileWhere } from '../../db/sql/where/compile-where.ts';
import { filterWhere, indexedRange, isFilterIndexed, newestOfRange, rangeOrders, usedFilters } from './model-filters.ts';
import { stateTone } from '../wire/state-tone.ts';
import { usualLimits } from '../../crud/declare/limits.ts';
import { blankSeparated, searchedWords } from '../../crud/read/search.ts';
import type { SearchBackend } from '../../crud/declare/search-backend.ts';
import { quoteName } from '../../db/declare/names.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import type { SchemaResult } from '../../http/declare/schema.ts';
import { type ModelColumn, shownColumns } from '../../app/admin/model-columns.ts';
import { DELETED, type Plan, type Row } from './model-plan.ts';
import type { ReferenceTitles } from './reference-titles.ts';

/** What one member of staff may see of a list. */
export interface RowView {
  /** Names of columns; null: all that the plan shows. */
  readonly columns: ReadonlySet<string> | null;
  /** SQL over the table `t`; its values are appended. */
  condition(dialect: Db['dialect'], parameters: unknown[]): Promise<string | boolean>;
  /** The condition of a search, likewise. */
  search(backend: SearchBackend, text: string, dialect: Db['dialect'], parameters: unknown[]): Promise<string | boolean>;
}

export function isShown({ columns }: RowView, name: string): boolean {
  return columns === null || columns.has(name);
}

export async function listRows(db: Db, plan: Plan, view: RowView, query: AdminListQuery): Promise<AdminRows<Row> & SearchNote> {
  const { note, sort = query.sort, ...select } = await selectOf(db, plan, view, query);
  return { ...(await adminRows<Row>(db, select, { ...query, sort })), ...note };
}

/**
 * The rows that the search and the filters leave, as SQL: for a page, and `whole` for a file, which has all of them whether an index finds
 * them or not.
 */
export async function selectOf(
  db: Db,
  plan: Plan,
  view: RowView,
  query: Pick<AdminListQuery, 'search' | 'filters' | 'sort'>,
  whole = false,
): Promise<AdminSelect & { readonly note: SearchNote; readonly sort?: AdminListQuery['sort'] }> {
  const where = new AdminConditions(db.dialect);
  const { model, keyName, keyKind, softDeletes } = plan;
  const condition = await view.condition(db.dialect, where.parameters);
  if (condition !== true) where.add(condition === false ? '1 = 0' : `(${condition})`);
  const place = { table: model.name, alias: 't', key: keyName };
  if (query.search !== null) await addSearch(db, where, plan, view, { text: query.search, whole });
  const used = usedFilters(plan, query.filters);
  for (const filter of used) {
    // A filter on a value that is not shown would tell it.
    const condition = isShown(view, filter.column.name) ? filterWhere(filter) : false;
    const compiled = compileWhere(model, condition);
    if (compiled.constant !== true) where.add(compiled.constant === false ? '1 = 0' : compiled.append(db.dialect, 't', where.parameters));
  }
  const isWholeRange = whole || where.searched !== undefined || isFilterIndexed(plan, used, query.filters);
  const range = isWholeRange ? undefined : indexedRange(plan, used, db.dialect);
  if (range !== undefined) await newestOfRange(db, where, plan, range, used);
  else if (!isWholeRange) await newestRows(db, where, place);
  if (!whole && range === undefined) await boundOrder(db, where, query, plan.orders, place);
  if (softDeletes) where.add(`t.${DELETED} is ${query.filters['deleted'] === 'yes' ? 'not null' : 'null'}`);
  const orders = Object.fromEntries(
    Object.entries(range === undefined ? plan.orders : rangeOrders(plan, range)).filter(([name]) => isShown(view, name)),
  );
  // The columns of the model's output, which is what turns a row into JSON; what the plan does not show is left out there.
  const columns = shownColumns(model).map(({ name }) => `t.${quoteName(name)}`);
  return {
    columns: columns.join(', '),
    from: `from ${quoteName(model.name)} t`,
    key: `t.${quoteName(keyName)}`,
    keyKind,
    orders,
    ...where.parts,
    // Of a range, the index has the rows in order.
    ...(range === undefined ? {} : { isBounded: false }),
    note: where.searchNote,
    // Rows of a range come in its order, while the newest rows by key may be far from it.
    ...(range === undefined || query.sort !== null || !isShown(view, range.name) ? {} : { sort: { column: range.name, descending: true } }),
  };
}

/** By the backend of the resource where it has one and this member of staff sees its columns, else by what the text columns contain. */
async function addSearch(
  db: Db,
  where: AdminConditions,
  { model, keyName, keyKind, backend, searched }: Plan,
  view: RowView,
  { text, whole }: { readonly text: string; readonly whole: boolean },
): Promise<void> {
  const isKey = keyKind === 'uuid' && isUuid(text.toLowerCase());
  if (backend !== null && backend.columns.every((name) => isShown(view, name))) {
    if (isKey) return where.uuid(`t.${quoteName(keyName)}`, text);
    const words = searchedWords(backend, text).slice(0, usualLimits.searchWords).join(' ');
    const condition = await view.search(backend, words, db.dialect, where.parameters);
    return condition === true ? undefined : where.add(condition === false ? '1 = 0' : `(${condition})`);
  }
  const columns = searched.filter((name) => isShown(view, name));
  const unique = columns.filter((name) => model.columns[name]?.settings.unique === true);
  const equals = [...(isKey ? [keyName] : []), ...unique].map((column) => ({ column, values: [text] }));
  // As in the API: every word, in whichever column.
  const words = blankSeparated(text).slice(0, usualLimits.searchWords);
  return searchRows(db, where, { table: model.name, alias: 't', key: keyName, columns, equals, words, whole }, text);
}

export function isDeleted({ softDeletes }: Plan, row: Row): boolean {
  return softDeletes && row[DELETED] !== null;
}

export function keyOf({ keyName }: Plan, row: Row): string {
  return String(row[keyName]);
}

export function rowOf(context: AdminContext, plan: Plan, view: RowView, row: Row, titles: ReferenceTitles = new Map()): AdminRow {
  const json = outputOf(plan.model, row);
  const id = keyOf(plan, row);
  const shown = plan.shown.filter(({ name }) => isShown(view, name));
  const title = isShown(view, plan.title) ? json[plan.title] : undefined;
  const values = Object.fromEntries(shown.map((column) => [column.name, cellOf(context, column, json[column.name], titles, plan.tones)]));
  return { id, title: typeof title === 'string' && title !== '' ? title : id, values };
}

export function cellOf(
  { linkTo }: AdminContext,
  { name, settings }: ModelColumn,
  value: unknown,
  titles: ReferenceTitles,
  tones: Plan['tones'] = {},
): AdminValue {
  if (value === null || value === undefined) return null;
  if (settings.reference === undefined)
    return settings.kind === 'enum'
      ? { value: value as string, tone: tones[name]?.[value as string] ?? stateTone(value as string) }
      : value;
  const { target } = settings.reference;
  const table = typeof target === 'string' ? target : target().name;
  const id = value as string | number;
  const text = titles.get(name)?.get(String(id));
  return linkTo(table, String(id), text) ?? text ?? id;
}

/** The row as its readers get it; sensitive columns are no part of it. */
export function outputOf(model: Model, row: Row): Readonly<Record<string, unknown>> {
  const result = model.output['~standard'].validate(row);
  if (result instanceof Promise || result.issues !== undefined) throw new Error(`A row of "${model.name}" does not match its model.`);
  return result.value;
}

/** The value of a form, or a 422 whose locations name its fields. */
export function checked(result: SchemaResult<unknown> | Promise<SchemaResult<unknown>>, at: readonly string[] = ['body']): object {
  if (result instanceof Promise) throw new TypeError('The schemas of models must be synchronous.');
  if (result.issues === undefined) return result.value as object;
  const errors = result.issues.map((issue) => ({
    location: [
      ...at,
      ...(issue.path ?? []).map((step) => (typeof step === 'object' ? String(step.key) : typeof step === 'number' ? step : String(step))),
    ],
    code: issue.code ?? 'invalid',
    message: issue.message,
  }));
  throw coreErrors.validation_error({ errors });
}
