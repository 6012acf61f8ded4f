import type { Db } from '../../db/engine/db.ts';
import type { Item } from '../declare/item.ts';
import { type LogPosition, unseenBy } from './log-position.ts';

/** A row that changed since a position: what is needed to decide whether a list had it there. */
export interface ChangedRow {
  /** As the log has it. */
  readonly key: string;
  /** How the row was at the position; null: it was not there; undefined: not known. */
  readonly prior: Item | null | undefined;
}

/** Changed rows by table, each once. */
export type ChangedRows = ReadonlyMap<string, readonly ChangedRow[]>;

/** More changed rows than this are not sent one by one: the lists are read again. */
export const CHANGED_ROWS_MAX = 1_000;

interface LogRow {
  readonly resource: string;
  readonly key: string;
  readonly kind: 'created' | 'changed' | 'touched';
  readonly prior: Item | string | null;
}

/** The rows that changed since a position and before the snapshot of the transaction; `too many` above the limit. */
export async function changedRows(tx: Db, since: LogPosition): Promise<ChangedRows | 'too many'> {
  const found = await logSince(tx, since);
  if (found.length > CHANGED_ROWS_MAX) return 'too many';
  const byTable = new Map<string, Map<string, ChangedRow>>();
  for (const { resource, key, kind, prior } of found) {
    const ofTable = byTable.get(resource) ?? new Map<string, ChangedRow>();
    byTable.set(resource, ofTable);
    const known = ofTable.get(key);
    // The first change of a row says how it was. After an unknown change nothing says it.
    if (known === undefined) ofTable.set(key, { key, prior: kind === 'touched' ? undefined : read(prior) });
  }
  return new Map([...byTable].map(([table, rows]) => [table, [...rows.values()]]));
}

function read(prior: Item | string | null): Item | null {
  return typeof prior === 'string' ? (JSON.parse(prior) as Item) : prior;
}

function logSince(tx: Db, since: LogPosition): Promise<LogRow[]> {
  const columns = 'resource, key, kind, prior';
  if (tx.dialect === 'sqlite')
    return tx.query<LogRow>(`select ${columns} from kit_changes where position > $1 order by position limit ${CHANGED_ROWS_MAX + 1}`, [
      Number(since.text),
    ]);
  const { xmax, open } = unseenBy(since);
  // Two ranges of the index: a long open transaction does not make it read what was committed since.
  return tx.query<LogRow>(
    `select ${columns} from kit_changes where xid >= $1::bigint or xid = any($2::bigint[]) order by position limit ${CHANGED_ROWS_MAX + 1}`,
    [xmax, open],
  );
}
