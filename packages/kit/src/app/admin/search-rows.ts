import type { Db } from '../../db/db.ts';
import { quoteName } from '../../db/names.ts';
import { containsSql } from '../../db/portable-sql.ts';
import type { AdminListQuery } from './declaration.ts';
import { type AdminConditions, type AdminOrders, SEARCHED_ROWS_MAX } from './list.ts';

/** Records that a search of a large table finds; more say that the text is too short. */
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
  return (await db.query<{ id: unknown }>(sql))[0]?.id;
}

/**
 * Adds the condition of a search. A table of up to {@link SEARCHED_ROWS_MAX} rows is searched whole. Of a larger one the ids are looked up
 * first, among the newest rows and by the indexes: no statement reads the whole table, whether it finds something or not.
 */
export async function searchRows(db: Db, where: AdminConditions, search: AdminSearch, text: string): Promise<void> {
  const { table, alias, key, equals = [], words = [text], whole = false } = search;
  const [from, column] = [quoteName(table), quoteName(key)];
  if (whole || (await oldestSearched(db, table, key)) === undefined) {
    const parameter = (value: unknown) => where.parameter(value);
    const alternatives = equals.flatMap((each) => (each.values.length === 0 ? [] : [equalsSql(`${alias}.`, each, parameter)]));
    where.add(`(${[containsAll(db, `${alias}.`, search.columns, words, parameter), ...alternatives].join(' or ')})`);
    return;
  }
  where.searched = SEARCHED_ROWS_MAX;
  const ids = new Set<unknown>();
  const collect = async (sql: string, parameters: readonly unknown[]) => {
    for (const { id } of await db.query<{ id: unknown }>(sql, parameters, { replanned: true })) ids.add(id);
  };
  for (const each of equals) {
    const parameters: unknown[] = [];
    if (each.values.length === 0) continue;
    const condition = equalsSql('', each, (value) => `$${parameters.push(value)}`);
    await collect(`select ${column} as id from ${from} where ${condition} limit ${FOUND_MAX}`, parameters);
  }
  const parameters: unknown[] = [];
  const contained = containsAll(db, '', search.columns, words, (value) => `$${parameters.push(value)}`);
  const read = [...new Set([key, ...search.columns])].map(quoteName).join(', ');
  await collect(
    `select ${column} as id from (select ${read} from ${from} order by ${column} desc limit ${SEARCHED_ROWS_MAX}) newest
     where ${contained} limit ${FOUND_MAX}`,
    parameters,
  );
  where.add(ids.size === 0 ? '1 = 0' : `${alias}.${column} in (${[...ids].map((id) => where.parameter(id)).join(', ')})`);
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
