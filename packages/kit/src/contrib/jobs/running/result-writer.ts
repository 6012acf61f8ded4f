import { setTimeout as pause } from 'node:timers/promises';
import { uuidv7 } from '../../../db/values/uuidv7.ts';
import { isLockTimeout, LOCKED_MS } from '../../../work/lock-patience.ts';
import { storeInParts } from '../../../work/store-in-parts.ts';
import { jobErrors } from '../errors.ts';
import type { RunOutcome } from '../rows/job-metrics.ts';
import type { Jobs } from '../rows/jobs.ts';
import { retryDelayMs } from '../declare/retry-policy.ts';
import type { Claim } from './claim-store.ts';
import { promoteKeys, type ReadyJob } from './due-store.ts';
import type { RunReport } from './job-run.ts';
import {
  endCancelledLeases,
  fail,
  hasSucceeded,
  lockedJobs,
  release,
  succeed,
  type Failed,
  type Held,
  type Success,
} from './result-store.ts';

/** What a worker has done so far; the line that `kit jobs work` prints. */
export interface WorkSummary extends Readonly<Record<RunOutcome, number>> {
  readonly succeeded: number;
  readonly retrying: number;
  readonly failed: number;
  /** Given back: unknown to this version of the code, of a suspended tenant, or under way when the worker stopped. */
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
  /** Results of jobs whose rows another transaction has locked. */
  readonly #locked: RunReport[] = [];
  #retrying: Promise<void> | undefined;
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
    this.#writing ??= this.#write();
  }

  /** Resolves when everything added so far is stored, or given up. */
  async flush(): Promise<void> {
    while (this.#writing !== undefined || this.#retrying !== undefined) await (this.#writing ?? this.#retrying);
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
    // In the same turn as the last look: what is added from here on begins another loop.
    this.#writing = undefined;
  }

  /** All of them by one statement at a time, beside what else is written. */
  async #writeLocked(): Promise<void> {
    while (this.#locked.length > 0) {
      await pause(LOCKED_MS);
      const batch = new Batch(this.#locked.splice(0), this.#jobs);
      if (!this.#abandoned) await this.#persist(batch);
      this.#hooks.stored(batch.reports.map(({ claim }) => claim));
    }
    this.#retrying = undefined;
  }

  async #persist(batch: Batch): Promise<void> {
    for (let backoffMs = BACKOFF_MS_MIN; ; backoffMs = Math.min(2 * backoffMs, BACKOFF_MS_MAX)) {
      try {
        await this.#store(batch);
        return;
      } catch (error) {
        this.#jobs.log.warn({ err: error, jobs: batch.reports.length }, 'could not store the results of jobs');
        if (this.#abandoned) return;
      }
      await pause(backoffMs);
    }
  }

  /** Safe to repeat: what was written is not written again. */
  async #store(batch: Batch): Promise<void> {
    const { database, clock } = this.#jobs;
    try {
      await this.#storeEnds(batch);
    } catch (error) {
      if (!isLockTimeout(error) || !this.#setAside(batch, await lockedJobs(database, batch.unwritten))) throw error;
      return this.#store(batch);
    }
    if (batch.serialKeys.length > 0) await this.#hooks.ready(await promoteKeys(database, clock.now(), batch.serialKeys));
    this.#count(batch);
  }

  async #storeEnds(batch: Batch): Promise<void> {
    const { database, clock } = this.#jobs;
    const reject = async ({ id }: Held, error: unknown): Promise<void> => this.#rejected(batch, id, error);
    await storeInParts([...batch.successes.values()], (part) => this.#succeed(batch, part), reject);
    await storeInParts([...batch.failures.values()], (part) => this.#fail(batch, batch.failures, part), reject);
    const giveUp = async ({ id }: Held, error: unknown): Promise<void> => this.#givenUp(batch, id, error);
    await storeInParts([...batch.rejections.values()], (part) => this.#fail(batch, batch.rejections, part), giveUp);
    this.#setAside(batch, await release(database, batch.unknown, new Date(clock.now().getTime() + UNKNOWN_MS)));
    this.#setAside(batch, await release(database, batch.released));
    await endCancelledLeases(database, batch.lost, this.#worker);
    if (batch.unknown.length > 0) this.#hooks.waiting();
  }

  /** Another transaction has locked these jobs: their results are tried again beside those that follow. False: there are none. */
  #setAside(batch: Batch, ids: readonly string[]): boolean {
    const reports = batch.without(ids);
    if (reports.length === 0) return false;
    this.#jobs.log.warn(
      { jobs: reports.length, worker: this.#worker },
      'results of jobs wait for rows that another transaction has locked',
    );
    this.#locked.push(...reports);
    this.#retrying ??= this.#writeLocked();
    return true;
  }

  async #succeed(batch: Batch, part: readonly Success[]): Promise<void> {
    const { database } = this.#jobs;
    const ours = new Set(await succeed(database, part));
    for (const success of part) {
      // Ours after all: the statement did its work, and the connection was lost before it could say so.
      if (!ours.has(success.id) && !(await hasSucceeded(database, success))) this.#lost(success.id, batch);
      batch.successes.delete(success.id);
    }
  }

  async #fail(batch: Batch, from: Map<string, Failed>, part: readonly Failed[]): Promise<void> {
    const ours = new Set(await fail(this.#jobs.database, part, this.#worker));
    for (const { id } of part) {
      if (!ours.has(id)) this.#lost(id, batch);
      from.delete(id);
    }
    if (part.some(({ status }) => status === 'queued')) this.#hooks.waiting();
  }

  /** The database rejects a value of this result, today and tomorrow: the job fails, and the other results are stored. */
  #rejected(batch: Batch, id: string, error: unknown): void {
    this.#jobs.log.error({ err: error, job_id: id, worker: this.#worker }, 'the database rejected the result of a job; the job fails');
    batch.reject(id);
  }

  /** Even the bare failure cannot be stored: the lease expires, and the job counts as one whose worker was lost. */
  #givenUp(batch: Batch, id: string, error: unknown): void {
    this.#jobs.log.error({ err: error, job_id: id, worker: this.#worker }, 'could not store that a job failed; its lease will expire');
    batch.rejections.delete(id);
    batch.outcomes.set(id, 'lost');
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
  reports: readonly RunReport[];
  readonly successes = new Map<string, Success>();
  readonly failures = new Map<string, Failed>();
  /** Failures in place of results that the database rejects. */
  readonly rejections = new Map<string, Failed>();
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

  /** Jobs of which something is still to be written. */
  get unwritten(): string[] {
    const given = [...this.unknown, ...this.released, ...this.lost].map(({ id }) => id);
    return [...this.successes.keys(), ...this.failures.keys(), ...this.rejections.keys(), ...given];
  }

  /** Takes the reports of these jobs out. */
  without(ids: readonly string[]): RunReport[] {
    const isMeant = new Set(ids);
    const taken = this.reports.filter(({ claim }) => isMeant.has(claim.id));
    this.reports = this.reports.filter(({ claim }) => !isMeant.has(claim.id));
    for (const rows of [this.successes, this.failures, this.rejections]) for (const id of ids) rows.delete(id);
    for (const claims of [this.unknown, this.released, this.lost])
      claims.splice(0, Infinity, ...claims.filter(({ id }) => !isMeant.has(id)));
    return taken;
  }

  #sort(report: RunReport): RunOutcome {
    const { claim, end, endedAt } = report;
    if (claim.serial_key !== null) this.serialKeys.push(claim.serial_key);
    switch (end.kind) {
      case 'succeeded':
        this.successes.set(claim.id, { id: claim.id, token: claim.token, result: end.result, finished_at: endedAt });
        return 'succeeded';
      case 'committed':
        return 'succeeded';
      case 'failed': {
        const failed = this.#failed(report, end);
        this.failures.set(claim.id, failed);
        return failed.status === 'queued' ? 'retrying' : 'failed';
      }
      case 'unknown':
      case 'suspended':
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

  /** Replaces a result that cannot be stored by a failure that is not retried: the next attempt would end the same way. */
  reject(id: string): void {
    const report = this.reports.find(({ claim }) => claim.id === id);
    this.successes.delete(id);
    this.failures.delete(id);
    if (report === undefined) return;
    const { code, detail: message } = jobErrors.result_not_storable;
    const { startedAt, endedAt, claim } = report;
    const { token, attempts: attempt } = claim;
    const ended = { attempt_id: uuidv7(this.#jobs.clock), attempt, started_at: startedAt, finished_at: endedAt };
    this.rejections.set(id, { id, token, status: 'failed', code, message, outcome: 'failed', ...ended });
    this.outcomes.set(id, 'failed');
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
