import { describe, gcra, SKEW_US_MAX } from './gcra.ts';
import type { Rate } from './rate.ts';
import { storageFailureRules, survivingFailure, type StorageFailureOptions } from './storage-failure.ts';
import type { ThrottleDb, ThrottleDecision, ThrottleLog, ThrottleStorage } from './storage.ts';
import { skipLocked } from '../work/lock-patience.ts';
import { readOptions } from '../options/read-options.ts';
import { objectWith } from '../options/value-rule.ts';

export interface SqlStorageOptions extends StorageFailureOptions {
  /** The database that holds the budgets. Default: the app's default one. */
  readonly db?: ThrottleDb;
}

interface TatRow {
  readonly tat_us: bigint | number | string;
}

// Check and write are one statement: the upsert takes the row's lock before it evaluates its `where`, so parallel
// takes from any number of processes decide one after another on the newest value. No row back means refused, and
// nothing was written. A first request always fits (cost <= count), so the insert itself needs no condition.
const TAKE = `
insert into kit_throttles (key, tat_us) values ($1, cast($2 as bigint) + cast($3 as bigint))
on conflict (key) do update set tat_us =
  case when kit_throttles.tat_us > cast($2 as bigint) and kit_throttles.tat_us <= cast($5 as bigint)
    then kit_throttles.tat_us else cast($2 as bigint) end + cast($3 as bigint)
where
  case when kit_throttles.tat_us > cast($2 as bigint) and kit_throttles.tat_us <= cast($5 as bigint)
    then kit_throttles.tat_us else cast($2 as bigint) end + cast($3 as bigint) <= cast($2 as bigint) + cast($4 as bigint)
returning tat_us`;

const READ = 'select tat_us from kit_throttles where key = $1';
const GIVE_BACK = 'update kit_throttles set tat_us = tat_us - cast($2 as bigint) where key = $1';

/** Rows per prune statement: few enough to hold their locks only briefly. */
const PRUNE_ROWS = 1000;

// A TAT in the past is a whole budget, the same as no row. The condition is repeated outside the subquery because
// PostgreSQL re-evaluates only that one after waiting for a row that a concurrent take has just moved.
const pruneSql = (db: ThrottleDb): string => `
delete from kit_throttles where tat_us <= cast($1 as bigint)
and key in (select key from kit_throttles where tat_us <= cast($1 as bigint) order by tat_us limit ${PRUNE_ROWS}${skipLocked(db)})
returning key`;

/** Pruning runs in the background after a take, at most this often per process. */
const PRUNE_EVERY_MS = 60_000;

/** Budgets in the app's own database: shared by its processes and kept over restarts, for one write per admitted request. */
export function sqlStorage(options: SqlStorageOptions = {}): ThrottleStorage {
  readOptions('sqlStorage()', options, { ...storageFailureRules, db: objectWith('a database: await openDatabase(url)', 'query') });
  let db = options.db;
  let log: ThrottleLog | undefined;
  let prunedAtMs = Number.NEGATIVE_INFINITY;
  let pruning: Promise<unknown> = Promise.resolve();

  const database = (): ThrottleDb => {
    if (db === undefined) throw new Error('sqlStorage() has no database: pass it to createApp as throttleStorage, or give it { db }.');
    return db;
  };

  const pruneExpired = async (nowUs: number): Promise<void> => {
    let deleted = PRUNE_ROWS;
    while (deleted === PRUNE_ROWS) deleted = (await database().query(pruneSql(database()), [nowUs])).length;
  };

  const prune = (now: Date): void => {
    if (now.getTime() - prunedAtMs < PRUNE_EVERY_MS) return;
    prunedAtMs = now.getTime();
    // Rows that a process whose clock runs behind still counts on are left alone.
    pruning = pruneExpired(now.getTime() * 1000 - SKEW_US_MAX).catch((error: unknown) =>
      log?.warn({ err: error }, 'Expired throttle rows could not be deleted; the next attempt is in a minute.'),
    );
  };

  const storage: ThrottleStorage = {
    async take(key: string, rate: Rate, now: Date, cost?: number): Promise<ThrottleDecision> {
      const cell = gcra(rate, now, cost);
      const [taken] = await database().query<TatRow>(TAKE, [key, cell.nowUs, cell.incrementUs, cell.windowUs, cell.horizonUs]);
      if (taken !== undefined) {
        prune(now);
        return describe(true, Number(taken.tat_us), rate, cell);
      }
      const [standing] = await database().query<TatRow>(READ, [key]);
      return describe(false, Number(standing?.tat_us ?? cell.nowUs), rate, cell);
    },
    async giveBack(key, rate, now, cost) {
      await database().query(GIVE_BACK, [key, gcra(rate, now, cost).incrementUs]);
    },
    open(context) {
      db ??= context.db;
      log = context.log;
    },
    async close() {
      await pruning;
    },
  };
  return survivingFailure(storage, 'sql', { timeoutMs: 5000, ...options });
}
