import type { Retention } from '../../../work/retention.ts';
import { WorkLoop } from '../../../work/work-loop.ts';
import { workerName } from '../../../work/worker-name.ts';
import { WORKER_NAME_LENGTH_MAX } from '../models.ts';
import { LEASE_MARGIN_MS } from '../options.ts';
import { destinationNameOf } from '../publishing/audience.ts';
import { WAKE_CHANNEL } from '../publishing/publish-store.ts';
import type { Webhooks } from '../webhooks.ts';
import type { Claim, ClaimLimits } from './claim-store.ts';
import { Claimer } from './claimer.ts';
import { EndpointPace } from './endpoint-pace.ts';
import { retentionOf } from './prune.ts';
import { takeFromBudget } from './rate-limit.ts';
import { releaseClaims } from './result-store.ts';
import { ResultWriter, type DeliverySummary } from './result-writer.ts';
import { Sender, type SendReport } from './sender.ts';

export interface WorkerOptions {
  /** Shown with each attempt. Default: host, process and a random part. */
  readonly name?: string;
  /** Instead of the module's settings. */
  readonly concurrency?: number;
  /** Concurrent requests to one endpoint. Default: the setting of `webhooks()`. */
  readonly concurrencyPerEndpoint?: number;
  /** How often the worker looks for due deliveries that no notification announced. Default: the setting of `webhooks()`. */
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

/** Claims in a row of which nothing may be sent. */
const REFUSED_CLAIMS_MAX = 20;
/** How often to look again at the deliveries of a destination that this process does not declare. */
const UNDECLARED_PAUSE_MS = 60_000;
/** How long deliveries wait whose owner could not be looked up: others are due behind them. */
const OWNER_UNKNOWN_MS = 10_000;
/** How often to look again at the deliveries of a suspended tenant. */
const SUSPENDED_PAUSE_MS = 30_000;

/** Sends due deliveries, at most so many to one endpoint at a time. */
export class DeliveryWorker {
  readonly #webhooks: Webhooks;
  readonly #claimer: Claimer;
  readonly #sender: Sender;
  readonly #results: ResultWriter;
  readonly #loop: WorkLoop<Claim, SendReport>;
  readonly #perEndpoint: number;
  readonly #pace: EndpointPace;
  readonly #retention: Retention | null;
  /** Endpoints at their rate limit, or whose owner could not be looked up, and until when. */
  readonly #paused = new Map<string, Date>();
  #stopped: Promise<void> | undefined;

  constructor(given: Webhooks, options: WorkerOptions = {}) {
    const settings = { ...given.settings, timeoutMs: options.timeoutMs ?? given.settings.timeoutMs };
    const webhooks = { ...given, settings };
    const concurrency = options.concurrency ?? settings.concurrency;
    this.#webhooks = webhooks;
    this.#perEndpoint = Math.min(options.concurrencyPerEndpoint ?? settings.concurrencyPerEndpoint, concurrency);
    this.#pace = new EndpointPace({ concurrency, perEndpoint: this.#perEndpoint });
    this.#retention = retentionOf(webhooks);
    this.#claimer = new Claimer(webhooks.database);
    this.#sender = new Sender(webhooks);
    this.#results = new ResultWriter(webhooks, (options.name ?? workerName()).slice(0, WORKER_NAME_LENGTH_MAX), (reports) =>
      this.#loop.stored(reports.map(({ claim }) => claim)),
    );
    this.#loop = new WorkLoop(
      {
        claim: (free) => this.#claimAdmitted(free),
        run: (claim, leaveSlot) => {
          this.#pace.begin(claim, leaveSlot);
          return this.#sender.send(claim);
        },
        ended: (claim, report) => {
          this.#pace.end(claim);
          this.#results.add(report);
        },
        release: (claims) => this.#giveBack(claims),
        claimFailed: (error, retryInMs) => webhooks.log.warn({ err: error, retry_in_ms: retryInMs }, 'could not claim due webhooks'),
      },
      {
        concurrency,
        pollIntervalMs: options.pollIntervalMs ?? settings.pollIntervalMs,
        nextDueMs: () => Math.min(Infinity, ...[...this.#paused.values()].map((until) => until.getTime() - webhooks.clock.now().getTime())),
      },
    );
  }

  get summary(): DeliverySummary {
    return this.#results.summary;
  }

  /** Sends what is due now, and what becomes due by it, and returns. Rejects when the database cannot be asked. */
  async runOnce({ limit, eventId }: RunOptions = {}): Promise<DeliverySummary> {
    await this.#loop.runOnce({
      ...(limit === undefined ? {} : { limit }),
      ...(eventId === undefined
        ? {}
        : { claim: async (free) => this.#admitted(await this.#claimer.claimEvent(eventId, this.#limits(free))) }),
    });
    await this.#results.flush();
    return this.summary;
  }

  /** Works until `stop`: woken by new work, else looking by itself. */
  start(): Promise<void> {
    this.#retention?.start();
    return this.#loop.start(this.#webhooks.database, WAKE_CHANNEL);
  }

  /** Claims nothing more, waits for what is under way, at most for one request timeout, and gives the rest back. */
  stop(): Promise<void> {
    return (this.#stopped ??= this.#stop());
  }

  async #stop(): Promise<void> {
    await this.#retention?.stop();
    await this.#loop.drain(this.#webhooks.settings.timeoutMs + 1000);
    this.#results.abandon();
    await this.#results.flush();
    await this.#release(this.#loop.held);
    await this.#sender.close();
  }

