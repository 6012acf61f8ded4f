import type { Database } from '../db/engine/db.ts';
import { WakeUp } from './wake-up.ts';

/** What a loop works on: rows of a table that are claimed, run and finished. */
export interface Work<Claim extends object, Result> {
  /** Claims at most this many rows that are due. */
  claim(max: number): Promise<readonly Claim[]>;
  /** A claim got its place among those that are held; called before `run`. */
  taken?(claim: Claim): void;
  /**
   * Never rejects: whatever goes wrong is a result. `leaveSlot` frees the slot for others while the run goes on; the caller bounds by other
   * means how many such runs there are.
   */
  run(claim: Claim, leaveSlot: () => void): Promise<Result>;
  /** The slot is free again. The result must be stored, and `stored` told about it. */
  ended(claim: Claim, result: Result): void;
  /** Makes claims that were not run due again at once. */
  release(claims: readonly Claim[]): Promise<void>;
  /** The database could not be asked for work; it is asked again after so long. */
  claimFailed(error: unknown, retryInMs: number): void;
}

export interface WorkLoopOptions {
  /** Claims run at a time. */
  readonly concurrency: number;
  /** How often to look for due work when nothing wakes the loop. */
  readonly pollIntervalMs: number;
  /** An earlier look than the poll interval says, where something is known to become due: milliseconds from now. */
  readonly nextDueMs?: () => number;
  /** For runs that may be over at once: how many rounds of the slots a claim may ask for ahead when they are. Default: none. */
  readonly roundsAhead?: number;
}

export interface RunOnceOptions<Claim> {
  /** Ends after this many claims. */
  readonly limit?: number;
  /** Another source of claims, which is asked for no more than there are free slots. */
  readonly claim?: (max: number) => Promise<readonly Claim[]>;
}

/** Results that may wait to be stored, in multiples of the slots: while one batch is written, the next comes together. */
const UNSTORED_ROUNDS_MAX = 4;
/** And this many for each round that is claimed ahead, so that the next claim need not wait for the disk. */
const UNSTORED_ROUNDS_AHEAD = 2;
/** A claim whose slot did not become free after all is given back after this long. */
const PATIENCE_MS = 1000;
/** While most slots are busy, free ones are gathered this long, so that one claim fills several. */
const GATHER_MS = 5;
const BACKOFF_MS_MIN = 100;
const BACKOFF_MS_MAX = 10_000;

/**
 * Claims due work and runs it in a fixed number of slots. Claims only what it can run at once, or will be able to by the time it has the
 * claim, so that a row it holds is under way and everything else is free for other workers.
 */
export class WorkLoop<Claim extends object, Result> {
  readonly #work: Work<Claim, Result>;
  readonly #options: WorkLoopOptions;
  /** By identity: a row that is due again at once may be claimed again before the end of the attempt before it is reported. */
  readonly #held = new Set<Claim>();
  readonly #wakeUp = new WakeUp();
  /** Claimed for slots that were about to become free. */
  readonly #ready: Claim[] = [];
  /** Runs that will be over by the time a claim is made, as the last round showed. */
  #ahead = 0;
  #ended = 0;
  /** Runs since every slot was last free, when the first began, and how long all of them took. */
  #round = { runs: 0, beganAt: 0, tookMs: 0 };
  /** Runs in slots. */
  #inFlight = 0;
  /** Runs under way, with those that have left their slot. */
  #running = 0;
  /** Runs that have ended and whose results are not stored yet. */
  #unstored = 0;
  #stopping = false;
  #loop: Promise<void> | undefined;
  #unlisten: (() => Promise<void>) | undefined;

  constructor(work: Work<Claim, Result>, options: WorkLoopOptions) {
    this.#work = work;
    this.#options = options;
  }

