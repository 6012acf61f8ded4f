import { setTimeout as pause } from 'node:timers/promises';
import { uuidv7 } from '../../../db/uuidv7.ts';
import type { RunOutcome } from '../job-metrics.ts';
import type { Jobs } from '../jobs.ts';
import { retryDelayMs } from '../retry-policy.ts';
import type { Claim } from './claim-store.ts';
import { promoteKeys, type ReadyJob } from './due-store.ts';
import type { RunReport } from './job-run.ts';
import { endCancelledLease, fail, hasSucceeded, release, succeed, type Failed, type Success } from './result-store.ts';

/** What a worker has done so far; the line that `kit jobs work` prints. */
export interface WorkSummary extends Readonly<Record<RunOutcome, number>> {
  readonly succeeded: number;
  readonly retrying: number;
  readonly failed: number;
  /** Given back: unknown to this version of the code, or under way when the worker stopped. */
  readonly released: number;
  /** Runs whose claim was lost: cancelled, or their lease ended. */
  readonly lost: number;
}

/** Results written by one statement: each waits for the disk, so fewer and larger ones let more jobs through. */
const BATCH_MAX = 500;
const BACKOFF_MS_MIN = 100;
const BACKOFF_MS_MAX = 5000;
/** A job that this code does not know waits this long: a deploy is under way. */
const UNKNOWN_MS = 60_000;

export interface ResultHooks {
  /** These results are stored, or given up. */
  stored(claims: readonly Claim[]): void;
  /** The next jobs of serial keys. */
  ready(jobs: readonly ReadyJob[]): Promise<void> | void;
  /** Jobs wait for another attempt. */
  waiting(): void;
}

/** Writes the results of runs in batches: everything that arrived while the last batch was being written. */
export class ResultWriter {
  readonly #jobs: Jobs;
  readonly #worker: string;
  readonly #hooks: ResultHooks;
  readonly #counters = { succeeded: 0, retrying: 0, failed: 0, released: 0, lost: 0 };
  readonly #waiting: RunReport[] = [];
  #writing: Promise<void> | undefined;
  #abandoned = false;

  constructor(jobs: Jobs, worker: string, hooks: ResultHooks) {
    this.#jobs = jobs;
    this.#worker = worker;
    this.#hooks = hooks;
  }

