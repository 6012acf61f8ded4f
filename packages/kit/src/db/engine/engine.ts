import type { PoolStatus } from './database-observer.ts';
import type { Dialect } from '../dialect.ts';
import type { LongStatement } from './long-statement.ts';
import type { ServerFacts } from './postgres/server-facts.ts';

/** What one statement gave back. `count` is the number of rows returned or changed. */
export interface StatementResult {
  readonly rows: unknown[];
  readonly count: number;
}

export interface TransactionOptions {
  /** PostgreSQL isolation level. SQLite transactions are always serializable. */
  readonly isolation?: 'read committed' | 'repeatable read' | 'serializable';
  /** A read-only transaction sees one snapshot and never waits for a writer. */
  readonly readOnly?: boolean;
  /** How often the work is run again after a serialization failure or a deadlock. The work must be repeatable. */
  readonly retries?: number;
}

/** What only migrations may ask for. */
export interface EngineTransactionOptions extends TransactionOptions {
  /** SQLite: foreign keys are not enforced, so that a table can be rebuilt without deleting its children's rows. */
  readonly withoutForeignKeys?: boolean;
  /** SQLite: how long to wait for the writer, instead of the database's own limit. */
  readonly waitMsMax?: number;
}

/** How one statement is sent. */
export interface QueryOptions {
  /**
   * PostgreSQL, outside a transaction: the statement shares a connection with the others of this kind that are under way, instead of
   * waiting for one of its own. For short reads that wait for no lock: those behind it wait for its answer. Elsewhere it changes nothing.
   */
  readonly pipelined?: boolean;
  /**
   * PostgreSQL: planned for its values each time, as a statement without a name is. For filters that may be rare or common: after five
   * times a named statement may be planned once for any value. Elsewhere it changes nothing.
   */
  readonly replanned?: boolean;
  /**
   * `wire`: columns come as their JSON form has them (timestamps and bigints as text, bytes as base64), for rows that go straight into a
   * response: no Date is made only to be written as text again.
   */
  readonly as?: 'wire';
  /** The statement writes although it begins with `select`: it calls a function. A transaction then treats it as a write. */
  readonly writes?: boolean;
  /**
   * The statement may read many rows. Says what it reads, for the log, never values: `orders by search`. Inside a request it then has the
   * deadline of the request, and, outside a transaction, ends when the client goes away and counts for its caller; elsewhere it changes nothing.
   */
  readonly mayBeLong?: string;
  /** What engines receive for such a statement; made of `mayBeLong` and the running request unless it is set. */
  readonly long?: LongStatement | undefined;
}

/** How a query is streamed. */
export interface StreamOptions extends Pick<QueryOptions, 'as' | 'mayBeLong' | 'long'> {
  /**
   * How long to wait when too many streamed queries are open; the `waitMsMax` of the database by default. Streams of one process use half of
   * the connections at most.
   */
  readonly waitMsMax?: number;
}

/** Runs one statement. Texts carry the dialect's own placeholders: `?` on SQLite, `$1` on PostgreSQL. */
export interface StatementRunner {
  /**
   * The result at once, where the engine can give it without waiting (a read on SQLite), else undefined: a promise per
   * layer costs more than the lookup itself.
   */
  runNow?(text: string, parameters: readonly unknown[], options?: QueryOptions): StatementResult | undefined;
  run(text: string, parameters: readonly unknown[], options?: QueryOptions): Promise<StatementResult>;
  stream(text: string, parameters: readonly unknown[], chunkSize: number, options?: StreamOptions): AsyncIterableIterator<StatementResult>;
}

/** What is done with the answer to a statement that was sent. */
export interface SentStatement {
  /** Told how it ended, before the commit does: its error, or undefined and the number of rows. */
  readonly answered?: (error: unknown, count: number) => void;
  /** The error that the commit fails with when the statement failed. Default: the database's own. */
  readonly failureOf?: (error: unknown) => unknown;
}

