import type { Clock } from '../clock.ts';
import type { Database } from '../db.ts';
import type { Dialect } from '../dialect.ts';

/** A parameter of the statements that run on foreign transactions: nothing that two drivers bind differently. */
export type SqlParameter = string | number | null;

/**
 * Somebody's open transaction, as `publish` and `startJob` need it. The kit's own handles are executors already; the adapters make one
 * from the transaction of another library.
 */
export interface SqlExecutor {
  readonly dialect: Dialect;
  /** The alias of the kit database that this transaction belongs to. */
  readonly using?: string;
  /** The kit's handle on the same database, whose settings (of webhooks, of jobs) and clock then apply. */
  readonly database?: Database;
  readonly clock?: Clock;
  /** False when there is no open transaction; refused then. Unknown counts as open. */
  readonly isTransaction?: boolean;
  /**
   * Runs one statement with `$1` placeholders (each used once or more) and returns its rows: at once where the library is
   * synchronous, so that nothing of the call is left for after the library's own transaction.
   */
  query<R>(text: string, parameters: readonly SqlParameter[]): Promise<R[]> | R[];
  /** Runs the callback after the outermost transaction has committed. Absent where the library offers no such hook. */
  afterCommit?(callback: () => unknown): void;
}

/** The transaction of a synchronous library, for `publishSync` and `startJobSync`. */
export interface SyncSqlExecutor extends SqlExecutor {
  readonly sync: true;
  query<R>(text: string, parameters: readonly SqlParameter[]): R[];
}

/** What every adapter may be told about the database that the transaction belongs to. */
export interface ForeignTransactionOptions {
  /** The alias of the kit database. */
  readonly using?: string;
  /** The kit's handle on the same database, whose settings (of webhooks, of jobs) and clock then apply. */
  readonly database?: Database;
}

export type SqlStatement = readonly [text: string, parameters: readonly SqlParameter[]];

/** Statements one after the other, written once for both kinds of library: each is yielded, and its rows come back. */
export type SqlSteps<T> = Generator<SqlStatement, T, unknown[]>;

/** Runs the steps; without a pause between two of them where the library is synchronous. */
export function runSteps<T>(tx: SqlExecutor, steps: SqlSteps<T>): T | Promise<T> {
  let step = steps.next();
  while (step.done !== true) {
    const rows = tx.query<unknown>(...step.value);
    if (!Array.isArray(rows)) return finishSteps(tx, steps, rows);
    step = steps.next(rows);
  }
  return step.value;
}

async function finishSteps<T>(tx: SqlExecutor, steps: SqlSteps<T>, first: Promise<unknown[]>): Promise<T> {
  let step = steps.next(await first);
  while (step.done !== true) step = steps.next(await tx.query<unknown>(...step.value));
  return step.value;
}
