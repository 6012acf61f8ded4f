import type { Db } from '../../db/engine/db.ts';
import { quoteName } from '../../db/declare/names.ts';
import { containsSql } from '../../db/sql/portable-sql.ts';
import type { AdminListQuery } from './declaration.ts';
import { type AdminConditions, type AdminOrders, SEARCHED_ROWS_MAX } from './list.ts';

/** Records that a search of a large table looks up before the list is read; more say that the text is too short. */
const FOUND_MAX = 1_000;

export interface AdminSearch {
  readonly table: string;
  /** The alias of the table in the list; `t` in `t.id`. */
  readonly alias: string;
  readonly key: string;
  /** Text columns of the table. */
  readonly columns: readonly string[];
  /** Columns with an index: a record with exactly this value is found however old it is. */
  readonly equals?: readonly { readonly column: string; readonly values: readonly unknown[] }[];
  /** What all must be contained, each in whichever column. Default: the text as a whole. */
  readonly words?: readonly string[];
  /** Every row is searched, however large the table is. */
  readonly whole?: boolean;
}

/**
 * Bounds a list to the newest {@link SEARCHED_ROWS_MAX} rows of its table: for filters and orders without an index, which would read all of
 * a large table to find a few rows.
 */
export async function newestRows(
  db: Db,
  where: AdminConditions,
  { table, alias, key }: Pick<AdminSearch, 'table' | 'alias' | 'key'>,
): Promise<void> {
  const oldest = await oldestSearched(db, table, key);
  if (oldest === undefined) return;
  where.searched = SEARCHED_ROWS_MAX;
  where.add(`${alias}.${quoteName(key)} >= ${where.parameter(oldest)}`);
}

/** {@link newestRows}, where the list is ordered by something that has no index. */
export async function boundOrder(
  db: Db,
  where: AdminConditions,
  { sort }: Pick<AdminListQuery, 'sort'>,
  orders: AdminOrders,
  place: Pick<AdminSearch, 'table' | 'alias' | 'key'>,
): Promise<void> {
  const order = sort === null ? undefined : orders[sort.column];
  if (order !== undefined && order.indexed !== true && where.searched === undefined) await newestRows(db, where, place);
}

/** The key of the oldest row that is looked at; undefined: all are. */
async function oldestSearched(db: Db, table: string, key: string): Promise<unknown> {
  const column = quoteName(key);
  const sql = `select ${column} as id from ${quoteName(table)} order by ${column} desc limit 1 offset ${SEARCHED_ROWS_MAX}`;
  return (await db.query<{ id: unknown }>(sql, [], { mayBeLong: `the newest rows of ${table}` }))[0]?.id;
}

/**
 * Adds the condition of a search. A table of up to {@link SEARCHED_ROWS_MAX} rows is searched whole. Of a larger one the newest rows are
 * searched, and by the indexes all of them: no statement reads the whole table, whether it finds something or not. The database counts and sorts
 * the matches; only where an index found older ones, too, are the matches looked up first, and then `isCut` says that there may be more.
 */
export async function searchRows(db: Db, where: AdminConditions, search: AdminSearch, text: string): Promise<void> {
  const { table, alias, key, equals = [], words = [text], whole = false } = search;
  const [from, column] = [quoteName(table), quoteName(key)];
  const given = equals.filter(({ values }) => values.length > 0);
  const parameter = (value: unknown) => where.parameter(value);
  const oldest = whole ? undefined : await oldestSearched(db, table, key);
  if (oldest === undefined) {
    const alternatives = given.map((each) => equalsSql(`${alias}.`, each, parameter));
    where.add(`(${[containsAll(db, `${alias}.`, search.columns, words, parameter), ...alternatives].join(' or ')})`);
    return;
  }
  where.searched = SEARCHED_ROWS_MAX;
  const ids = new Set<unknown>();
  const collect = async (source: string, conditionOf: (parameter: (value: unknown) => string) => string) => {
    const parameters: unknown[] = [];
    const condition = conditionOf((value) => `$${parameters.push(value)}`);
    const sql = `select ${column} as id from ${source} where ${condition} limit ${FOUND_MAX + 1}`;
    const found = await db.query<{ id: unknown }>(sql, parameters, { replanned: true, mayBeLong: `admin search of ${table}` });
    if (found.length > FOUND_MAX) where.isCut = true;
    for (const { id } of found.slice(0, FOUND_MAX)) ids.add(id);
  };
  for (const each of given) await collect(from, (own) => equalsSql('', each, own));
  if (ids.size === 0) {
    where.add(`${alias}.${column} >= ${parameter(oldest)}`);
    where.add(containsAll(db, `${alias}.`, search.columns, words, parameter));
    return;
  }
  const read = [...new Set([key, ...search.columns])].map(quoteName).join(', ');
  const newest = `(select ${read} from ${from} order by ${column} desc limit ${SEARCHED_ROWS_MAX}) newest`;
  await collect(newest, (own) => containsAll(db, '', search.columns, words, own));
  where.add(`${alias}.${column} in (${[...ids].map(parameter).join(', ')})`);
}

function equalsSql(
  prefix: string,
  { column, values }: NonNullable<AdminSearch['equals']>[number],
  parameter: (value: unknown) => string,
): string {
  return `${prefix}${quoteName(column)} in (${values.map(parameter).join(', ')})`;
}

function containsAll(
  db: Db,
  prefix: string,
  columns: readonly string[],
  words: readonly string[],
  parameter: (value: unknown) => string,
): string {
  if (columns.length === 0) return '1 = 0';
  const terms = words.map((word) => {
    const value = parameter(word);
    return `(${columns.map((column) => containsSql(`${prefix}${quoteName(column)}`, value, db.dialect)).join(' or ')})`;
  });
  return `(${terms.join(' and ')})`;
}
