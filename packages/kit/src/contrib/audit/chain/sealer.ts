import { AsyncLocalStorage } from 'node:async_hooks';
import { moduleState } from '../../../app/assemble/module-state.ts';
import type { Database } from '../../../db/engine/db.ts';
import type { DbLog } from '../../../db/log.ts';
import { sealEntries } from './seal.ts';

/** From a commit to its seal: long enough that the entries of many commits share one transaction. */
export const SEAL_AFTER_MS = 200;
/** How often a started process looks for entries that others left: a killed process, or one without a sealer. */
const SWEEP_EVERY_MS = 5000;

/** Seals the entries of one database in the background: soon after this process recorded some, and at intervals what others left. */
export class Sealer {
  readonly #database: Database;
  readonly #log: DbLog;
  /** Timers that a request starts must not run in its context: their statements are not the request's. */
  readonly #outside = AsyncLocalStorage.snapshot();
  #pending: NodeJS.Timeout | undefined;
  #sweep: NodeJS.Timeout | undefined;
  #sealing: Promise<void> = Promise.resolve();
  #recorded = false;

  constructor(database: Database, log: DbLog) {
    this.#database = database;
    this.#log = log;
  }

  /** Entries of this process were committed. */
  wake(): void {
    this.#recorded = true;
    this.#pending ??= this.#outside(() => setTimeout(() => void this.#run(), SEAL_AFTER_MS).unref());
  }

  startSweeps(): void {
    void this.#run();
    this.#sweep ??= setInterval(() => void this.#run(), SWEEP_EVERY_MS).unref();
  }

  /** Seals what this process recorded last. */
  async stop(): Promise<void> {
    clearInterval(this.#sweep);
    clearTimeout(this.#pending);
    await this.#sealing;
    if (this.#recorded) await this.#run();
  }

  #run(): Promise<void> {
    clearTimeout(this.#pending);
    this.#pending = undefined;
    this.#recorded = false;
    this.#sealing = this.#sealing.then(() => this.#seal());
    return this.#sealing;
  }

  async #seal(): Promise<void> {
    try {
      await sealEntries(this.#database);
    } catch (error) {
      // Nothing is lost: the entries are committed, and the next round finds them.
      this.#log.warn({ err: error }, 'audit entries could not be sealed; the next attempt follows');
    }
  }
}

/** The sealers of the open databases that the audit module of an app records in. */
export const sealers = moduleState<Sealer>({ name: 'Audit entries', setUp: 'add audit() to the modules of createApp' });
