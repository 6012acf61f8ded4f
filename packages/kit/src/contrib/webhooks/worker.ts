import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import type { Claim } from './claim-store.ts';
import { Claimer } from './claimer.ts';
import { WORKER_NAME_LENGTH_MAX } from './models.ts';
import { LEASE_MARGIN_MS } from './options.ts';
import { WAKE_CHANNEL } from './publish-store.ts';
import { releaseClaims } from './result-store.ts';
import { ResultWriter, type DeliverySummary } from './result-writer.ts';
import { Sender, type SendReport } from './sender.ts';
import type { Webhooks } from './webhooks.ts';

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

/** While most slots are busy, free ones are gathered this long, so that one claim fills several. */
const GATHER_MS = 5;
const BACKOFF_MS_MIN = 100;
const BACKOFF_MS_MAX = 10_000;

/**
 * Sends due deliveries. Claims only what it can send at once, so that a delivery it holds is on its way and everything
 * else is free for other workers.
 */
export class DeliveryWorker {
  readonly #webhooks: Webhooks;
  readonly #claimer: Claimer;
  readonly #sender: Sender;
  readonly #results: ResultWriter;
  readonly #concurrency: number;
  readonly #perEndpoint: number;
  readonly #pollIntervalMs: number;
  readonly #held = new Map<string, Claim>();
  readonly #busy = new Map<string, number>();
  readonly #wakeUp = new WakeUp();
  /** Requests under way. */
  #inFlight = 0;
  /** Requests that have ended and whose results are not stored yet. */
  #unstored = 0;
  #stopping = false;
  #loop: Promise<void> | undefined;
  #unlisten: (() => Promise<void>) | undefined;