  /** What is refused is not found again: others may be due behind it. */
  async #claimAdmitted(free: number): Promise<readonly Claim[]> {
    for (let tries = 1; ; tries++) {
      const claims = await this.#claim(free);
      const admitted = await this.#admitted(claims);
      if (admitted.length > 0 || claims.length === 0 || tries === REFUSED_CLAIMS_MAX) return admitted;
    }
  }

  async #claim(free: number): Promise<Claim[]> {
    const { metrics, database } = this.#webhooks;
    const start = performance.now();
    const claims = await this.#claimer.claim(this.#limits(free));
    metrics?.claimSeconds.observe({ database: database.using }, (performance.now() - start) / 1000);
    return claims;
  }

  #limits(free: number): ClaimLimits {
    const { clock, settings } = this.#webhooks;
    const now = clock.now();
    const until = new Date(now.getTime() + settings.timeoutMs + LEASE_MARGIN_MS);
    for (const [id, end] of this.#paused) if (end <= now) this.#paused.delete(id);
    return { now, until, free, perEndpoint: this.#perEndpoint, busy: this.#pace.load(this.#paused.keys()) };
  }

  /** The claims that may be sent now: not more than an endpoint's pace and rate limit allow. The others are given back. */
  async #admitted(found: readonly Claim[]): Promise<readonly Claim[]> {
    const claims = await this.#resumed(await this.#withOwners(await this.#declared(found)));
    let admitted = claims.filter(({ endpoint }) => this.#pace.admit(endpoint));
    if (admitted.some(({ endpoint }) => endpoint.rate_limit !== null)) admitted = await this.#withinRates(admitted);
    if (admitted.length < claims.length) {
      const kept = new Set(admitted);
      await this.#release(claims.filter((claim) => !kept.has(claim)));
    }
    return admitted;
  }

  /** Destinations that another process declares, or none any more: their deliveries wait, and lose no attempt. */
  async #declared(claims: readonly Claim[]): Promise<readonly Claim[]> {
    const { settings } = this.#webhooks;
    const names = new Set(settings.destinations.map(({ name }) => name));
    const isDeclared = ({ endpoint }: Claim): boolean => {
      const name = destinationNameOf(endpoint);
      return name === null || names.has(name);
    };
    const others = claims.filter((claim) => !isDeclared(claim));
    if (others.length === 0) return claims;
    await this.#wait(others, UNDECLARED_PAUSE_MS);
    return claims.filter(isDeclared);
  }

  /**
   * The same claims, marked where the owner of the endpoint may not act any longer. Where that cannot be found out, claims are given back and their
   * endpoints wait: nothing is sent to them, and the others do not wait for them.
   */
  async #withOwners(claims: readonly Claim[]): Promise<readonly Claim[]> {
    if (claims.length === 0) return claims;
    const { database, findHindrances, log } = this.#webhooks;
    const found = await findHindrances(
      database,
      claims.map(({ endpoint }) => endpoint),
    );
    const known = claims.flatMap((claim, index) => {
      const each = found[index];
      if (each?.status !== 'fulfilled') return [];
      return [each.value === null ? claim : { ...claim, ownerHindrance: each.value }];
    });
    const failure = found.find((each) => each.status === 'rejected');
    if (failure === undefined) return known;
    const failed = claims.filter((_, index) => found[index]?.status !== 'fulfilled');
    log.warn(
      { err: failure.reason, deliveries: failed.length },
      'could not look up the owners of webhook endpoints; their deliveries wait',
    );
    await this.#wait(failed, OWNER_UNKNOWN_MS);
    if (known.length === 0) throw failure.reason;
    return known;
  }

  /** Deliveries of suspended tenants wait, and lose no attempt. */
  async #resumed(claims: readonly Claim[]): Promise<readonly Claim[]> {
    const isSuspended = ({ ownerHindrance }: Claim): boolean => ownerHindrance === 'suspended';
    if (!claims.some(isSuspended)) return claims;
    await this.#wait(claims.filter(isSuspended), SUSPENDED_PAUSE_MS);
    return claims.filter((claim) => !isSuspended(claim));
  }

  /** Gives the claims back and leaves their endpoints alone for a while. */
  async #wait(claims: readonly Claim[], ms: number): Promise<void> {
    const until = new Date(this.#webhooks.clock.now().getTime() + ms);
    for (const { endpoint } of claims) this.#paused.set(endpoint.id, until);
    await this.#release(claims);
  }

  async #withinRates(claims: readonly Claim[]): Promise<Claim[]> {
    const { database, clock } = this.#webhooks;
    const byEndpoint = Map.groupBy(claims, ({ endpoint }) => endpoint.id);
    const within: Claim[] = [];
    for (const [id, ofEndpoint] of byEndpoint) {
      const rate = ofEndpoint[0]?.endpoint.rate_limit ?? null;
      if (rate === null) {
        within.push(...ofEndpoint);
        continue;
      }
      const { count, nextAt } = await takeFromBudget(database, id, rate, ofEndpoint.length, clock.now());
      within.push(...ofEndpoint.slice(0, count));
      for (const { endpoint } of ofEndpoint.slice(count)) this.#pace.leave(endpoint);
      if (count < ofEndpoint.length) this.#paused.set(id, nextAt);
    }
    return within;
  }

  async #giveBack(claims: readonly Claim[]): Promise<void> {
    for (const { endpoint } of claims) this.#pace.leave(endpoint);
    await this.#release(claims);
  }

  async #release(claims: readonly Claim[]): Promise<void> {
    try {
      await releaseClaims(this.#webhooks.database, claims);
    } catch (error) {
      this.#webhooks.log.warn({ err: error }, 'could not release webhook claims; they will expire');
    }
  }
}
