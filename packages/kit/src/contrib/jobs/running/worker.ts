import type { Retention } from '../../../work/retention.ts';
import { WorkLoop } from '../../../work/work-loop.ts';
import { workerName } from '../../../work/worker-name.ts';
import type { Jobs } from '../rows/jobs.ts';
import { WORKER_NAME_LENGTH_MAX } from '../models.ts';
import { WAKE_CHANNEL } from '../start/start-store.ts';
import { claimReady, type Claim } from './claim-store.ts';
import type { ReadyJob } from './due-store.ts';
import { handOver } from './hand-over.ts';
import type { RunReport } from './job-run.ts';
import { Maintenance } from './maintenance.ts';
import { retentionOf } from './prune.ts';
import { release } from './result-store.ts';
import { ResultWriter, type WorkSummary } from './result-writer.ts';
import { Runs } from './runs.ts';

export interface WorkerOptions {
  /** Shown with each attempt. Default: host, process and a random part. */
  readonly name?: string;
  /** The queues to work on. Default: all that the jobs of the application name. */
  readonly queues?: readonly string[];
  /** Jobs of each queue at a time, instead of what they declare. */
  readonly concurrency?: number;
  /** How often the worker looks for due jobs that no notification announced. Default: the setting of `jobs()`. */
  readonly pollIntervalMs?: number;
}

/** Jobs may be over at once. More rounds ahead would keep rows from other workers for little gain. */
const ROUNDS_AHEAD = 3;
/** After a stop, handlers see an aborted signal and get this long before their jobs are given back. */
const LAST_GRACE_MS = 1500;

/** Runs the jobs of some queues, a fixed number of each at a time. */
export class JobWorker {
  readonly #jobs: Jobs;
  readonly #name: string;
  readonly #loops = new Map<string, WorkLoop<Claim, RunReport>>();
  readonly #runs: Runs;
  readonly #results: ResultWriter;
  readonly #maintenance: Maintenance;
  readonly #retention: Retention | null;
  readonly #stuck = Promise.withResolvers<string>();
  #unlisten: (() => Promise<void>) | undefined;
  #stopped: Promise<void> | undefined;