  /** Everything claimed whose result is not stored yet. */
  get held(): readonly Claim[] {
    return [...this.#held];
  }

  get isStopping(): boolean {
    return this.#stopping;
  }

  /** Runs what is due now, and what becomes due by it, and returns. Rejects when the database cannot be asked. */
  async runOnce({ limit = Infinity, claim }: RunOnceOptions<Claim> = {}): Promise<void> {
    let left = limit;
    while (!this.#stopping) {
      await this.#gather();
      // Asked before claiming: a run that ends meanwhile may have made room, or made another row due.
      const wasIdle = this.#held.size === 0;
      const claims = await this.#claim(left, claim);
      left -= claims.length;
      this.#take(claims);
      if (claims.length > 0) continue;
      if (wasIdle) return;
      await this.#wakeUp.next(Infinity);
    }
  }

  /** Works until `drain`: woken by notifications on the channel, else looking by itself. */
  async start(database: Pick<Database, 'listen'>, channel: string, isForUs: (payload: string) => boolean = () => true): Promise<void> {
    const wake = (): void => this.#wakeUp.wake();
    const onNotification = (payload: string): void => void (isForUs(payload) && wake());
    this.#unlisten = await database.listen(channel, onNotification, { onReconnect: wake });
    this.#loop ??= this.#run();
  }

  wake(): void {
    this.#wakeUp.wake();
  }

  /** Claims nothing more and waits for what is under way, at most for so long. What is still `held` then is the caller's to give back. */
  async drain(deadlineMs: number): Promise<void> {
    this.#stopping = true;
    this.#wakeUp.wake();
    await this.#unlisten?.().catch(() => undefined);
    await this.#loop;
    // On the clock that only goes forward: a stop must not last longer because the time of day was corrected.
    const deadline = performance.now() + deadlineMs;
    while (this.#running > 0 && performance.now() < deadline) await this.#wakeUp.next(deadline - performance.now());
  }

  /** The results of these claims, the objects that were run, are stored: the claims are released. */
  stored(claims: readonly Claim[]): void {
    for (const claim of claims) this.#held.delete(claim);
    this.#unstored -= claims.length;
    this.#wakeUp.wake();
  }

  async #run(): Promise<void> {
    let backoffMs = BACKOFF_MS_MIN;
    while (!this.#stopping) {
      await this.#gather();
      if (this.#stopping) return;
      try {
        const claims = await this.#claim(Infinity);
        backoffMs = BACKOFF_MS_MIN;
        this.#take(claims);
        if (claims.length === 0) await this.#wakeUp.next(this.#pauseMs());
      } catch (error) {
        this.#work.claimFailed(error, backoffMs);
        this.#wakeUp.forget();
        await this.#wakeUp.next(backoffMs);
        backoffMs = Math.min(2 * backoffMs, BACKOFF_MS_MAX);
      }
    }
  }

  #pauseMs(): number {
    const { pollIntervalMs, nextDueMs } = this.#options;
    return nextDueMs === undefined ? pollIntervalMs : Math.max(1, Math.min(pollIntervalMs, nextDueMs()));
  }

  /** Waits for a free slot and, while most of them are busy, a little longer for others to become free with it. */
  async #gather(): Promise<void> {
    // Half would leave the process idle for 15 % of the time, a third for 12 %; with fewer, claims cost more than they save.
    const enough = Math.ceil(this.#options.concurrency / 3);
    await this.#wakeUp.when(() => this.#stopping || this.#ready.length === 0, PATIENCE_MS);
    if (!this.#stopping) await this.#giveBack(this.#ready.splice(0));
    await this.#wakeUp.when(() => this.#stopping || this.#free() > 0, Infinity);
    await this.#wakeUp.when(() => this.#stopping || this.#free() >= enough, GATHER_MS);
    // The claim that follows sees what there was to tell.
    this.#wakeUp.forget();
  }

  /** None while rounds of results are waiting: a worker that cannot write must not go on claiming. */
  #free(): number {
    const { concurrency, roundsAhead = 0 } = this.#options;
    return this.#unstored >= (UNSTORED_ROUNDS_MAX + UNSTORED_ROUNDS_AHEAD * roundsAhead) * concurrency
      ? 0
      : concurrency - this.#inFlight - this.#ready.length;
  }

  /** As many as there are free slots, and as will be when the answer is here: the slots would be empty for as long as a claim takes. */
  async #claim(max: number, exactly?: RunOnceOptions<Claim>['claim']): Promise<readonly Claim[]> {
    const free = this.#free();
    if (free <= 0 || max <= 0) return [];
    if (exactly !== undefined) return exactly(Math.min(free, max));
    const ended = this.#ended;
    const beganAt = performance.now();
    // With a limit, what is claimed is what is run.
    const claims = await this.#work.claim(max === Infinity ? free + this.#ahead : Math.min(free, max));
    this.#ahead = Math.max(this.#ended - ended, this.#inFlight === 0 ? this.#aheadOfIdle(performance.now() - beganAt) : 0);
    return claims;
  }

  /** All slots were empty while a claim was made: as many more as runs of the last round fit into that time. */
  #aheadOfIdle(claimMs: number): number {
    const { runs, tookMs } = this.#round;
    const { concurrency, roundsAhead = 0 } = this.#options;
    return Math.min(roundsAhead * concurrency, Math.floor((runs * claimMs) / Math.max(tookMs, 1)));
  }

  #take(claims: readonly Claim[]): void {
    for (const claim of claims) {
      this.#work.taken?.(claim);
      this.#held.add(claim);
      this.#ready.push(claim);
    }
    this.#fillSlots();
  }

  #fillSlots(): void {
    while (this.#inFlight < this.#options.concurrency && !this.#stopping) {
      const claim = this.#ready.shift();
      if (claim === undefined) return;
      if (this.#inFlight === 0) this.#round = { runs: 0, beganAt: performance.now(), tookMs: 0 };
      this.#inFlight++;
      this.#running++;
      void this.#runOne(claim);
    }
  }

  async #runOne(claim: Claim): Promise<void> {
    const run = { hasSlot: true };
    const result = await this.#work.run(claim, () => {
      this.#leaveSlot(run);
      this.#fillSlots();
      this.#wakeUp.wake();
    });
    this.#leaveSlot(run);
    this.#running--;
    this.#unstored++;
    this.#work.ended(claim, result);
    this.#fillSlots();
    this.#wakeUp.wake();
  }

  #leaveSlot(run: { hasSlot: boolean }): void {
    if (!run.hasSlot) return;
    run.hasSlot = false;
    this.#inFlight--;
    this.#ended++;
    this.#round.runs++;
    if (this.#inFlight === 0) this.#round.tookMs = performance.now() - this.#round.beganAt;
  }

  async #giveBack(claims: readonly Claim[]): Promise<void> {
    for (const claim of claims) this.#held.delete(claim);
    await this.#work.release(claims);
  }
}
