import type { Rate } from './rate.ts';

/** What a storage says about one request against one budget. */
export interface ThrottleDecision {
  readonly allowed: boolean;
  /** Requests the budget holds when untouched. */
  readonly limit: number;
  /** Requests that would be admitted right now, after this one. */
  readonly remaining: number;
  /** Until the budget is whole again. */
  readonly resetMs: number;
  /** Until one more request becomes available than `remaining` says. */
  readonly nextMs: number;
  /** Until a refused request would be admitted; 0 when it was. */
  readonly retryAfterMs: number;
  /** The storage did not answer and the request passed unmeasured; no header may state a budget. */
  readonly unmeasured?: true;
}

/** The part of a database handle that storages use. */
export interface ThrottleDb {
  /** On PostgreSQL, `postgres`: the clean-up of old budgets leaves out rows that another transaction has locked. */
  readonly dialect?: string;
  /** Runs one statement and returns its rows. */
  query<R>(text: string, parameters?: readonly unknown[]): Promise<R[]>;
}

/** What a storage may need of the application it serves. */
export interface ThrottleStorageContext {
  readonly db: ThrottleDb;
  readonly log: ThrottleLog;
}

/** The part of a pino logger that storages use. */
export interface ThrottleLog {
  error(details: object, message: string): void;
  warn(details: object, message: string): void;
}

/**
 * Where budgets live. `take` is atomic: of N parallel calls against a budget of L exactly L are admitted, whichever
 * process they come from. A refused call changes nothing.
 */
export interface ThrottleStorage {
  /** True where budgets are those of one process: N processes admit N times the rate. */
  readonly isLocal?: boolean;
  /** Takes `cost` (default: 1) from the budget of the key, or says how long to wait. */
  take(key: string, rate: Rate, now: Date, cost?: number): Promise<ThrottleDecision>;
  /** Returns what an admitted `take` used, because another throttle refused the same request. */
  giveBack(key: string, rate: Rate, now: Date, cost?: number): Promise<void>;
  /** Called once by the app, before the first request. */
  open?(context: ThrottleStorageContext): void;
  /** Called once, when the app stops. */
  close?(): Promise<void>;
}
