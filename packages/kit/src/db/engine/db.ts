import type { Clock } from '../clock.ts';
import type { DatabaseObserver, PoolStatus } from './database-observer.ts';
import type { Dialect } from '../dialect.ts';
import type { ListenOptions, NotificationListener, QueryOptions, StreamOptions, TransactionOptions } from './engine.ts';

export interface ExecuteResult<R> {
  readonly rows: R[];
  /** Rows returned or, for statements that return none, changed. */
  readonly count: number;
}

/** A database, or a transaction on it: functions that take a `Db` run in whatever their caller has open. */
export interface Db {
  readonly dialect: Dialect;
  /** The alias of the database, `default` unless the application named it. */
  readonly using: string;
  readonly clock: Clock;
  readonly isTransaction: boolean;
  /** The database this handle belongs to; itself outside a transaction. Modules keep what they know per database under it. */
  readonly database: Database;

  /** Runs `work` in one transaction; inside a transaction, in a savepoint. Rejection rolls back and is passed on. */
  transaction<R>(work: (tx: Db) => Promise<R>, options?: TransactionOptions): Promise<R>;

  /**
   * Runs `callback` after the outermost transaction has committed; never, if it or the savepoint it was registered in
   * rolls back. Outside a transaction it runs at once. A callback that fails is logged; the others still run.
   */
  afterCommit(callback: () => unknown): void;

  /** Visible SQL with `$1` placeholders on both databases. */
  query<R>(text: string, parameters?: readonly unknown[], options?: QueryOptions): Promise<R[]>;
  /** Like `query`, with the number of changed rows. */
  execute<R>(text: string, parameters?: readonly unknown[], options?: QueryOptions): Promise<ExecuteResult<R>>;
  /** The rows of one query, chunk by chunk, in flat memory. */
  stream<R>(text: string, parameters?: readonly unknown[], chunkSize?: number, options?: StreamOptions): AsyncIterableIterator<R[]>;
}

/** The handle outside transactions, which also owns the connections. */
export interface Database extends Db {
  /** The address it was opened with, the password masked. */
  readonly url: string;
  /**
   * Calls `listener` for every notification on `channel`: from every process on PostgreSQL, from this process on SQLite.
   * Resolves, once listening, to the function that stops it.
   */
  listen(channel: string, listener: NotificationListener, options?: ListenOptions): Promise<() => Promise<void>>;
  /** Sent when the transaction of `db` commits; at once outside one. At most 7,999 bytes. */
  notify(db: Db, channel: string, payload?: string): Promise<void>;
  readonly pool: PoolStatus;
  /** Tells `observer` about every statement and retry until the returned function is called. */
  observe(observer: DatabaseObserver): () => void;
  /** True from the first call of `close`. */
  readonly closed: boolean;
  /** Waits for the transaction under way, then closes every connection. */
  close(): Promise<void>;
}
