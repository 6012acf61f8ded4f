// From their modules, not the globals, which tests replace to move time by hand.
import { performance } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import { coreErrors } from '../../../errors/core-errors.ts';
import type { KitError } from '../../../errors/kit-error.ts';
import { clientKey } from '../../../throttle/client-key.ts';
import { admit, gcra, type Gcra } from '../../../throttle/gcra.ts';
import type { Rate } from '../../../throttle/rate.ts';
import { BoundedMap } from '../../../db/values/bounded-map.ts';

/** Addresses remembered at a time; an attacker with more than this has better things to do than guess 256 bits. */
const ADDRESSES_MAX = 10_000;

interface Budget {
  /** Undefined: no failure counts any more. */
  tat: number | undefined;
  /** Attempts whose outcome is not known yet. Each may become a failure, so each holds a place of the budget. */
  pending: number;
  readonly waiting: (() => void)[];
  /** When the next key of an exhausted address may be looked up, in ms of `performance.now()`. */
  nextTurnMs: number;
}

/** A place of the budget, held until the outcome of one attempt is known. */
export interface Attempt {
  succeeded(): void;
  /** What the caller gets instead of "not a key": the 429 of an address that failed too often before. */
  failed(): Error | undefined;
}

/** Where an address has used up its failures, one key in this time is still looked up: 5 statements a second, however many are sent. */
const TURN_MS = 200;
/** Keys that wait for their turn are at most this late; the rest is refused immediately. */
const TURN_WAIT_MS_MAX = 1000;

/**
 * Counts bad keys per client address, in this process and without the database: the point is to keep guessers away from it. Only failures
 * count. Check and count are one step: an attempt takes a place first and gives it back when the key was good, so parallel guesses pass no
 * more than the rate. When every place is taken by attempts that are still open, the next one waits for an outcome instead of being
 * refused: an address behind which many good clients work is not slowed down by more than that. Where the failures are used up, bad keys are
 * refused without a look at the database, but for one in {@link TURN_MS}: a good key of the same address gets through.
 */
export class FailedAttempts {
  readonly #rate: Rate;
  /** An attempt that is open keeps its own reference, and ends as usual. */
  readonly #budgets = new BoundedMap<string, Budget>(ADDRESSES_MAX, 'forget the oldest');

  constructor(rate: Rate) {
    this.#rate = rate;
  }

  /** Throws the 429 for an address that failed too often just now. A promise only when it has to wait. */
  begin(address: string, now: Date): Attempt | Promise<Attempt> {
    const key = clientKey(address);
    const cell = gcra(this.#rate, now);
    const budget = this.#budgetOf(key);
    if (admit(budget.tat, cell) === null) throw refusal(budget.tat ?? 0, cell);
    if (!hasPlace(budget, cell)) return this.#waitFor(budget, address, now);
    budget.pending += 1;
    return { succeeded: () => this.#end(key, budget), failed: () => this.#end(key, budget, now) };
  }

  /** Resolves when a key of an address that failed too often may be looked up; null when too many wait already. */
  turn(address: string): Promise<void> | null {
    const budget = this.#budgetOf(clientKey(address));
    const nowMs = performance.now();
    const atMs = Math.max(nowMs, budget.nextTurnMs);
    if (atMs - nowMs > TURN_WAIT_MS_MAX) return null;
    budget.nextTurnMs = atMs + TURN_MS;
    return delay(atMs - nowMs);
  }

  /** An attempt that is not counted, because its address is refused already: a bad key gets that refusal. */
  probation(refusal: unknown): Attempt {
    return { succeeded: () => undefined, failed: () => refusal as Error };
  }

  async #waitFor(budget: Budget, address: string, now: Date): Promise<Attempt> {
    await new Promise<void>((resolve) => budget.waiting.push(resolve));
    return this.begin(address, now);
  }

  #end(key: string, budget: Budget, failedAt?: Date): undefined {
    budget.pending -= 1;
    if (failedAt !== undefined) {
      const cell = gcra(this.#rate, failedAt);
      budget.tat = admit(budget.tat, cell) ?? budget.tat;
    }
    for (const wake of budget.waiting.splice(0)) wake();
    if (budget.pending === 0 && budget.tat === undefined && budget.waiting.length === 0) this.#budgets.delete(key);
    return undefined;
  }

  #budgetOf(key: string): Budget {
    const known = this.#budgets.get(key);
    if (known !== undefined) return known;
    const budget: Budget = { tat: undefined, pending: 0, waiting: [], nextTurnMs: 0 };
    this.#budgets.set(key, budget);
    return budget;
  }
}

/** Whether all open attempts and one more may fail. */
function hasPlace({ tat, pending }: Budget, cell: Gcra): boolean {
  if (pending === 0) return true;
  const { nowUs, incrementUs, windowUs, horizonUs } = cell;
  const base = tat === undefined || tat <= nowUs || tat > horizonUs ? nowUs : tat;
  return base + (pending + 1) * incrementUs - nowUs <= windowUs;
}

function refusal(tat: number, cell: Gcra): KitError {
  const seconds = Math.max(1, Math.ceil((tat + cell.incrementUs - cell.windowUs - cell.nowUs) / 1_000_000));
  return coreErrors.throttled({
    detail: `Too many invalid API keys from this address. Try again in ${seconds} ${seconds === 1 ? 'second' : 'seconds'}.`,
    extensions: { policy: 'api_key_failures' },
    headers: { 'retry-after': String(seconds) },
  });
}
