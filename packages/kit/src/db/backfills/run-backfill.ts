import { setTimeout as sleep } from 'node:timers/promises';
import type { Database } from '../engine/db.ts';
import type { Backfill } from './backfill.ts';
import { type BackfillKey, beginState, changeState, ensureBackfills, readStates, recordWait } from './backfill-state.ts';
import { isLockedOut, runBatch } from './batch.ts';
import { countBackfillRows } from './count-backfill-rows.ts';
import { pressureOn, ReplicaLag } from './pressure.ts';

export interface BackfillRun {
  /** Stops after the batch under way. */
  readonly signal?: AbortSignal;
  /** Does a finished back-fill once more, from the first row. */
  readonly again?: boolean;
  /** After each batch, and with a sentence while it stands still. */
  readonly onProgress?: (rows: number, waitsFor: string | null) => void;
}

/** Between two batches as long as the batch took: others have half of the time of a SQLite file, and of the disk. At most this. */
const REST_MS_MAX = 1000;
/** While it must stand still. */
const WAIT_MS = 500;
/** While it waits, it shows that it is alive. */
const ALIVE_MS = 10_000;

const LOCKED = 'rows are locked by other transactions';

/** Runs a back-fill to its end, or until the signal. Another runner of it may be at work; a killed one is continued. */
export async function runBackfill(
  database: Database,
  key: BackfillKey,
  backfill: Backfill,
  run: BackfillRun,
): Promise<'finished' | 'stopped'> {
  const { signal = new AbortController().signal, onProgress = () => {} } = run;
  const lag = new ReplicaLag();
  const waiting = new Waiting(database, key);
  const wait = async (reason: string): Promise<void> => {
    onProgress(0, reason);
    await waiting.note(reason);
    await pause(WAIT_MS, signal);
  };
  while (!signal.aborted && !(await begin(database, key, backfill, run.again === true))) await wait(LOCKED);
  while (!signal.aborted) {
    const reason = await pressureOn(database, lag, backfill);
    if (reason !== null) {
      await wait(reason);
      continue;
    }
    const startedAt = performance.now();
    const outcome = await runBatch(database, key, backfill).catch(async (error: unknown) => {
      await changeState(database, key, ['running'], 'failed').catch(() => false);
      throw error;
    });
    if (outcome.kind === 'finished') return 'finished';
    if (outcome.kind === 'rows') {
      waiting.forget();
      onProgress(outcome.rows, null);
      const isCrowded = outcome.waitedMs > backfill.lockWaitMsMax;
      await pause(isCrowded ? outcome.waitedMs : Math.min(REST_MS_MAX, performance.now() - startedAt), signal);
    } else if (outcome.kind === 'locked') await wait(LOCKED);
    else {
      onProgress(0, outcome.kind === 'paused' ? 'paused' : 'another process runs it');
      await pause(WAIT_MS, signal);
    }
  }
  await waiting.end();
  return 'stopped';
}

/** False: a transaction of others kept it from beginning. */
async function begin(database: Database, key: BackfillKey, backfill: Backfill, again: boolean): Promise<boolean> {
  try {
    await ensureBackfills(database);
    const stored = (await readStates(database)).get(`${key.module}/${key.name}`);
    if (stored === undefined || (again && stored.state === 'finished')) {
      const rows = await countBackfillRows(database, backfill);
      await database.transaction((tx) => beginState(tx, key, rows));
    } else if (stored.state === 'failed') await changeState(database, key, ['failed'], 'running');
    return true;
  } catch (error) {
    if (isLockedOut(database, error)) return false;
    throw error;
  }
}

/** Why the runner stands still, as others read it. */
class Waiting {
  readonly #database: Database;
  readonly #key: BackfillKey;
  #noted: string | null = null;
  #notedAt = 0;

  constructor(database: Database, key: BackfillKey) {
    this.#database = database;
    this.#key = key;
  }

  async note(reason: string): Promise<void> {
    if (this.#noted !== null && performance.now() - this.#notedAt < ALIVE_MS) return;
    this.#noted = reason;
    this.#notedAt = performance.now();
    await this.#write(reason);
  }

  /** A batch was recorded: it clears the reason. */
  forget(): void {
    this.#noted = null;
  }

  async end(): Promise<void> {
    if (this.#noted !== null) await this.#write(null);
  }

  /** What keeps the batch waiting may keep this note waiting, too: it is for readers only. */
  async #write(reason: string | null): Promise<void> {
    await recordWait(this.#database, this.#key, reason).catch(() => undefined);
  }
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(Math.max(1, ms), undefined, { signal }).catch(() => undefined);
}
