import type { Database } from '../engine/db.ts';
import type { Backfill } from './backfill.ts';

/** Where the log of changes was, and when. */
interface Mark {
  readonly position: number;
  readonly atMs: number;
}

/**
 * How far replicas are behind, by the clock of the runner: when the log was where the slowest replica has come to. `replay_lag` of the server stays
 * as it was while a replica has stopped.
 */
export class ReplicaLag {
  #marks: readonly Mark[] = [];

  /** `replayed`: of the slowest replica; null when there is none. */
  lagMs(nowMs: number, position: number, replayed: number | null): number {
    if (replayed === null) {
      this.#marks = [];
      return 0;
    }
    const behind = this.#marks.filter((mark) => mark.position > replayed);
    const isNew = position > replayed && position > (behind.at(-1)?.position ?? Number.NEGATIVE_INFINITY);
    this.#marks = isNew ? [...behind, { position, atMs: nowMs }] : behind;
    const [oldest] = this.#marks;
    return oldest === undefined ? 0 : nowMs - oldest.atMs;
  }
}

const PRESSURE = `select pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float8 as position,
  (select pg_wal_lsn_diff(min(replay_lsn), '0/0')::float8 from pg_stat_replication where state = 'streaming') as replayed,
  (select max(extract(epoch from clock_timestamp() - waitstart) * 1000)::float8 from pg_locks
    where not granted and database = (select oid from pg_database where datname = current_database())) as waiting_ms`;

/** Why a back-fill must stand still, in a sentence; null when it need not. SQLite has neither replicas nor a list of waiting transactions. */
export async function pressureOn(database: Database, lag: ReplicaLag, budget: Backfill): Promise<string | null> {
  if (database.dialect === 'sqlite') return null;
  const [found] = await database.query<{ position: number; replayed: number | null; waiting_ms: number | null }>(PRESSURE);
  const lagMs = lag.lagMs(performance.now(), found?.position ?? 0, found?.replayed ?? null);
  return overBudget(lagMs, found?.waiting_ms ?? 0, budget);
}

/** `waitingMs`: how long the transaction that has waited longest waits for a lock. */
export function overBudget(lagMs: number, waitingMs: number, budget: Pick<Backfill, 'replicaLagMsMax' | 'lockWaitMsMax'>): string | null {
  if (lagMs > budget.replicaLagMsMax) return `a replica is ${seconds(lagMs)} behind`;
  return waitingMs > budget.lockWaitMsMax ? `a transaction has been waiting ${seconds(waitingMs)} for a lock` : null;
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}
