import { AsyncLocalStorage } from 'node:async_hooks';
import type { DbLog } from '../log.ts';
import type { Database } from './db.ts';
import { dbErrors } from '../errors.ts';
import { isKitError } from '../../errors/kit-error.ts';

/** A look at a replica is no statement of the request that it began in. */
const outsideOfRequests = AsyncLocalStorage.snapshot();

/** A place in the write-ahead log of the primary, and when it was the last one. */
interface Position {
  readonly at: number;
  readonly place: bigint;
}

/** Places that are remembered: a replica is as fresh as the newest one that it has reached. */
const POSITIONS_MAX = 40;
/** Callers that wrote lately. With more, everybody reads the primary for a while. */
const WRITERS_MAX = 100_000;
/** The longest time between two looks at a replica that is read. */
const LOOK_MS_MAX = 1_000;

const PRIMARY = `select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::text as place,
  (select system_identifier::text from pg_control_system()) as system`;
const REPLICA = `select pg_wal_lsn_diff(case when pg_is_in_recovery() then pg_last_wal_replay_lsn() else pg_current_wal_insert_lsn() end, '0/0')::text as place,
  (select system_identifier::text from pg_control_system()) as system`;

interface Place {
  readonly place: string | null;
  readonly system: string;
}

/** What a replica has of one primary. Looked at while it is read, and not at all while nobody does. */
class Replica {
  readonly #primary: Database;
  readonly #replica: Database;
  readonly #lookMs: number;
  readonly #log: DbLog;
  readonly #positions: Position[] = [];
  /** The time whose changes the replica has; undefined where that is not known. */
  #freshAt: number | undefined;
  #lookedAt = -Infinity;
  #isLooking = false;
  /** Why it is not read; said once. */
  #fault: string | undefined;

  constructor(primary: Database, replica: Database, staleMsMax: number, log: DbLog) {
    this.#primary = primary;
    this.#replica = replica;
    this.#lookMs = Math.min(LOOK_MS_MAX, staleMsMax / 4);
    this.#log = log;
  }

  /** How long ago the primary had the state that the replica has; Infinity where that is not known. */
  staleMs(now: number): number {
    if (!this.#isLooking && now - this.#lookedAt >= this.#lookMs) outsideOfRequests(() => void this.#look(now));
    return this.#freshAt === undefined ? Infinity : now - this.#freshAt;
  }

  failed(reason: string): void {
    this.#freshAt = undefined;
    this.#positions.length = 0;
    if (this.#fault === undefined)
      this.#log.warn({ database: this.#replica.using, reason }, 'a replica cannot be read: reads go to the primary');
    this.#fault = reason;
  }

  async #look(now: number): Promise<void> {
    this.#isLooking = true;
    this.#lookedAt = now;
    try {
      const [primary] = await this.#primary.query<Place>(PRIMARY);
      // Asked after the primary: what it has reached by then, it had not before.
      const [replica] = await this.#replica.query<Place>(REPLICA);
      if (primary === undefined || replica === undefined || primary.place === null || replica.place === null)
        return this.failed('it has no log of a primary');
      if (primary.system !== replica.system) return this.failed('it is not a copy of this database, made by streaming replication');
      this.#positions.push({ at: now, place: BigInt(primary.place) });
      if (this.#positions.length > POSITIONS_MAX) this.#positions.shift();
      const reached = BigInt(replica.place);
      const fresh = this.#positions.findLast(({ place }) => place <= reached);
      if (fresh !== undefined) this.#freshAt = fresh.at;
      if (this.#fault === undefined) return;
      this.#fault = undefined;
      this.#log.warn({ database: this.#replica.using }, 'a replica can be read again');
    } catch (error) {
      this.failed((error as Error).message);
    } finally {
      this.#isLooking = false;
    }
  }
}

/**
 * Which reads may go to a replica: those of callers that did not write lately, while it is known to have everything that the primary had
 * `staleMsMax` ago. Knows nothing of rights: those are read from the primary.
 */
export class Replicas {
  readonly #databases: () => Readonly<Record<string, Database>>;
  readonly #staleMsMax: number;
  readonly #log: DbLog;
  readonly #replicas = new Map<string, Replica>();
  /** When a caller's last write ended; Infinity while one runs. */
  readonly #writers = new Map<string, { running: number; endedAt: number }>();
  #everyoneUntil = -Infinity;

  constructor(databases: () => Readonly<Record<string, Database>>, staleMsMax: number, log: DbLog) {
    this.#databases = databases;
    this.#staleMsMax = staleMsMax;
    this.#log = log;
  }

  /** The replica, where this caller may read it now. */
  fresh(alias: string, of: string, owner: string): Database | undefined {
    const { [of]: primary, [alias]: replica } = this.#databases();
    // SQLite has none: the same file may stand for one in development.
    if (primary?.dialect !== 'postgres' || replica?.dialect !== 'postgres') return undefined;
    const now = performance.now();
    if (this.#replica(alias, of, primary, replica).staleMs(now) > this.#staleMsMax) return undefined;
    return this.#hasWritten(owner, now) ? undefined : replica;
  }

  /** Whether a statement failed because it ran on the replica: the primary may do it. */
  isOver(error: unknown, alias: string, of: string): boolean {
    const isItsFault = isKitError(error) && OF_REPLICAS.has(error.code);
    if (isItsFault) this.#replicas.get(`${of} ${alias}`)?.failed(error.message);
    return isItsFault;
  }

  /** A request that may write begins; the result ends it. Its caller reads the primary from now on, until the replica has what it wrote. */
  beginWrite(owner: string): () => void {
    const known = this.#writers.get(owner);
    const writer = known ?? { running: 0, endedAt: -Infinity };
    writer.running += 1;
    if (known === undefined) this.#add(owner, writer);
    return () => {
      writer.running -= 1;
      writer.endedAt = performance.now();
    };
  }

  #add(owner: string, writer: { running: number; endedAt: number }): void {
    const now = performance.now();
    if (this.#writers.size >= WRITERS_MAX) {
      for (const [name, each] of this.#writers) if (!this.#isRecent(each, now)) this.#writers.delete(name);
      if (this.#writers.size >= WRITERS_MAX) {
        // Those that run now are counted by their own ends.
        this.#everyoneUntil = now + this.#staleMsMax;
        for (const [name, each] of this.#writers) if (each.running === 0) this.#writers.delete(name);
      }
    }
    this.#writers.set(owner, writer);
  }

  #hasWritten(owner: string, now: number): boolean {
    if (now < this.#everyoneUntil) return true;
    const writer = this.#writers.get(owner);
    if (writer === undefined) return false;
    if (this.#isRecent(writer, now)) return true;
    this.#writers.delete(owner);
    return false;
  }

  #isRecent({ running, endedAt }: { readonly running: number; readonly endedAt: number }, now: number): boolean {
    return running > 0 || now - endedAt <= this.#staleMsMax;
  }

  #replica(alias: string, of: string, primary: Database, replica: Database): Replica {
    const name = `${of} ${alias}`;
    const known = this.#replicas.get(name);
    if (known !== undefined) return known;
    const made = new Replica(primary, replica, this.#staleMsMax, this.#log);
    this.#replicas.set(name, made);
    return made;
  }
}

/** It is gone, or it ended the statement because the rows that it read were removed on the primary. */
const OF_REPLICAS: ReadonlySet<string> = new Set([dbErrors.database_unavailable.code, dbErrors.write_conflict.code]);
