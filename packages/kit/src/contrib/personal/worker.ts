import type { App } from '../../app/declare/module.ts';
import { eraseDue } from '../../crud/subjects/erase-due.ts';
import { retainedTables, retainRows } from '../../crud/subjects/retained-tables.ts';
import { WakeUp } from '../../work/wake-up.ts';
import { buildNextExport, storedExports } from './exports.ts';

const IDLE_MS = 10_000;
/** After something failed. */
const FAILED_MS = 60_000;
const ERASURES = 10;
/** After work, as long as the work took, at most this. */
const REST_MS_MAX = 1000;

/** Writes exports, erases people whose grace is over, and removes rows whose retention is over: one after the other, in the background. */
export class PersonalDataWorker {
  readonly #app: App;
  readonly #exportDays: number;
  readonly #wakeUp = new WakeUp();
  readonly #stop = new AbortController();
  #loop: Promise<void> | undefined;

  constructor(app: App, exportDays: number) {
    this.#app = app;
    this.#exportDays = exportDays;
  }

  start(): void {
    this.#loop ??= this.#run();
  }

  wake(): void {
    this.#wakeUp.wake();
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    this.#wakeUp.wake();
    await this.#loop;
  }

  async #run(): Promise<void> {
    while (!this.#stop.signal.aborted) await this.#wakeUp.next(await this.#round());
  }

  /** How long to rest. */
  async #round(): Promise<number> {
    const startedAt = performance.now();
    let worked = false;
    let failed = false;
    for (const work of [() => this.#exports(), () => this.#erasures(), () => this.#retention()])
      try {
        worked = (await work()) || worked;
      } catch (error) {
        failed = true;
        this.#app.log.error({ err: error }, 'personal data could not be exported, erased or removed; it is tried again');
      }
    if (failed) return FAILED_MS;
    return worked ? Math.max(1, Math.min(REST_MS_MAX, performance.now() - startedAt)) : IDLE_MS;
  }

  async #exports(): Promise<boolean> {
    const removed = await storedExports.removeExpired(this.#app.db);
    return (await buildNextExport(this.#app, this.#exportDays, this.#stop.signal)) || removed > 0;
  }

  async #erasures(): Promise<boolean> {
    // Those of tenants have a beginning and an end of their own.
    return (await eraseDue(this.#app, 'person', ERASURES, this.#stop.signal)) > 0;
  }

  async #retention(): Promise<boolean> {
    let worked = false;
    for (const table of retainedTables(this.#app)) {
      if (this.#stop.signal.aborted) break;
      worked = ((await retainRows(this.#app, table)) ?? 0) > 0 || worked;
    }
    return worked;
  }
}
