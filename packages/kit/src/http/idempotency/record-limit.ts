import { setImmediate as yieldLoop } from 'node:timers/promises';
import { BoundedMap } from '../../db/values/bounded-map.ts';
import type { Database, Db } from '../../db/engine/db.ts';

/** Callers that are remembered; one that is forgotten gets its allowance again. */
const CALLERS_MAX = 10_000;
/** Counting reads the records of the caller, so it is done once per so many of the records that are left. */
const SHARE = 8;
/** How long a caller with too many records is refused without counting again. */
export const REFUSED_MS = 10_000;

interface Allowance {
  /** New records before they are counted again. */
  left: number;
  refusedUntil: number;
}

const allowances = new WeakMap<Database, BoundedMap<string, Allowance>>();

/**
 * Whether a caller may have another record. Every process grants an eighth of what is left without counting, so a caller may get some more
 * than `max`; an eighth per process at most. Expired records do not count.
 */
export async function mayHaveRecord(db: Database, caller: string, max: number): Promise<boolean> {
  const allowance = allowanceOf(db, caller, max);
  if (allowance.left > 0) {
    allowance.left -= 1;
    return true;
  }
  const now = db.clock.now().getTime();
  if (now < allowance.refusedUntil) return false;
  const count = await countRecords(db, caller, max);
  if (count >= max) {
    allowance.refusedUntil = now + REFUSED_MS;
    return false;
  }
  allowance.left = Math.floor((max - count) / SHARE);
  return true;
}

function allowanceOf(db: Database, caller: string, max: number): Allowance {
  const known = allowances.get(db) ?? new BoundedMap<string, Allowance>(CALLERS_MAX);
  allowances.set(db, known);
  const found = known.get(caller) ?? { left: Math.floor(max / SHARE), refusedUntil: 0 };
  known.set(caller, found);
  return found;
}

/** Up to `max`. */
function countRecords(db: Db, caller: string, max: number): Promise<number> {
  return db.dialect === 'postgres' ? countAll(db, caller, max) : countInParts(db, caller, max);
}

async function countAll(db: Db, caller: string, max: number): Promise<number> {
  const [row] = await db.query<{ readonly n: number | bigint }>(
    'select count(*) as n from (select 1 from kit_idempotency where caller = $1 and expires_at > $2 limit $3) those',
    [caller, db.clock.now(), max],
  );
  return Number(row?.n ?? 0);
}

/** Of SQLite: what it reads together, during which the event loop stands still. */
const PART_ROWS = 2000;

async function countInParts(db: Db, caller: string, max: number): Promise<number> {
  const [range] = await db.query<{ readonly first: number | null; readonly last: number | null }>(
    'select (select min(rowid) from kit_idempotency) as first, (select max(rowid) from kit_idempotency) as last',
  );
  const { first, last } = range ?? {};
  if (first === null || first === undefined || last === null || last === undefined) return 0;
  let count = 0;
  // The newest first: those are valid.
  for (let end = last; end >= first && count < max; end -= PART_ROWS) {
    const [row] = await db.query<{ readonly n: number }>(
      'select count(*) as n from kit_idempotency where rowid > $1 and rowid <= $2 and caller = $3 and expires_at > $4',
      [end - PART_ROWS, end, caller, db.clock.now()],
    );
    count += row?.n ?? 0;
    await yieldLoop();
  }
  return Math.min(count, max);
}