/** One open transaction, bound to one connection. */
export interface EngineTransaction extends StatementRunner {
  /**
   * Sends a statement whose rows are not needed, where waiting for its answer costs a round trip: it goes out with the next statement or with the
   * commit, which fail with its error when it fails. Nothing is saved then, unless a savepoint around it is rolled back. Throws what is wrong
   * with the parameters.
   */
  send?(text: string, parameters: readonly unknown[], sent?: SentStatement): void;
  savepoint(name: string): Promise<void>;
  releaseSavepoint(name: string): Promise<void>;
  rollbackToSavepoint(name: string): Promise<void>;
  /** Rejects when the database rolled back instead: a caught statement error must not look like a commit. */
  commit(): Promise<void>;
  /** The time of its request is over: what runs is stopped where the engine can, and nothing is saved, unless COMMIT was sent. */
  cancel(reason: unknown): void;
  /** Never rejects: a connection that cannot roll back is thrown away, which rolls back too. */
  rollback(): Promise<void>;
}

/** What an engine needs of a handle to notify in its transaction. */
export interface NotifyingHandle {
  query(text: string, parameters: readonly unknown[]): Promise<unknown>;
  afterCommit(callback: () => unknown): void;
}

export type NotificationListener = (payload: string) => void;

export interface ListenOptions {
  /** Called when the connection is lost: until `onReconnect`, notifications are missed. */
  readonly onDisconnect?: () => void;
  /** Called after the connection was lost and is back: notifications in between were missed, so look for yourself. */
  readonly onReconnect?: () => void;
}

/** A database as the rest of the layer sees it; everything outside a transaction commits at once. */
export interface Engine extends StatementRunner {
  readonly dialect: Dialect;
  readonly pool: PoolStatus;
  /**
   * How many connections or readers run statements that may be long. They are shared between the callers before `run` is called, and such
   * statements never go to `runNow`. Undefined: the engine runs one statement after the other (SQLite in memory).
   */
  readonly longStatementsMax?: number | undefined;
  /** PostgreSQL: every connection has been silent for a minute, although new ones can be opened: only a restart helps. */
  readonly isStuck?: boolean;
  /** PostgreSQL: whether the server takes changes. One that does not is left: the next connection may lead to another. */
  isWritable?(): Promise<boolean>;
  /** Of these, how many streamed queries have now. */
  readonly streams?: number;
  /** Visible SQL has `$1` on every database; this is what the engine's own statements have. */
  toOwnPlaceholders(text: string, parameters: readonly unknown[]): { readonly text: string; readonly parameters: readonly unknown[] };
  /** The transaction at once, where the engine can begin it without waiting, else undefined. */
  beginNow?(options: EngineTransactionOptions): EngineTransaction | undefined;
  begin(options: EngineTransactionOptions): Promise<EngineTransaction>;
  isRetryable(error: unknown): boolean;
  listen(channel: string, listener: NotificationListener, options: ListenOptions): Promise<() => Promise<void>>;
  /** Sent when the transaction of `db` commits, at once outside one. */
  notify(db: NotifyingHandle, channel: string, payload: string): Promise<void>;
  /** Copies the last committed state to a file whose name ends with `suffix`, and returns its path; undefined where that is not possible. */
  backUp(target: (file: string) => string): Promise<string | undefined>;
  /** Statement and row-shape caches are dropped: the tables have changed. */
  forgetStatements(): void;
  /** PostgreSQL: a statement that cannot run in a transaction (CREATE INDEX CONCURRENTLY), on a connection of its own, however long it takes. */
  runAlone?(text: string): Promise<void>;
  /** PostgreSQL: what its server and the connections are like. Opens two connections to find out. */
  serverFacts?(): Promise<{ readonly server: ServerFacts; readonly keepAliveMs: number }>;
  /** PostgreSQL with prepared statements: true when a pooler loses them between two transactions. Opens two connections to find out. */
  losesStatements?(): Promise<boolean>;
  close(): Promise<void>;
}
