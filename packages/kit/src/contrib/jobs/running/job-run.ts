import { setTimeout as pause } from 'node:timers/promises';
import type { Db } from '../../../db/engine/db.ts';
import type { Scope } from '../../../di/container.ts';
import { isKitError } from '../../../errors/kit-error.ts';
import type { Log } from '../../../http/log.ts';
import type { Schema } from '../../../http/declare/schema.ts';
import { jobErrors } from '../errors.ts';
import { failureOf, permanent, storable, type Failure } from '../declare/failure.ts';
import type { JobContext, JobDefinition, Step } from '../declare/job.ts';
import type { Jobs } from '../rows/jobs.ts';
import { MESSAGE_LENGTH_MAX } from '../models.ts';
import { issueText } from '../start/start-job.ts';
import { jsonValueOf } from '../declare/stored-json.ts';
import { ClaimLost } from './claim-lost.ts';
import { isSuspended, ownerHindrance } from './claim-standing.ts';
import type { Claim } from './claim-store.ts';
import { payloadText } from './payload-text.ts';
import { hasSucceeded, saveProgress, succeedOne } from './result-store.ts';
import { runLog } from './run-log.ts';
import { RecordedSteps } from './steps.ts';
import { ownRecord } from '../../../observe/own-record.ts';

/** Why a run is told to end before its time. */
export type AbortReason = 'cancelled' | 'lease_lost' | 'stopping' | 'timed_out';

/** How a run ended. */
export type RunEnd =
  | { readonly kind: 'succeeded'; readonly result: string | null }
  /** `commit` has stored it. */
  | { readonly kind: 'committed' }
  | { readonly kind: 'failed'; readonly failure: Failure; readonly outcome: 'failed' | 'timed_out' }
  /** This code does not know the job, or only an older version of it. */
  | { readonly kind: 'unknown' }
  /** Its tenant is suspended: it waits, and loses no attempt. */
  | { readonly kind: 'suspended' }
  /** The worker stops: as if it had not been claimed. */
  | { readonly kind: 'released' }
  /** The claim belongs to another worker, or to none: there is nothing to store. */
  | { readonly kind: 'lost'; readonly isCancelled: boolean };

export interface RunReport {
  readonly claim: Claim;
  readonly end: RunEnd;
  readonly startedAt: Date;
  readonly endedAt: Date;
}

/** How long a handler may go on after its signal was aborted before its slot is given away. */
const GRACE_MS = 1000;
/** Progress is written at most this often; the last word is always written. */
const PROGRESS_EVERY_MS = 200;
const SETTLE_TRIES = 20;

export interface RunHooks {
  /** A handler did not end although it was told to; called again with false when it ends after all. */
  abandoned(run: JobRun, isAbandoned: boolean): void;
}

/** One attempt of one job. */
export class JobRun {
  readonly claim: Claim;
  /** When the lease was last known to be ours, on the clock that only goes forward. */
  leasedAt = performance.now();
  readonly #jobs: Jobs;
  readonly #definition: JobDefinition | undefined;
  readonly #hooks: RunHooks;
  readonly #startedAt: Date;
  #controller: AbortController | undefined;
  #reason: AbortReason | undefined;
  #giveUp: (() => void) | undefined;
  #commit: 'none' | 'begun' | 'done' = 'none';
  #scope: Scope | undefined;
  #steps: RecordedSteps | undefined;
  /** Steps and commits that the handler has begun and that have not ended. */
  readonly #open = new Set<Promise<unknown>>();
  #progress: { percent: number; message: string | null } | undefined;
  #progressWrittenAt = Number.NEGATIVE_INFINITY;
  #progressTimer: NodeJS.Timeout | undefined;

  constructor(jobs: Jobs, claim: Claim, hooks: RunHooks) {
    this.claim = claim;
    this.#jobs = jobs;
    this.#hooks = hooks;
    this.#startedAt = jobs.clock.now();
    const definition = jobs.settings.catalog.find(claim.name);
    this.#definition = definition === undefined || claim.version > definition.version ? undefined : definition;
  }