  get summary(): WorkSummary {
    return { ...this.#counters };
  }

  add(report: RunReport): void {
    this.#waiting.push(report);
    this.#writing ??= this.#write().finally(() => (this.#writing = undefined));
  }

  /** Resolves when everything added so far is stored, or given up. */
  async flush(): Promise<void> {
    while (this.#writing !== undefined) await this.#writing;
  }

  /** From now on a batch that cannot be written is dropped: its leases run out and the jobs run again. */
  abandon(): void {
    this.#abandoned = true;
  }

  async #write(): Promise<void> {
    while (this.#waiting.length > 0) {
      // Whatever else ends in this turn of the event loop joins the batch.
      if (this.#waiting.length < BATCH_MAX) await new Promise((resolve) => setImmediate(resolve));
      const batch = new Batch(this.#waiting.splice(0, BATCH_MAX), this.#jobs);
      await this.#persist(batch);
      this.#hooks.stored(batch.reports.map(({ claim }) => claim));
    }
  }

  async #persist(batch: Batch): Promise<void> {
    for (let backoffMs = BACKOFF_MS_MIN; ; backoffMs = Math.min(2 * backoffMs, BACKOFF_MS_MAX)) {
      try {
        await this.#store(batch);
        return;
      } catch (error) {
        this.#jobs.log.warn({ err: error, jobs: batch.reports.length }, 'results of jobs could not be stored');
        if (this.#abandoned) return;
      }
      await pause(backoffMs);
    }
  }

  /** Safe to repeat: what was written is not written again. */
  async #store(batch: Batch): Promise<void> {
    const { database, clock } = this.#jobs;
    if (batch.successes.length > 0) {
      const ours = new Set(await succeed(database, batch.successes));
      for (const success of batch.successes.filter(({ id }) => !ours.has(id)))
        // Ours after all: the statement did its work, and the connection was lost before it could say so.
        if (!(await hasSucceeded(database, success))) this.#lost(success.id, batch);
      batch.successes = [];
    }
    if (batch.failures.length > 0) {
      const ours = new Set(await fail(database, batch.failures, this.#worker));
      for (const { id } of batch.failures.filter((each) => !ours.has(each.id))) this.#lost(id, batch);
      if (batch.failures.some(({ status }) => status === 'queued')) this.#hooks.waiting();
      batch.failures = [];
    }
    await release(database, batch.unknown, new Date(clock.now().getTime() + UNKNOWN_MS));
    await release(database, batch.released);
    for (const { id } of batch.lost) await endCancelledLease(database, id, this.#worker);
    if (batch.serialKeys.length > 0) await this.#hooks.ready(await promoteKeys(database, clock.now(), batch.serialKeys));
    this.#count(batch);
    if (batch.unknown.length > 0) this.#hooks.waiting();
  }

  #count({ reports, outcomes }: Batch): void {
    const { metrics, database } = this.#jobs;
    for (const { claim, startedAt, endedAt } of reports) {
      const outcome = outcomes.get(claim.id);
      if (outcome === undefined) continue;
      this.#counters[outcome]++;
      if (metrics === undefined) continue;
      const labels = { database: database.using, queue: claim.queue };
      metrics.runs.add({ ...labels, outcome });
      metrics.runSeconds.observe(labels, Math.max(0, endedAt.getTime() - startedAt.getTime()) / 1000);
    }
  }

  #lost(id: string, batch: Batch): void {
    batch.outcomes.set(id, 'lost');
    this.#jobs.log.warn({ job_id: id, worker: this.#worker }, 'the claim on a job was lost before its result came');
  }
}

/** What is to be written for some reports; rows are made once, however often it takes to write them. */
class Batch {
  readonly reports: readonly RunReport[];
  successes: Success[] = [];
  failures: Failed[] = [];
  readonly unknown: Claim[] = [];
  readonly released: Claim[] = [];
  readonly lost: Claim[] = [];
  readonly serialKeys: string[] = [];
  readonly outcomes = new Map<string, RunOutcome>();
  readonly #jobs: Jobs;

  constructor(reports: readonly RunReport[], jobs: Jobs) {
    this.reports = reports;
    this.#jobs = jobs;
    for (const report of reports) this.outcomes.set(report.claim.id, this.#sort(report));
  }

  #sort(report: RunReport): RunOutcome {
    const { claim, end, endedAt } = report;
    if (claim.serial_key !== null) this.serialKeys.push(claim.serial_key);
    switch (end.kind) {
      case 'succeeded':
        this.successes.push({ id: claim.id, token: claim.token, result: end.result, finished_at: endedAt });
        return 'succeeded';
      case 'committed':
        return 'succeeded';
      case 'failed': {
        const failed = this.#failed(report, end);
        this.failures.push(failed);
        return failed.status === 'queued' ? 'retrying' : 'failed';
      }
      case 'unknown':
        this.unknown.push(claim);
        return 'released';
      case 'released':
        this.released.push(claim);
        return 'released';
      default:
        this.lost.push(claim);
        return 'lost';
    }
  }

  #failed({ claim, startedAt, endedAt }: RunReport, end: Extract<RunReport['end'], { kind: 'failed' }>): Failed {
    const { failure } = end;
    const { clock, settings } = this.#jobs;
    const retries = !failure.isPermanent && claim.attempts < claim.attempts_max;
    const policy = settings.catalog.find(claim.name)?.retry;
    const delayMs =
      failure.retryAfterSeconds !== null
        ? failure.retryAfterSeconds * 1000
        : policy === undefined
          ? 0
          : retryDelayMs(policy, claim.attempts, Math.random);
    return {
      id: claim.id,
      token: claim.token,
      status: retries ? 'queued' : 'failed',
      run_at: retries ? new Date(endedAt.getTime() + delayMs) : undefined,
      code: failure.code,
      message: failure.message,
      outcome: end.outcome,
      attempt_id: uuidv7(clock),
      attempt: claim.attempts,
      started_at: startedAt,
      finished_at: endedAt,
    };
  }
}
