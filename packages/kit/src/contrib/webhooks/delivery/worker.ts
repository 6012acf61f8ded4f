import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import type { Claim } from './claim-store.ts';
import { Claimer } from './claimer.ts';
import { WORKER_NAME_LENGTH_MAX } from '../models.ts';
import { LEASE_MARGIN_MS } from '../options.ts';
import { WAKE_CHANNEL } from '../publishing/publish-store.ts';
import { releaseClaims } from './result-store.ts';
import { ResultWriter, type DeliverySummary } from './result-writer.ts';
import { Sender, type SendReport } from './sender.ts';
import type { Webhooks } from '../webhooks.ts';

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

/** Results that may wait to be stored, in multiples of the slots: while one batch is written, the next comes together. */
const UNSTORED_ROUNDS_MAX = 4;
/** A claim whose slot did not become free after all is given back after this long. */
const PATIENCE_MS = 1000;
/** While most slots are busy, free ones are gathered this long, so that one claim fills several. */
const GATHER_MS = 5;
const BACKOFF_MS_MIN = 100;
const BACKOFF_MS_MAX = 10_000;

/**
 * Sends due deliveries. Claims only what it can send at once, or will be able to by the time it has the claim, so that a delivery it
 * holds is on its way and everything else is free for other workers.
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
  /** Claimed for slots that were about to become free. */
  readonly #ready: Claim[] = [];
  /** Requests that ended while the last claim was made. */
  #pace = 0;
  #ended = 0;
  /** Requests under way. */
  #inFlight = 0;
  /** Requests that have ended and whose results are not stored yet. */
  #unstored = 0;
  #stopping = false;
  #stopped: Promise<void> | undefined;
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
      this.#take(claims);
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
  stop(): Promise<void> {
    return (this.#stopped ??= this.#stop());
  }

  async #stop(): Promise<void> {
    this.#stopping = true;
    this.#wakeUp.wake();
    await this.#unlisten?.().catch(() => undefined);
    await this.#loop;
    const deadline = Date.now() + this.#webhooks.settings.timeoutMs + 1000;
    while (this.#inFlight > 0 && Date.now() < deadline) await this.#wakeUp.next(deadline - Date.now());
    this.#results.abandon();
    await this.#results.flush();
    await releaseClaims(this.#webhooks.database, [...this.#held.values()]).catch((error: unknown) => this.#notGivenBack(error));
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
        this.#take(claims);
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
    // Half would leave the process idle for 15 % of the time, a third for 12 %; with fewer, claims cost more than they save.
    const enough = Math.ceil(this.#concurrency / 3);
    await this.#wakeUp.when(() => this.#stopping || this.#ready.length === 0, PATIENCE_MS);
    if (!this.#stopping) await this.#giveBack(this.#ready.splice(0));
    await this.#wakeUp.when(() => this.#stopping || this.#free() > 0, Infinity);
    await this.#wakeUp.when(() => this.#stopping || this.#free() >= enough, GATHER_MS);
    // The claim that follows sees what there was to tell.
    this.#wakeUp.forget();
  }

  /** None while rounds of results are waiting: a worker that cannot write must not go on claiming. */
  #free(): number {
    return this.#unstored >= UNSTORED_ROUNDS_MAX * this.#concurrency ? 0 : this.#concurrency - this.#inFlight - this.#ready.length;
  }

  /** As many as there are free slots, and as will be when the answer is here: the slots would be empty for as long as a claim takes. */
  async #claim(max: number, eventId?: string): Promise<Claim[]> {
    const { clock, settings } = this.#webhooks;
    const now = clock.now();
    const free = this.#free();
    if (free <= 0 || max <= 0) return [];
    const until = new Date(now.getTime() + settings.timeoutMs + LEASE_MARGIN_MS);
    const limits = { now, until, perEndpoint: this.#perEndpoint, busy: this.#busy };
    if (eventId !== undefined) return this.#claimer.claimEvent(eventId, { ...limits, free: Math.min(free, max) });
    const ended = this.#ended;
    // With a limit, what is claimed is what is sent.
    const claims = await this.#claimer.claim({ ...limits, free: max === Infinity ? free + this.#pace : Math.min(free, max) });
    this.#pace = this.#ended - ended;
    return claims;
  }

  #take(claims: readonly Claim[]): void {
    for (const claim of claims) {
      const { id } = claim.endpoint;
      this.#busy.set(id, (this.#busy.get(id) ?? 0) + 1);
      this.#held.set(claim.id, claim);
      this.#ready.push(claim);
    }
    this.#fillSlots();
  }

  #fillSlots(): void {
    while (this.#inFlight < this.#concurrency && !this.#stopping) {
      const claim = this.#ready.shift();
      if (claim === undefined) return;
      this.#inFlight++;
      void this.#deliver(claim);
    }
  }

  async #giveBack(claims: readonly Claim[]): Promise<void> {
    for (const { id, endpoint } of claims) {
      this.#held.delete(id);
      this.#leave(endpoint.id);
    }
    await releaseClaims(this.#webhooks.database, claims).catch((error: unknown) => this.#notGivenBack(error));
  }

  #notGivenBack(error: unknown): void {
    this.#webhooks.log.warn({ err: error }, 'claims on webhooks could not be given back; they run out by themselves');
  }

  #leave(endpointId: string): void {
    const requests = this.#busy.get(endpointId) ?? 1;
    if (requests > 1) this.#busy.set(endpointId, requests - 1);
    else this.#busy.delete(endpointId);
  }

  async #deliver(claim: Claim): Promise<void> {
    const report = await this.#sender.send(claim);
    this.#leave(claim.endpoint.id);
    this.#inFlight--;
    this.#ended++;
    this.#unstored++;
    this.#results.add(report);
    this.#fillSlots();
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