  /** Never rejects. */
  async execute(): Promise<RunReport> {
    let end: RunEnd;
    try {
      end = this.#definition === undefined ? { kind: 'unknown' } : await this.#run(this.#definition);
    } catch (error) {
      end = this.#failed(error);
    }
    // The last word is written even when the next write was not due yet.
    await this.#flushProgress().catch((error: unknown) => this.#progressFailed(error));
    await this.#endScope();
    return { claim: this.claim, end, startedAt: this.#startedAt, endedAt: this.#jobs.clock.now() };
  }

  /** Tells the handler to end; it gets a moment to do so. */
  abort(reason: AbortReason): void {
    if (this.#reason !== undefined) return;
    this.#reason = reason;
    this.#controller?.abort(abortError(reason));
    this.#giveUp?.();
  }

  /** Also when the event loop was blocked for longer than the lease: another worker may have the job by now. */
  get isLost(): boolean {
    if (performance.now() - this.leasedAt > this.#jobs.settings.leaseMs) this.abort('lease_lost');
    return this.#reason === 'cancelled' || this.#reason === 'lease_lost';
  }

  async #run(definition: JobDefinition): Promise<RunEnd> {
    if (await isSuspended(this.#jobs, this.claim, definition)) return { kind: 'suspended' };
    if (definition.actsForOwner) await this.#requireOwner();
    const checked = await definition.input['~standard'].validate(jsonValueOf(this.claim.input));
    if (checked.issues !== undefined) {
      const message = checked.issues.slice(0, 5).map(issueText).join('; ');
      throw permanent(jobErrors.input_invalid({ message: `The input of ${this.claim.name} does not match its schema: ${message}` }));
    }
    const timer = setTimeout(() => this.abort('timed_out'), definition.timeoutMs);
    const work = this.#handle(definition, checked.value);
    try {
      return await this.#orAbandoned(work);
    } finally {
      clearTimeout(timer);
    }
  }

  async #requireOwner(): Promise<void> {
    const why = await ownerHindrance(this.#jobs, this.claim);
    if (why === null) return;
    throw permanent(jobErrors.owner_not_allowed({ message: `The owner of ${this.claim.name} may not act: ${why}.` }));
  }

  /** The handler's own end, or ours when it ignores its signal. */
  async #orAbandoned(work: Promise<RunEnd>): Promise<RunEnd> {
    const { promise: abandoned, resolve } = Promise.withResolvers<RunEnd>();
    let grace: NodeJS.Timeout | undefined;
    this.#giveUp = () => {
      grace ??= setTimeout(() => {
        this.#hooks.abandoned(this, true);
        work.finally(() => this.#hooks.abandoned(this, false)).catch(() => undefined);
        resolve(this.#aborted());
      }, GRACE_MS);
    };
    if (this.#reason !== undefined) this.#giveUp();
    try {
      return await Promise.race([work, abandoned]);
    } finally {
      clearTimeout(grace);
    }
  }

  async #handle(definition: JobDefinition, input: unknown): Promise<RunEnd> {
    try {
      const value = await definition.run(this.#context(input));
      await this.#settleOpen();
      if (this.#commit === 'done') return { kind: 'committed' };
      if (this.isLost) return this.#aborted();
      return { kind: 'succeeded', result: await this.#checkedResult(definition.result, value) };
    } catch (error) {
      // The next attempt must not run beside them, and does not repeat what they record.
      await this.#settleOpen().catch(() => undefined);
      if (this.#commit === 'done') {
        this.#jobs.log.error({ err: error, ...this.#facts() }, 'a job threw after it had committed; it has succeeded');
        return { kind: 'committed' };
      }
      return this.#failed(error);
    }
  }

  /**
   * Waits for what the handler has begun and did not wait for: a job that succeeds before its commit has lost the effects. Rejects as the first
   * that fails.
   */
  async #settleOpen(): Promise<void> {
    let failed: PromiseRejectedResult | undefined;
    while (this.#open.size > 0) {
      const ends = await Promise.allSettled(this.#open);
      failed ??= ends.find(({ status }) => status === 'rejected') as PromiseRejectedResult | undefined;
    }
    if (failed !== undefined) throw failed.reason;
  }

  /** The rejection of a promise that no one waits for would end the process, with all of its jobs. */
  #tracked<T>(promise: Promise<T>): Promise<T> {
    this.#open.add(promise);
    const ended = (): void => void this.#open.delete(promise);
    promise.then(ended, ended);
    return promise;
  }

  #failed(error: unknown): RunEnd {
    if (error instanceof ClaimLost && this.#reason === undefined) this.#reason = 'lease_lost';
    if (this.#reason !== undefined) return this.#aborted();
    const failure = failureOf(error);
    this.#jobs.log.warn(ownRecord({ err: failure.cause ?? error, ...this.#facts(), code: failure.code }), 'a job failed');
    return { kind: 'failed', failure, outcome: 'failed' };
  }

  /** What an aborted run means. */
  #aborted(): RunEnd {
    if (this.#reason === 'stopping') return { kind: 'released' };
    if (this.#reason !== 'timed_out') return { kind: 'lost', isCancelled: this.#reason === 'cancelled' };
    const { code, detail } = jobErrors.timed_out;
    this.#jobs.log.warn(this.#facts(), 'a job took longer than its timeout');
    return {
      kind: 'failed',
      failure: { code, message: detail, isPermanent: false, retryAfterSeconds: null, cause: undefined },
      outcome: 'timed_out',
    };
  }

  #facts(): Readonly<Record<string, unknown>> {
    return { job_id: this.claim.id, job: this.claim.name, attempt: this.claim.attempts };
  }

  /** The members that cost something are made when they are asked for. */
  #context(input: unknown): JobContext {
    // oxlint-disable-next-line typescript/no-this-alias -- the getters of the literal have a `this` of their own
    const run = this;
    let step: Step | undefined;
    let log: Log | undefined;
    const { id, attempts: attempt, owner_id: owner, tenant_key: tenantKey } = this.claim;
    return {
      id,
      input,
      attempt,
      owner,
      tenantKey,
      db: this.#jobs.database,
      get signal() {
        return run.#signal();
      },
      get services() {
        return (run.#scope ??= run.#jobs.services.scope());
      },
      get log() {
        return (log ??= runLog(run.#jobs.log, run.#facts()));
      },
      get step() {
        return (step ??= run.#stepOf());
      },
      mayAct: async () => (await ownerHindrance(this.#jobs, this.claim)) === null,
      progress: (percent, message) => observed(this.#tell(percent, message)),
      commit: (work) => this.#tracked(this.#commitOnce(work)),
    };
  }

  #signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#reason !== undefined) this.#controller.abort(abortError(this.#reason));
    }
    return this.#controller.signal;
  }

  #stepOf(): Step {
    const { claim } = this;
    const steps = (this.#steps ??= new RecordedSteps(this.#jobs, claim, () => this.#assertOurs()));
    const step = <T>(name: string, work: () => T | Promise<T>): Promise<T> => this.#tracked(steps.run(name, work));
    return Object.assign(step, {
      commit: <T>(name: string, work: (tx: Db) => Promise<T>) => this.#tracked(steps.commit(name, work)),
    });
  }

  #assertOurs(): void {
    if (this.isLost) throw new ClaimLost();
  }

  async #commitOnce<T>(work: (tx: Db) => Promise<T>): Promise<T> {
    if (this.#commit !== 'none') throw permanent(new Error('commit() was called twice: a job succeeds once.'));
    this.#commit = 'begun';
    const { database, clock } = this.#jobs;
    let value: T | undefined;
    try {
      await database.transaction(async (tx) => {
        value = await work(tx);
        const result = await this.#checkedResult(this.#definition?.result, value);
        this.#assertOurs();
        // Still pending: it is written again if this transaction is rolled back.
        if (this.#progressTimer !== undefined) await this.#writeProgress(tx);
        if (!(await succeedOne(tx, { ...this.claim, result, finished_at: clock.now() }))) throw new ClaimLost();
      });
    } catch (error) {
      if (!(isKitError(error, 'commit_unknown') && (await this.#wasSaved()))) {
        this.#commit = 'none';
        throw error;
      }
    }
    this.#commit = 'done';
    return value as T;
  }

  /** The connection was lost while the transaction was being committed: the row says what became of it. */
  async #wasSaved(): Promise<boolean> {
    for (let tries = 1; ; tries++) {
      try {
        return await hasSucceeded(this.#jobs.database, this.claim);
      } catch (error) {
        if (tries === SETTLE_TRIES) throw error;
        await pause(Math.min(100 * 2 ** tries, 5000));
      }
    }
  }

  async #checkedResult(schema: Schema | undefined, value: unknown): Promise<string | null> {
    if (schema === undefined) return null;
    const checked = await schema['~standard'].validate(value);
    if (checked.issues !== undefined) {
      const message = checked.issues.slice(0, 5).map(issueText).join('; ');
      throw permanent(jobErrors.result_invalid({ message: `The result of ${this.claim.name} does not match its schema: ${message}` }));
    }
    return payloadText(`The result of ${this.claim.name}`, checked.value);
  }

  async #tell(percent: number, message?: string): Promise<void> {
    if (typeof percent !== 'number' || Number.isNaN(percent)) throw new TypeError(`progress() takes a percentage, got ${String(percent)}.`);
    if (message !== undefined && typeof message !== 'string') throw new TypeError('The message of progress() must be a string.');
    this.#assertOurs();
    const told = {
      percent: Math.round(Math.min(100, Math.max(0, percent))),
      message: message === undefined ? null : storable(message, MESSAGE_LENGTH_MAX),
    };
    if (told.percent === this.#progress?.percent && told.message === this.#progress.message) return;
    this.#progress = told;
    if (this.#progressTimer !== undefined) return;
    const waitMs = this.#progressWrittenAt + PROGRESS_EVERY_MS - performance.now();
    if (waitMs <= 0) return this.#writeProgress(this.#jobs.database);
    this.#progressTimer = setTimeout(() => {
      this.#flushProgress().catch((error: unknown) => this.#progressFailed(error));
    }, waitMs);
  }

  /** Writes what waits to be written, if anything does. */
  async #flushProgress(): Promise<void> {
    if (this.#progressTimer === undefined) return;
    clearTimeout(this.#progressTimer);
    this.#progressTimer = undefined;
    // A run that has lost its claim, or has committed, has nothing to write to.
    if (this.#commit !== 'done' && !this.isLost) await this.#writeProgress(this.#jobs.database);
  }

  #progressFailed(error: unknown): void {
    this.#jobs.log.warn({ err: error, ...this.#facts() }, 'could not write the progress of a job');
  }

  async #writeProgress(db: Db): Promise<void> {
    if (this.#progress === undefined) return;
    this.#progressWrittenAt = performance.now();
    const { percent, message } = this.#progress;
    if (!(await saveProgress(db, this.claim, percent, message))) this.abort('lease_lost');
  }

  async #endScope(): Promise<void> {
    try {
      await this.#scope?.end();
    } catch (error) {
      this.#jobs.log.warn({ err: error, ...this.#facts() }, 'could not dispose of the services of a job');
    }
  }
}

/** As `#tracked`, for what need not be waited for. */
function observed<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined);
  return promise;
}

const WORDS: Readonly<Record<AbortReason, string>> = {
  cancelled: 'The job was cancelled.',
  lease_lost: 'The lease of the job was lost.',
  stopping: 'The worker is stopping.',
  timed_out: 'The job took longer than its timeout.',
};

function abortError(reason: AbortReason): Error {
  return new DOMException(WORDS[reason], reason === 'timed_out' ? 'TimeoutError' : 'AbortError');
}
