import type { Clock } from '../../clock.ts';
import type { Database } from '../db.ts';
import type { Dialect } from '../../dialect.ts';
import { TransactionRefused } from './transaction-refused.ts';
import type { OptionRules } from '../../../options/read-options.ts';
import { filledText, objectWith, oneOf } from '../../../options/value-rule.ts';

/** A parameter of the statements that run on foreign transactions: nothing that two drivers bind differently. */
export type SqlParameter = string | number | null;

/**
 * An open transaction of another library, as `publish` and `startJob` need it. The kit's own handles are executors already; the adapters make one
 * from the transaction of another library.
 */
export interface SqlExecutor {
  readonly dialect: Dialect;
  /** The alias of the kit database that this transaction belongs to. */
  readonly using?: string;
  /** The kit's handle on the same database, whose settings (of webhooks, of jobs) and clock then apply. */
  readonly database?: Database;
  readonly clock?: Clock;
  /**
   * True: a transaction is open and stays open until the next statement has run. False: none is open, and the call is refused. Undefined: the
   * library cannot tell; the statement then checks it in the database.
   */
  readonly isTransaction?: boolean | undefined;
  /**
   * Runs one statement with `$1` placeholders (each used once or more) and returns its rows: at once where the library is
   * synchronous, so that nothing of the call is left for after the library's own transaction. `writes`: it writes although it begins with `select`.
   */
  query<R>(text: string, parameters: readonly SqlParameter[], options?: { readonly writes?: boolean }): Promise<R[]> | R[];
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

export const foreignTransactionRules: OptionRules<ForeignTransactionOptions> = {
  using: filledText,
  database: objectWith('a database: await openDatabase(url)', 'query', 'transaction'),
};
/** For the adapters that may be told the dialect. */
export const dialectTransactionRules = { ...foreignTransactionRules, dialect: oneOf('sqlite', 'postgres') };

// How a statement checks by itself that it runs in a transaction, for libraries that cannot say so at the moment of sending: a COMMIT or
// ROLLBACK may be under way on the connection, and the statement would then be committed alone.

const MARK_POSTGRES = `select set_config('kit.transaction', $1, true)`;

/**
 * The condition of a guarded statement. PostgreSQL: the transaction has written something before, or `markTransaction` has marked it; a mark ends
 * with its transaction. SQLite: likewise, the pragma is switched off by every COMMIT and ROLLBACK.
 */
export function transactionIsOpen(dialect: Dialect, mark = ''): string {
  if (dialect === 'sqlite') return '(select defer_foreign_keys from pragma_defer_foreign_keys) = 1';
  return `(txid_current_if_assigned() is not null or coalesce(current_setting('kit.transaction', true), '') = ${mark})`;
}

/** Marks the open transaction, so that guarded statements run in it. Outside a transaction it marks nothing. */
export function* markTransaction(dialect: Dialect, mark: string): SqlSteps<void> {
  if (dialect === 'postgres') {
    yield [MARK_POSTGRES, [mark]];
    return;
  }
  yield ['pragma defer_foreign_keys = on', []];
  // Outside a transaction the pragma is switched off when the first statement that reads has run.
  yield ['select count(*) as count from sqlite_master', []];
}

/** Takes the mark away again. False: the transaction has ended meanwhile, or none was open. */
export function* unmarkTransaction(dialect: Dialect): SqlSteps<boolean> {
  if (dialect === 'postgres') return true;
  // One word: plugins of the application may rename columns.
  const [row] = (yield ['select defer_foreign_keys as marked from pragma_defer_foreign_keys', []]) as { marked: number }[];
  yield ['pragma defer_foreign_keys = off', []];
  return Number(row?.marked) === 1;
}

export type SqlStatement = readonly [text: string, parameters: readonly SqlParameter[]];

/** Statements one after the other, written once for both kinds of library: each is yielded, and its rows come back. */
export type SqlSteps<T> = Generator<SqlStatement, T, unknown[]>;

/** Runs the steps; without a pause between two of them where the library is synchronous. A step after the end of the transaction is refused. */
export function runSteps<T>(tx: SqlExecutor, steps: SqlSteps<T>): T | Promise<T> {
  let step = steps.next();
  while (step.done !== true) {
    refuseEnded(tx);
    const rows = tx.query<unknown>(...step.value);
    if (!Array.isArray(rows)) return finishSteps(tx, steps, rows);
    step = steps.next(rows);
  }
  return step.value;
}

async function finishSteps<T>(tx: SqlExecutor, steps: SqlSteps<T>, first: Promise<unknown[]>): Promise<T> {
  let step = steps.next(await first);
  while (step.done !== true) {
    refuseEnded(tx);
    step = steps.next(await tx.query<unknown>(...step.value));
  }
  return step.value;
}

const ENDED = 'No transaction is open: none was begun, or it ended before this call. Await the call inside the transaction.';

export function refuseEnded(tx: Pick<SqlExecutor, 'isTransaction'>): void {
  if (tx.isTransaction === false) throw transactionEnded();
}

export function transactionEnded(cause?: unknown): TransactionRefused {
  return new TransactionRefused('no_transaction', ENDED, { cause });
}
