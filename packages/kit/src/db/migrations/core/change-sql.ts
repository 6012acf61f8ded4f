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
  /** Of these, only that they changed. */
  readonly noted: readonly string[];
}

/** The member of the logged values that says whether a column changed whose values are not logged: `true` or `false`. */
export function noteOf(column: string): string {
  return `~${column}`;
}

export interface TriggeredColumn {
  readonly name: string;
  readonly kind: ColumnKind;
}

/** Negative tokens tell changes that SQL wrote from those of the pipeline: their values are texts. */
const TOKEN = { postgres: '-1', sqlite: '-1 - abs(random() % 2147483647)' } as const;
const COLUMNS = 'position, xid, token, resource, key, kind, prior, at';

/** Keys are written as JSON.stringify() does: numbers as numbers, everything else as a string. */
const isNumber = ({ kind }: TriggeredColumn): boolean => kind === 'int' || kind === 'float';

/** The SQL of a column of a row. */
type RowSql = (column: string) => string;

/** Columns of a table that a statement calls `alias`. */
export const rowOf =
  (alias: string): RowSql =>
  (column) =>
    `${alias}.${q(column)}`;

/** Their text in PostgreSQL is that of their JSON, whatever the settings of the connection are. */
const PLAIN: ReadonlySet<ColumnKind> = new Set(['text', 'enum', 'uuid', 'int', 'bigint', 'decimal', 'bool']);

/** What PostgreSQL inserts into the log for rows of `from`: `o` is a row before, `n` after its change. A change that changes nothing is none. `at`: the time, in SQL. */
export function postgresChanges({ table, key, compared, logged, noted }: TriggeredTable, at = 'clock_timestamp()') {
  const textOf = (row: RowSql, { name, kind }: TriggeredColumn): string =>
    PLAIN.has(kind) ? `${row(name)}::text` : `to_jsonb(${row(name)}) #>> '{}'`;
  const keyOf = (row: RowSql): string => (isNumber(key) ? `to_json(${row(key.name)})::text` : `to_json(${textOf(row, key)})::text`);
  const priorOf = (o: RowSql, n?: RowSql): string => {
    const values = [
      ...logged.map((each) => [each.name, textOf(o, each)] as const),
      ...(n === undefined ? [] : noted.map((name) => [noteOf(name), `(${o(name)} is distinct from ${n(name)})::text`] as const)),
    ];
    return `jsonb_object(array[${values.map(([name]) => quoteText(name)).join(', ')}], array[${values.map(([, value]) => value).join(', ')}])`;
  };
  const valuesOf = (row: RowSql): string => `(${compared.map(row).join(', ')})`;
  const insert = (keyText: string, kind: string, prior: string, from: string): string =>
    `insert into kit_changes (${COLUMNS}) select nextval('kit_change_order'), pg_current_xact_id()::text::bigint, ${TOKEN.postgres}, ` +
    `${quoteText(table)}, ${keyText}, ${kind}, ${prior}, ${at}${from}`;
  return {
    created: (n: RowSql, from: string) => insert(keyOf(n), `'created'`, 'null', from),
    /** One row before and after. */
    changed: (o: RowSql, n: RowSql, from: string) =>
      insert(keyOf(o), `'changed'`, priorOf(o, n), ` ${from} where ${valuesOf(o)} is distinct from ${valuesOf(n)}`),
    /** All rows of a statement, whose keys may have changed. */
    changedMany(o: RowSql, n: RowSql, oldRows: string, newRows: string) {
      const [was, is] = [o(key.name), n(key.name)];
      return insert(
        `case when ${was} is null then ${keyOf(n)} else ${keyOf(o)} end`,
        `case when ${was} is null then 'created' else 'changed' end`,
        `case when ${was} is null then null else ${priorOf(o, n)} end`,
        ` from ${oldRows} full join ${newRows} on ${is} = ${was} where ${was} is null or ${is} is null or ${valuesOf(o)} is distinct from ${valuesOf(n)}`,
      );
    },
    removed: (o: RowSql, from: string) => insert(keyOf(o), `'changed'`, priorOf(o), ` ${from}`),
    emptied: () => insert(`'null'`, `'touched'`, 'null', ''),
  };
}

/** What SQLite inserts into the log for one row, as {@link postgresChanges}. */
export function sqliteChanges({ table, key, logged, noted }: TriggeredTable, at = `strftime('%Y-%m-%dT%H:%M:%fZ', 'now')`) {
  const textOf = (row: RowSql, { name, kind }: TriggeredColumn): string =>
    // A cast writes 15 digits.
    kind === 'float' ? `iif(${row(name)} is null, null, printf('%!.17g', ${row(name)}))` : `cast(${row(name)} as text)`;
  const keyOf = (row: RowSql): string => (isNumber(key) ? textOf(row, key) : `json_quote(${textOf(row, key)})`);
  const priorOf = (o: RowSql, n: RowSql | undefined): string => {
    const values = logged.map((each) => `${quoteText(each.name)}, ${textOf(o, each)}`);
    const notes = n === undefined ? [] : noted.map((name) => `${quoteText(noteOf(name))}, iif(${o(name)} is ${n(name)}, 'false', 'true')`);
    return `json_object(${[...values, ...notes].join(', ')})`;
  };
  const insert = (row: RowSql, kind: string, prior: string, from: string): string =>
    `insert into kit_changes (${COLUMNS}) select coalesce((select max(position) from kit_changes), 0) + 1, 0, ${TOKEN.sqlite}, ` +
    `${quoteText(table)}, ${keyOf(row)}, '${kind}', ${prior}, ${at}${from}`;
  return {
    created: (n: RowSql, from: string) => insert(n, 'created', 'null', from),
    /** A row before it is changed or removed. `n`: how it is then. */
    changed: (o: RowSql, n: RowSql | undefined, from: string) => insert(o, 'changed', priorOf(o, n), from),
  };
}
