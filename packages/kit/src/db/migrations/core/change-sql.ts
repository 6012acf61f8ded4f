import { quoteName as q, quoteText } from '../../declare/names.ts';
import type { ColumnKind } from '../../declare/table-definition.ts';

/** A table whose changes SQL writes to the change log itself. */
export interface TriggeredTable {
  readonly table: string;
  readonly key: TriggeredColumn;
  /** A change of any of them is one of the row. */
  readonly compared: readonly string[];
  /** Their values before the change are logged. */
  readonly logged: readonly TriggeredColumn[];
}

export interface TriggeredColumn {
  readonly name: string;
  readonly kind: ColumnKind;
}

/** Negative tokens tell changes that SQL wrote from those of the pipeline: their values are texts. */
export const TOKEN = { postgres: '-1', sqlite: '-1 - abs(random() % 2147483647)' } as const;
export const COLUMNS = 'position, xid, token, resource, key, kind, prior, at';

/** Keys are written as JSON.stringify() does: numbers as numbers, everything else as a string. */
export const isNumber = ({ kind }: TriggeredColumn): boolean => kind === 'int' || kind === 'float';

/** The SQL of a column of a row. */
type RowSql = (column: string) => string;

/** Columns of a table that a statement calls `alias`. */
export const rowOf =
  (alias: string): RowSql =>
  (column) =>
    `${alias}.${q(column)}`;

/** What PostgreSQL inserts into the log for rows of `from`: `o` is a row before, `n` after its change. A change that changes nothing is none. `at`: the time, in SQL. */
export function postgresChanges({ table, key, compared, logged }: TriggeredTable, at = 'clock_timestamp()') {
  const textOf = (row: RowSql, column: string): string => `to_jsonb(${row(column)}) #>> '{}'`;
  const keyOf = (row: RowSql): string => (isNumber(key) ? `to_json(${row(key.name)})::text` : `to_json(${textOf(row, key.name)})::text`);
  const priorOf = (o: RowSql): string =>
    `jsonb_object(array[${logged.map((each) => quoteText(each.name)).join(', ')}], array[${logged.map((each) => textOf(o, each.name)).join(', ')}])`;
  const valuesOf = (row: RowSql): string => `(${compared.map(row).join(', ')})`;
  const insert = (keyText: string, kind: string, prior: string, from: string): string =>
    `insert into kit_changes (${COLUMNS}) select nextval('kit_change_order'), pg_current_xact_id()::text::bigint, ${TOKEN.postgres}, ` +
    `${quoteText(table)}, ${keyText}, ${kind}, ${prior}, ${at}${from}`;
  return {
    created: (n: RowSql, from: string) => insert(keyOf(n), `'created'`, 'null', ` ${from}`),
    /** One row before and after. */
    changed: (o: RowSql, n: RowSql, from: string) =>
      insert(keyOf(o), `'changed'`, priorOf(o), ` ${from} where ${valuesOf(o)} is distinct from ${valuesOf(n)}`),
    /** All rows of a statement, whose keys may have changed. */
    changedMany(o: RowSql, n: RowSql, oldRows: string, newRows: string) {
      const [was, is] = [o(key.name), n(key.name)];
      return insert(
        `case when ${was} is null then ${keyOf(n)} else ${keyOf(o)} end`,
        `case when ${was} is null then 'created' else 'changed' end`,
        `case when ${was} is null then null else ${priorOf(o)} end`,
        ` from ${oldRows} full join ${newRows} on ${is} = ${was} where ${was} is null or ${is} is null or ${valuesOf(o)} is distinct from ${valuesOf(n)}`,
      );
    },
    removed: (o: RowSql, from: string) => insert(keyOf(o), `'changed'`, priorOf(o), ` ${from}`),
    emptied: () => insert(`'null'`, `'touched'`, 'null', ''),
  };
}
