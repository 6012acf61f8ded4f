import type { Db } from '../../db/engine/db.ts';
import type { Item } from '../declare/item.ts';
import { noteOf } from '../../db/migrations/core/change-sql.ts';
import { NO_KEY } from '../write/change-log.ts';
import { type LogPosition, unseenBy } from './log-position.ts';

/** A row that changed since a position: what is needed to decide whether a list had it there. */
export interface ChangedRow {
  /** As the log has it. */
  readonly key: string;
  /** How the row was at the position; null: it was not there; undefined: not known. */
  readonly prior: LoggedRow | null | undefined;
}

/** Logged values. Those that a trigger wrote are texts. */
export interface LoggedRow {
  readonly values: Item;
  readonly areTexts: boolean;
}

/** Changed rows by table, each once. */
export type ChangedRows = ReadonlyMap<string, readonly ChangedRow[] | 'too many'>;

/** More changed rows of a table than this are not sent one by one: its lists are read again. */
export const CHANGED_ROWS_MAX = 5_000;

interface LogRow {
  readonly resource: string;
  readonly key: string;
  readonly kind: 'created' | 'changed' | 'touched';
  readonly prior: Item | string | null;
  readonly token: number;
}

/** The rows of these tables that changed since a position and before the snapshot of the transaction; `too many` for tables above the limit. */
export async function changedRows(tx: Db, since: LogPosition, tables: readonly string[]): Promise<ChangedRows> {
  const together = await logSince(tx, since, tables);
  if (together.length <= CHANGED_ROWS_MAX) return byTable(together);
  // A table that changes a lot does not reset the lists of others.
  const found = new Map<string, readonly ChangedRow[] | 'too many'>();
  for (const table of tables) {
    const own = await logSince(tx, since, [table]);
    if (own.length > CHANGED_ROWS_MAX) found.set(table, 'too many');
    else for (const [name, rows] of byTable(own)) found.set(name, rows);
  }
  return found;
}

function byTable(found: readonly LogRow[]): Map<string, readonly ChangedRow[] | 'too many'> {
  const tables = new Map<string, Map<string, ChangedRow>>();
  for (const { resource, key, kind, prior, token } of found) {
    const ofTable = tables.get(resource) ?? new Map<string, ChangedRow>();
    tables.set(resource, ofTable);
    // The first change of a row says how it was. After an unknown change nothing says it.
    const values = kind === 'touched' ? undefined : read(prior, token < 0);
    const first = ofTable.get(key);
    ofTable.set(key, first === undefined ? { key, prior: values } : { key, prior: together(first.prior, values) });
  }
  return new Map([...tables].map(([table, rows]) => [table, rows.has(NO_KEY) ? 'too many' : [...rows.values()]]));
}

/** What later changes say of columns whose values are not logged: one that none of them says anything of may have changed. */
function together(first: ChangedRow['prior'], later: ChangedRow['prior']): ChangedRow['prior'] {
  if (first === undefined || first === null) return first;
  const same = Object.keys(first.values).filter((name) => name.startsWith(noteOf('')) && first.values[name] === 'false');
  const notes = same.map((name) => [name, later?.values[name]] as const);
  return notes.length === 0 ? first : { ...first, values: { ...first.values, ...Object.fromEntries(notes) } };
}

function read(prior: Item | string | null, areTexts: boolean): LoggedRow | null {
  if (prior === null) return null;
  return { values: typeof prior === 'string' ? (JSON.parse(prior) as Item) : prior, areTexts };
}

function logSince(tx: Db, since: LogPosition, tables: readonly string[]): Promise<LogRow[]> {
  const columns = 'resource, key, kind, prior, token';
  const end = `order by position limit ${CHANGED_ROWS_MAX + 1}`;
  if (tx.dialect === 'sqlite')
    return tx.query<LogRow>(
      `select ${columns} from kit_changes where position > $1 and resource in (select value from json_each($2)) ${end}`,
      [Number(since.text), JSON.stringify(tables)],
    );
  const { xmax, open } = unseenBy(since);
  // Two ranges of the index: a long open transaction does not make it read what was committed since.
  return tx.query<LogRow>(
    `select ${columns} from kit_changes where (xid >= $1::bigint or xid = any($2::bigint[])) and resource = any($3::text[]) ${end}`,
    [xmax, open, tables],
  );
}
