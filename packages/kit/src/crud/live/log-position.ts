import type { Db } from '../../db/engine/db.ts';

/**
 * Up to where a stream has the changes. PostgreSQL: a snapshot, because transactions do not commit in the order in which they write: a change that a later
 * snapshot shows and this one does not is new, however long its transaction was open. SQLite has one writer: the number of the last change.
 */
export interface LogPosition {
  /** `xmin:xmax:xip,…`, or a number. */
  readonly text: string;
  /** Which database it is of: a standby that took over, or a restored copy, continues with the same numbers. */
  readonly origin: string;
}

/**
 * The timeline is that of what is being written: a standby that was promoted has its own from then on, and the control file says so minutes later, after a checkpoint.
 * A server that still follows another has none.
 */
const TIMELINE = `case when pg_is_in_recovery() then 'standby' else left(pg_walfile_name(pg_current_wal_insert_lsn()), 8) end`;
const SNAPSHOT_AND_ORIGIN =
  `select pg_current_snapshot()::text as text, concat_ws('.', system_identifier, ${TIMELINE}, ` +
  `(select oid from pg_database where datname = current_database())) as origin from pg_control_system()`;

/** The token of the last change is its origin on SQLite: a copy that went on by itself has another one at that number. */
const LAST_CHANGE = 'select cast(position as text) as text, cast(token as text) as origin from kit_changes order by position desc limit 1';

/** The position that the statements of a transaction see. Both databases decide it with the first statement. */
export async function positionOf(tx: Db): Promise<LogPosition> {
  const [position] = await tx.query<LogPosition>(tx.dialect === 'postgres' ? SNAPSHOT_AND_ORIGIN : LAST_CHANGE);
  return position ?? { text: '0', origin: '' };
}

/** The transactions that a snapshot does not show: every one from `xmax` on, and those that were open. */
export function unseenBy({ text }: LogPosition): { readonly xmax: string; readonly open: readonly string[] } {
  const [, xmax = '0', open = ''] = text.split(':');
  return { xmax, open: open === '' ? [] : open.split(',') };
}

/** Whether a position that a client kept is of this database. A log of SQLite that never had a change cannot say it: the client begins again. */
export async function isKnown(db: Db, { text, origin }: LogPosition): Promise<boolean> {
  if (db.dialect === 'postgres') {
    const now = await positionOf(db);
    return now.origin === origin && BigInt(unseenBy({ text, origin }).xmax) <= BigInt(unseenBy(now).xmax);
  }
  return isInLog(db, { text, origin });
}

/**
 * Whether the log tells everything from one position to the other. PostgreSQL: both are of one database. SQLite numbers the next change after the last one:
 * when an erasure removed the last one, its number is given again, and a reader that has it would not see the new change.
 */
export async function isContinued(tx: Db, since: LogPosition, now: LogPosition): Promise<boolean> {
  if (tx.dialect === 'postgres') return since.origin === now.origin;
  return since.origin === '' || isInLog(tx, since);
}

async function isInLog(db: Db, { text, origin }: LogPosition): Promise<boolean> {
  const found = await db.query('select 1 as found from kit_changes where position = $1 and token = $2', [Number(text), Number(origin)]);
  return found.length > 0;
}