  constructor(given: Webhooks, options: WorkerOptions = {}) {
    const settings = { ...given.settings, timeoutMs: options.timeoutMs ?? given.settings.timeoutMs };
    const webhooks = { ...given, settings };
    this.#webhooks = webhooks;
    this.#concurrency = options.concurrency ?? settings.concurrency;
    this.#perEndpoint = Math.min(options.concurrencyPerEndpoint ?? settings.concurrencyPerEndpoint, this.#concurrency);
    this.#pollIntervalMs = options.pollIntervalMs ?? settings.pollIntervalMs;
    this.#claimer = new Claimer(webhooks.database);
    this.#sender = new Sender(webhooks);
    this.#results = new ResultWriter(webhooks, (options.name ?? defaultName()).slice(0, WORKER_NAME_LENGTH_MAX), (reports) =>
      this.#forget(reports),
    );
  }

  get summary(): DeliverySummary {
    return this.#results.summary;
  }

  /** Sends what is due now, and what becomes due by it, and returns. Rejects when the database cannot be asked. */
  async runOnce({ limit = Infinity, eventId }: RunOptions = {}): Promise<DeliverySummary> {
    let left = limit;
    while (!this.#stopping) {
      await this.#gather();
      // Asked before claiming: a delivery that ends meanwhile may have made room, or made another one due.
      const wasIdle = this.#held.size === 0;
      const claims = await this.#claim(left, eventId);
      left -= claims.length;
      for (const claim of claims) this.#start(claim);
      if (claims.length > 0) continue;
      if (wasIdle) break;
      await this.#wakeUp.next(Infinity);
    }
    await this.#results.flush();
    return this.summary;
  }

  /** Works until `stop`: woken by new work, else looking by itself. */
  async start(): Promise<void> {
    const wake = (): void => this.#wakeUp.wake();
    this.#unlisten = await this.#webhooks.database.listen(WAKE_CHANNEL, wake, { onReconnect: wake });
    this.#loop ??= this.#work();
  }

  /** Claims nothing more, waits for what is under way, at most for one request timeout, and gives the rest back. */
  async stop(): Promise<void> {
    if (this.#stopping) return;
    this.#stopping = true;
    this.#wakeUp.wake();
    await this.#unlisten?.().catch(() => undefined);
    await this.#loop;
    const deadline = Date.now() + this.#webhooks.settings.timeoutMs + 1000;
    while (this.#inFlight > 0 && Date.now() < deadline) await this.#wakeUp.next(deadline - Date.now());
    this.#results.abandon();
    await this.#results.flush();
    await releaseClaims(this.#webhooks.database, [...this.#held.values()]).catch((error: unknown) =>
      this.#webhooks.log.warn({ err: error }, 'claims on webhooks could not be given back; they run out by themselves'),
    );
    await this.#sender.close();
  }

  async #work(): Promise<void> {
    let backoffMs = BACKOFF_MS_MIN;
    while (!this.#stopping) {
      await this.#gather();
      if (this.#stopping) return;
      try {
        const claims = await this.#claim(Infinity);
        backoffMs = BACKOFF_MS_MIN;
        for (const claim of claims) this.#start(claim);
        if (claims.length === 0) await this.#wakeUp.next(this.#pollIntervalMs);
      } catch (error) {
        this.#webhooks.log.warn({ err: error, retry_in_ms: backoffMs }, 'due webhooks could not be claimed');
        this.#wakeUp.forget();
        await this.#wakeUp.next(backoffMs);
        backoffMs = Math.min(2 * backoffMs, BACKOFF_MS_MAX);
      }
    }
  }

  /** Waits for a free slot and, while most of them are busy, a little longer for others to become free with it. */
  async #gather(): Promise<void> {
    const enough = Math.ceil(this.#concurrency / 2);
    await this.#wakeUp.when(() => this.#stopping || this.#free() > 0, Infinity);
    await this.#wakeUp.when(() => this.#stopping || this.#free() >= enough, GATHER_MS);
    // The claim that follows sees what there was to tell.
    this.#wakeUp.forget();
  }

  /** None while two rounds of results are waiting: a worker that cannot write must not go on claiming. */
  #free(): number {
    return this.#unstored >= 2 * this.#concurrency ? 0 : this.#concurrency - this.#inFlight;
  }

  async #claim(max: number, eventId?: string): Promise<Claim[]> {
    const { clock, settings } = this.#webhooks;
    const now = clock.now();
    const free = Math.min(this.#free(), max);
    if (free <= 0) return [];
    const until = new Date(now.getTime() + settings.timeoutMs + LEASE_MARGIN_MS);
    const limits = { now, until, free, perEndpoint: this.#perEndpoint, busy: this.#busy };
    return eventId === undefined ? this.#claimer.claim(limits) : this.#claimer.claimEvent(eventId, limits);
  }

  #start(claim: Claim): void {
    const { id } = claim.endpoint;
    this.#inFlight++;
    this.#busy.set(id, (this.#busy.get(id) ?? 0) + 1);
    this.#held.set(claim.id, claim);
    void this.#deliver(claim);
  }

  async #deliver(claim: Claim): Promise<void> {
    const report = await this.#sender.send(claim);
    const { id } = claim.endpoint;
    const requests = this.#busy.get(id) ?? 1;
    if (requests > 1) this.#busy.set(id, requests - 1);
    else this.#busy.delete(id);
    this.#inFlight--;
    this.#unstored++;
    this.#results.add(report);
    this.#wakeUp.wake();
  }

  #forget(stored: readonly SendReport[]): void {
    for (const { claim } of stored) this.#held.delete(claim.id);
    this.#unstored -= stored.length;
    this.#wakeUp.wake();
  }
}

function defaultName(): string {
  return `${hostname().slice(0, 60)}:${process.pid}:${randomBytes(3).toString('hex')}`;
}

/** One waiter, woken early by whoever has news; news that comes while nobody waits is kept. */
class WakeUp {
  #news = false;
  #wake: (() => void) | undefined;

  wake(): void {
    this.#news = true;
    this.#wake?.();
  }

  forget(): void {
    this.#news = false;
  }

  async next(ms: number): Promise<void> {
    await this.when(() => this.#news, ms);
    this.#news = false;
  }

  /** Resolves when news makes the condition true, or after so long. */
  async when(condition: () => boolean, ms: number): Promise<void> {
    if (ms <= 0 || condition()) return;
    await new Promise<void>((resolve) => {
      const timer = ms === Infinity ? undefined : setTimeout(resolve, ms);
      this.#wake = () => {
        if (!condition()) return;
        clearTimeout(timer);
        resolve();
      };
    });
    this.#wake = undefined;
  }
}