  constructor(given: Jobs, options: WorkerOptions = {}) {
    const pollIntervalMs = options.pollIntervalMs ?? given.settings.pollIntervalMs;
    const jobs = { ...given, settings: { ...given.settings, pollIntervalMs } };
    const { catalog, taskQueue } = jobs.settings;
    this.#jobs = jobs;
    this.#name = (options.name ?? workerName()).slice(0, WORKER_NAME_LENGTH_MAX);
    this.#results = new ResultWriter(jobs, this.#name, {
      stored: (claims) => this.#stored(claims),
      ready: (ready) => this.#ready(ready),
      waiting: () => this.#maintenance.wake(),
    });
    this.#maintenance = new Maintenance(jobs, (ready) => this.#ready(ready));
    this.#retention = retentionOf(jobs);
    // With a queue of another engine this worker only handles what waits.
    for (const queue of taskQueue === null ? (options.queues ?? catalog.queues) : [])
      this.#loops.set(queue, this.#loopOf(queue, options.concurrency ?? catalog.concurrencyOf(queue), pollIntervalMs));
    this.#runs = new Runs(
      jobs,
      () => [...this.#loops.values()].flatMap(({ held }) => held),
      (queue, handlers) => this.#abandoned(queue, handlers, options.concurrency ?? catalog.concurrencyOf(queue)),
    );
  }

  get summary(): WorkSummary {
    return this.#results.summary;
  }

  /** Resolves with a sentence when every slot of a queue belongs to a handler that ignores its signal: only a new process helps. */
  get stuck(): Promise<string> {
    return this.#stuck.promise;
  }

  /** Runs what is due now, and what becomes due by it, and returns. Rejects when the database cannot be asked. */
  async runOnce(): Promise<WorkSummary> {
    this.#runs.start();
    for (let before = -1; before !== countOf(this.summary);) {
      before = countOf(this.summary);
      await this.#maintenance.round();
      await Promise.all([...this.#loops.values()].map((loop) => loop.runOnce()));
      await this.#results.flush();
    }
    return this.summary;
  }

  /** Works until `stop`: woken by new work, else looking by itself. */
  async start(): Promise<void> {
    const { database } = this.#jobs;
    const onReconnect = (): void => this.#maintenance.wake();
    this.#unlisten = await database.listen(WAKE_CHANNEL, (payload) => this.#heard(payload), { onReconnect });
    this.#runs.start();
    this.#maintenance.start();
    this.#retention?.start();
    for (const [queue, loop] of this.#loops) await loop.start(database, WAKE_CHANNEL, (payload) => payload === `+${queue}`);
  }

  /** Claims nothing more, lets jobs run until the deadline, tells the rest to end, and gives back what does not. */
  stop(): Promise<void> {
    return (this.#stopped ??= this.#stop());
  }

  async #stop(): Promise<void> {
    const { settings } = this.#jobs;
    const loops = [...this.#loops.values()];
    await this.#unlisten?.().catch(() => undefined);
    await this.#maintenance.stop();
    await this.#retention?.stop();
    await Promise.all(loops.map((loop) => loop.drain(settings.stopTimeoutMs)));
    this.#runs.abortAll('stopping');
    await Promise.all(loops.map((loop) => loop.drain(LAST_GRACE_MS)));
    this.#results.abandon();
    await this.#results.flush();
    await this.#runs.stop();
    await this.#release(loops.flatMap(({ held }) => held));
  }

  #loopOf(queue: string, concurrency: number, pollIntervalMs: number): WorkLoop<Claim, RunReport> {
    const { database, clock, settings, log, metrics } = this.#jobs;
    const round = { lastTurn: '' };
    return new WorkLoop(
      {
        claim: async (max) => {
          const start = performance.now();
          const limits = { queue, now: clock.now(), leaseMs: settings.leaseMs, max, worker: this.#name };
          const claims = await claimReady(database, limits, round);
          metrics?.claimSeconds.observe({ database: database.using, queue }, (performance.now() - start) / 1000);
          return claims;
        },
        run: (claim) => this.#runs.run(claim),
        ended: (_claim, report) => this.#results.add(report),
        release: (claims) => this.#release(claims),
        claimFailed: (error, retryInMs) => log.warn({ err: error, queue, retry_in_ms: retryInMs }, 'could not claim ready jobs'),
      },
      { concurrency, pollIntervalMs, roundsAhead: ROUNDS_AHEAD },
    );
  }

  #heard(payload: string): void {
    if (payload.startsWith('~')) this.#maintenance.wake();
    else if (payload.startsWith('-')) this.#runs.abort(payload.slice(1), 'cancelled');
  }

  async #ready(ready: readonly ReadyJob[]): Promise<void> {
    const { taskQueue } = this.#jobs.settings;
    if (taskQueue !== null) return handOver(this.#jobs, taskQueue, ready);
    for (const queue of new Set(ready.map((each) => each.queue))) this.#loops.get(queue)?.wake();
  }

  #stored(claims: readonly Claim[]): void {
    const byQueue = Map.groupBy(claims, ({ queue }) => queue);
    for (const [queue, each] of byQueue) this.#loops.get(queue)?.stored(each);
  }

  #abandoned(queue: string, handlers: number, concurrency: number): void {
    if (handlers < concurrency) return;
    const message = `All ${concurrency} slots of the queue "${queue}" belong to handlers that ignore their signal: this process must be replaced.`;
    this.#jobs.log.fatal({ queue }, message);
    this.#stuck.resolve(message);
  }

  async #release(claims: readonly Claim[]): Promise<void> {
    try {
      const locked = await release(this.#jobs.database, claims);
      if (locked.length > 0)
        this.#jobs.log.warn({ jobs: locked.length }, 'another transaction has locked claimed jobs; their claims will expire');
    } catch (error) {
      this.#jobs.log.warn({ err: error }, 'could not release job claims; they will expire');
    }
  }
}

function countOf(summary: WorkSummary): number {
  return Object.values(summary).reduce((total: number, each: number) => total + each, 0);
}
