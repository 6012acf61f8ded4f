import { WorkLoop } from '../../../work/work-loop.ts';
import { workerName } from '../../../work/worker-name.ts';
import { WORKER_NAME_LENGTH_MAX } from '../models.ts';
import { LEASE_MARGIN_MS } from '../options.ts';
import { WAKE_CHANNEL } from '../publishing/publish-store.ts';
import type { Webhooks } from '../webhooks.ts';
import type { Claim, ClaimLimits } from './claim-store.ts';
import { Claimer } from './claimer.ts';
import { releaseClaims } from './result-store.ts';
import { ResultWriter, type DeliverySummary } from './result-writer.ts';
import { Sender, type SendReport } from './sender.ts';

export interface WorkerOptions {
  /** Shown with each attempt; host, process and a random part unless given. */
  readonly name?: string;
  /** Instead of the module's settings. */
  readonly concurrency?: number;
  readonly concurrencyPerEndpoint?: number;
  readonly pollIntervalMs?: number;
  /** The deadline of one attempt. */
  readonly timeoutMs?: number;
}

export interface RunOptions {
  /** Ends after this many deliveries. */
  readonly limit?: number;
  /** Only the deliveries of one event. */
  readonly eventId?: string;
}

/** Sends due deliveries, at most so many to one endpoint at a time. */
export class DeliveryWorker {
  readonly #webhooks: Webhooks;
  readonly #claimer: Claimer;
  readonly #sender: Sender;
  readonly #results: ResultWriter;
  readonly #loop: WorkLoop<Claim, SendReport>;
  readonly #perEndpoint: number;
  /** Requests under way, by endpoint. */
  readonly #busy = new Map<string, number>();
  #stopped: Promise<void> | undefined;

  constructor(given: Webhooks, options: WorkerOptions = {}) {
    const settings = { ...given.settings, timeoutMs: options.timeoutMs ?? given.settings.timeoutMs };
    const webhooks = { ...given, settings };
    const concurrency = options.concurrency ?? settings.concurrency;
    this.#webhooks = webhooks;
    this.#perEndpoint = Math.min(options.concurrencyPerEndpoint ?? settings.concurrencyPerEndpoint, concurrency);
    this.#claimer = new Claimer(webhooks.database);
    this.#sender = new Sender(webhooks);
    this.#results = new ResultWriter(webhooks, (options.name ?? workerName()).slice(0, WORKER_NAME_LENGTH_MAX), (reports) =>
      this.#loop.stored(reports.map(({ claim }) => claim)),
    );
    this.#loop = new WorkLoop(
      {
        claim: (free) => this.#claimer.claim(this.#limits(free)),
        taken: ({ endpoint: { id } }) => void this.#busy.set(id, (this.#busy.get(id) ?? 0) + 1),
        run: (claim) => this.#sender.send(claim),
        ended: (claim, report) => {
          this.#leave(claim);
          this.#results.add(report);
        },
        release: (claims) => this.#giveBack(claims),
        claimFailed: (error, retryInMs) => webhooks.log.warn({ err: error, retry_in_ms: retryInMs }, 'due webhooks could not be claimed'),
      },
      { concurrency, pollIntervalMs: options.pollIntervalMs ?? settings.pollIntervalMs },
    );
  }

  get summary(): DeliverySummary {
    return this.#results.summary;
  }

  /** Sends what is due now, and what becomes due by it, and returns. Rejects when the database cannot be asked. */
  async runOnce({ limit, eventId }: RunOptions = {}): Promise<DeliverySummary> {
    await this.#loop.runOnce({
      ...(limit === undefined ? {} : { limit }),
      ...(eventId === undefined ? {} : { claim: (free) => this.#claimer.claimEvent(eventId, this.#limits(free)) }),
    });
    await this.#results.flush();
    return this.summary;
  }

  /** Works until `stop`: woken by new work, else looking by itself. */
  start(): Promise<void> {
    return this.#loop.start(this.#webhooks.database, WAKE_CHANNEL);
  }

  /** Claims nothing more, waits for what is under way, at most for one request timeout, and gives the rest back. */
  stop(): Promise<void> {
    return (this.#stopped ??= this.#stop());
  }

  async #stop(): Promise<void> {
    await this.#loop.drain(this.#webhooks.settings.timeoutMs + 1000);
    this.#results.abandon();
    await this.#results.flush();
    await this.#release(this.#loop.held);
    await this.#sender.close();
  }

  #limits(free: number): ClaimLimits {
    const { clock, settings } = this.#webhooks;
    const now = clock.now();
    const until = new Date(now.getTime() + settings.timeoutMs + LEASE_MARGIN_MS);
    return { now, until, free, perEndpoint: this.#perEndpoint, busy: this.#busy };
  }

  async #giveBack(claims: readonly Claim[]): Promise<void> {
    for (const claim of claims) this.#leave(claim);
    await this.#release(claims);
  }

  async #release(claims: readonly Claim[]): Promise<void> {
    try {
      await releaseClaims(this.#webhooks.database, claims);
    } catch (error) {
      this.#webhooks.log.warn({ err: error }, 'claims on webhooks could not be given back; they run out by themselves');
    }
  }

  #leave({ endpoint: { id } }: Claim): void {
    const requests = this.#busy.get(id) ?? 1;
    if (requests > 1) this.#busy.set(id, requests - 1);
    else this.#busy.delete(id);
  }
}
