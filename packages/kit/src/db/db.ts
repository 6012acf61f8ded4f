import type { Kysely } from 'kysely';
import type { Clock } from './clock.ts';
import type { DatabaseObserver, PoolStatus } from './database-observer.ts';
import type { Dialect } from './dialect.ts';
import type { ListenOptions, NotificationListener, QueryOptions, StreamOptions, TransactionOptions } from './engine.ts';

declare const none: unique symbol;

/** The table map of a handle before `tables<…>()`: none, so that a builder takes only declared names. */
export interface NoTables {
  readonly [none]: never;
}

/** Tables without types, for code that works on any: every name is allowed. */
// oxlint-disable-next-line typescript/no-explicit-any -- `any` is Kysely's own way to say "unchecked"
export type AnyTables = any;

export interface ExecuteResult<R> {
  readonly rows: R[];
  /** Rows returned or, for statements that return none, changed. */
  readonly count: number;
}

interface Builders<T> extends Pick<
  Kysely<T>,
  'selectFrom' | 'selectNoFrom' | 'insertInto' | 'updateTable' | 'deleteFrom' | 'with' | 'withRecursive' | 'fn' | 'case' | 'dynamic'
> {
  readonly kysely: Kysely<T>;
}

/** Kysely's builders, on handles whose tables are known. */
type BuildersOf<T> = 0 extends 1 & T ? Builders<AnyTables> : [T] extends [NoTables] ? unknown : Builders<T>;

/**
 * A database, or a transaction on it: functions that take a `Db` run in whatever their caller has open. Kysely's builders are on
 * `db.tables<Tables<{ orders: typeof orders }>>()`.
 */
export type Db<T = NoTables> = BaseDb<T> & BuildersOf<T>;

interface BaseDb<T> {
  readonly dialect: Dialect;
  /** The alias of the database, `default` unless the application named it. */
  readonly using: string;
  readonly clock: Clock;
  readonly isTransaction: boolean;
  /** The database this handle belongs to; itself outside a transaction. Modules keep what they know per database under it. */
  readonly database: Database;

  /** Runs `work` in one transaction; inside a transaction, in a savepoint. Rejection rolls back and is passed on. */
  transaction<R>(work: (tx: Db<T>) => Promise<R>, options?: TransactionOptions): Promise<R>;

  /**
   * Runs `callback` after the outermost transaction has committed; never, if it or the savepoint it was registered in
   * rolls back. Outside a transaction it runs at once. A callback that fails is logged; the others still run.
   */
  afterCommit(callback: () => unknown): void;

  /** The same handle with Kysely's builders for these tables. Types only. */
  tables<U>(): Db<U>;

  /** Visible SQL with `$1` placeholders on both databases. */
  query<R>(text: string, parameters?: readonly unknown[], options?: QueryOptions): Promise<R[]>;
  /** Like `query`, with the number of changed rows. */
  execute<R>(text: string, parameters?: readonly unknown[], options?: QueryOptions): Promise<ExecuteResult<R>>;
  /** The rows of one query, chunk by chunk, in flat memory. */
  stream<R>(text: string, parameters?: readonly unknown[], chunkSize?: number, options?: StreamOptions): AsyncIterableIterator<R[]>;
}

export type Database<T = NoTables> = BaseDatabase<T> & BuildersOf<T>;

interface BaseDatabase<T> extends BaseDb<T> {
  /** The address it was opened with, the password masked. */
  readonly url: string;
  tables<U>(): Database<U>;
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
  /** Waits for the transaction under way, then closes every connection. */
  close(): Promise<void>;
}
