import type { Jobs } from '../rows/jobs.ts';
import type { Claim } from './claim-store.ts';
import { JobRun, type AbortReason, type RunReport } from './job-run.ts';
import { renew, type Held } from './result-store.ts';
import { runOnBehalfOf } from '../../../http/exchange/acting-request.ts';
import { runTraced } from './traced-run.ts';

/** Leases are renewed this often within their length: three renewals may fail before one ends. */
const RENEWALS_PER_LEASE = 4;

/** The runs under way in this process, and the leases of everything it holds. */
export class Runs {
  readonly #jobs: Jobs;
  /** Everything claimed whose result is not stored yet, whether it runs or not. */
  readonly #held: () => readonly Held[];
  /** Called when so many handlers of a queue ignore their signal. */
  readonly #onAbandoned: (queue: string, handlers: number) => void;
  /** By token: a job may be claimed again here while an abandoned handler of it goes on. */
  readonly #running = new Map<string, JobRun>();
  readonly #abandoned = new Map<string, Set<JobRun>>();
  #timer: NodeJS.Timeout | undefined;
  #renewing: Promise<void> | undefined;

  constructor(jobs: Jobs, held: () => readonly Held[], onAbandoned: (queue: string, handlers: number) => void) {
    this.#jobs = jobs;
    this.#held = held;
    this.#onAbandoned = onAbandoned;
  }

  /** Never rejects. */
  async run(claim: Claim): Promise<RunReport> {
    const run = new JobRun(this.#jobs, claim, { abandoned: (each, isAbandoned) => this.#countAbandoned(each, isAbandoned) });
    this.#running.set(claim.token, run);
    const report = await runTraced(claim, () => runOnBehalfOf(claim.request_id, () => run.execute()));
    this.#running.delete(claim.token);
    return report;
  }

  start(): void {
    this.#timer ??= setInterval(() => this.renewNow(), Math.ceil(this.#jobs.settings.leaseMs / RENEWALS_PER_LEASE));
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    this.#timer = undefined;
    await this.#renewing;
  }

  abort(jobId: string, reason: AbortReason): void {
    for (const run of this.#running.values()) if (run.claim.id === jobId) run.abort(reason);
  }

  abortAll(reason: AbortReason): void {
    for (const run of this.#running.values()) run.abort(reason);
  }

  /** One renewal at a time: a slow database must not collect them. */
  renewNow(): void {
    // After a blocked event loop this comes first: what has expired is told so before anything else happens to it.
    for (const run of this.#running.values()) void run.isLost;
    this.#renewing ??= this.#renew().finally(() => (this.#renewing = undefined));
  }

  async #renew(): Promise<void> {
    const held = this.#held();
    if (held.length === 0) return;
    const { database, settings, clock, log } = this.#jobs;
    const at = performance.now();
    try {
      const ours = await renew(database, held, settings.leaseMs, clock.now());
      for (const { id, token } of held) {
        const run = this.#running.get(token);
        if (run === undefined) continue;
        const renewed = ours.get(id);
        if (renewed === undefined) run.abort('lease_lost');
        else if (renewed) run.leasedAt = at;
      }
    } catch (error) {
      log.warn({ err: error, jobs: held.length }, 'could not renew the leases of jobs');
    }
  }

  #countAbandoned(run: JobRun, isAbandoned: boolean): void {
    const { queue } = run.claim;
    const runs = this.#abandoned.get(queue) ?? new Set();
    this.#abandoned.set(queue, runs);
    if (!isAbandoned) return void runs.delete(run);
    runs.add(run);
    const { id, name } = run.claim;
    this.#jobs.log.error({ job_id: id, job: name, abandoned: runs.size }, 'handler ignored its abort signal; its slot was released');
    this.#onAbandoned(queue, runs.size);
  }
}
