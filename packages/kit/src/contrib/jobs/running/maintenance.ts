import { uuidv7 } from '../../../db/values/uuidv7.ts';
import { WakeUp } from '../../../work/wake-up.ts';
import { jobErrors } from '../errors.ts';
import type { Jobs } from '../rows/jobs.ts';
import { moveStranded, nextDueAt, overdueReady, promoteDue, promoteKeys, promoteSerial, type ReadyJob } from './due-store.ts';
import { expire } from './result-store.ts';
import { runSchedules } from './run-schedules.ts';

/** Serial keys are looked at by the page; the rest comes with the next round. */
const PAGES_MAX = 20;
const BACKOFF_MS = 1000;
/** How often to look for jobs that are stranded in an old queue, or that an engine has lost. */
const SWEEP_MS = 60_000;

/** Makes jobs ready: those whose time or turn has come, those whose worker was lost, and recurring ones. */
export class Maintenance {
  readonly #jobs: Jobs;
  readonly #onReady: (jobs: readonly ReadyJob[]) => Promise<void> | void;
  readonly #wakeUp = new WakeUp();
  #sweptAt = Number.NEGATIVE_INFINITY;
  #serialCursor: string | null = null;
  #stopping = false;
  #loop: Promise<void> | undefined;

  constructor(jobs: Jobs, onReady: (jobs: readonly ReadyJob[]) => Promise<void> | void) {
    this.#jobs = jobs;
    this.#onReady = onReady;
  }

  start(): void {
    this.#loop ??= this.#run();
  }

  /** Something waits that did not before. */
  wake(): void {
    this.#wakeUp.wake();
  }

  async stop(): Promise<void> {
    this.#stopping = true;
    this.#wakeUp.wake();
    await this.#loop;
  }

  /** One round. Returns when the next is due at the latest. */
  async round(): Promise<Date | null> {
    const { clock } = this.#jobs;
    const ready = [...(await this.#expired())];
    const next: (Date | null)[] = [await runSchedules(this.#jobs)];
    const now = clock.now();
    const due = await promoteDue(this.#jobs.database, now);
    ready.push(...due.ready);
    const serial = await this.#serial(now);
    ready.push(...serial.ready);
    next.push(serial.nextDueAt, due.mayBeMore ? now : await nextDueAt(this.#jobs.database, now));
    ready.push(...(await this.#swept(now)));
    if (ready.length > 0) await this.#onReady(ready);
    const times = next.filter((at) => at !== null).map((at) => at.getTime());
    return times.length === 0 ? null : new Date(Math.min(...times));
  }

  /** At the start and once a minute: jobs that nobody would look for any more. */
  async #swept(now: Date): Promise<readonly ReadyJob[]> {
    const { database, settings } = this.#jobs;
    if (Math.abs(now.getTime() - this.#sweptAt) < SWEEP_MS) return [];
    this.#sweptAt = now.getTime();
    const { catalog, taskQueue } = settings;
    const moved = await moveStranded(database, catalog.names);
    // An engine that has not begun a job after so long has lost it: it is handed over again.
    return taskQueue === null ? moved : [...moved, ...(await overdueReady(database, catalog.queues, new Date(now.getTime() - SWEEP_MS)))];
  }

  async #expired(): Promise<readonly ReadyJob[]> {
    const { database, clock, log } = this.#jobs;
    const expired = await expire(database, clock.now(), jobErrors.worker_lost.detail, () => uuidv7(clock));
    for (const { id, status } of expired)
      if (status !== 'cancelled') log.warn({ job_id: id, status }, 'the worker of a job did not renew its lease');
    const keys = expired.flatMap(({ serial_key: key, status }) => (key === null || status === 'queued' ? [] : [key]));
    return [...expired.filter(({ status }) => status === 'queued'), ...(await promoteKeys(database, clock.now(), keys))];
  }

  async #serial(now: Date): Promise<{ readonly ready: readonly ReadyJob[]; readonly nextDueAt: Date | null }> {
    const ready: ReadyJob[] = [];
    const later: number[] = [];
    for (let page = 0; page < PAGES_MAX; page++) {
      const found = await promoteSerial(this.#jobs.database, now, this.#serialCursor);
      ready.push(...found.ready);
      if (found.nextDueAt !== null) later.push(found.nextDueAt.getTime());
      this.#serialCursor = found.cursor;
      if (found.cursor === null) return { ready, nextDueAt: later.length === 0 ? null : new Date(Math.min(...later)) };
    }
    return { ready, nextDueAt: now };
  }

  async #run(): Promise<void> {
    const { clock, log, settings } = this.#jobs;
    while (!this.#stopping) {
      let waitMs = settings.pollIntervalMs;
      this.#wakeUp.forget();
      try {
        const next = await this.round();
        if (next !== null) waitMs = Math.max(1, Math.min(waitMs, next.getTime() - clock.now().getTime()));
      } catch (error) {
        log.warn({ err: error, retry_in_ms: BACKOFF_MS }, 'could not query due jobs');
        waitMs = BACKOFF_MS;
      }
      if (!this.#stopping) await this.#wakeUp.next(waitMs);
    }
  }
}
