import { EventEmitter } from 'node:events';
import { availableParallelism } from 'node:os';
import { openScopeOf } from '../ambient.ts';
import { CursorSlots } from '../cursor-slots.ts';
import type { PoolStatus } from '../database-observer.ts';
import type {
  Engine,
  EngineTransaction,
  EngineTransactionOptions,
  ListenOptions,
  NotificationListener,
  NotifyingHandle,
  QueryOptions,
  StatementResult,
  StreamOptions,
} from '../engine.ts';
import { dbErrors } from '../../errors.ts';
import type { DbLog } from '../../log.ts';
import { isBusy, retryWhileBusy } from './busy.ts';
import { Checkpointer } from './checkpointer.ts';
import { countsLogPages, SqliteConnection } from './connection.ts';
import { isReadOnly, reorder, toPositional } from '../../sql/statement-text.ts';
import { canStartReaders } from './readers/reader.ts';
import { ReaderPool } from './readers/reader-pool.ts';
import { SqliteTransaction } from './transaction.ts';
import { createPrivateFile } from './private-file.ts';
import { WriterQueue } from './writer-queue.ts';
import { loadNodeSqlite } from './load-node-sqlite.ts';

export interface SqliteEngineOptions {
  readonly durability: 'normal' | 'full';
  /** How long a statement or BEGIN waits for other writers, of this process or another, before it is refused. */
  readonly busyDeadlineMs: number;
  readonly log: DbLog;
}

/** Streamed queries open connections of their own. Each holds back checkpoints: they are limited as in a pool of 10. */
const CURSOR_CONNECTIONS = 10;

/** Processes for statements that may be long, at the same time: two at least, so that one caller does not have them all. */
const READERS_MAX = Math.max(2, Math.min(4, Math.floor(availableParallelism() / 2)));

/**
 * One writer connection and one reader. Reads see the last commit and never wait (126 ms behind an open transaction on
 * one connection, 21 ms with their own); writes queue here, and wait for other processes without blocking the event loop.
 * Reads that may be long have processes of their own: they would stop everything else of this one.
 */
export class SqliteEngine implements Engine {
  readonly dialect = 'sqlite';
  readonly file: string;
  readonly options: SqliteEngineOptions;
  readonly writer: SqliteConnection;
  readonly #reader: SqliteConnection;
  readonly #queue = new WriterQueue();
  readonly #cursors = new CursorSlots(CURSOR_CONNECTIONS);
  readonly #notifications = new EventEmitter().setMaxListeners(0);
  readonly #inMemory: boolean;
  readonly #checkpointer: Checkpointer | undefined;
  /** Undefined in memory, which no other process sees. */
  readonly #readers: ReaderPool | undefined;
  #closed = false;

  static async open(file: string, options: SqliteEngineOptions): Promise<SqliteEngine> {
    const writer = await retryWhileBusy(
      () => new SqliteConnection(file, { readOnly: false, durability: options.durability }),
      options.busyDeadlineMs,
    );
    if (file === ':memory:') return new SqliteEngine(file, options, writer, writer);
    try {
      return new SqliteEngine(file, options, writer, await openReader(file, options));
    } catch (error) {
      writer.close();
      throw error;
    }
  }

  private constructor(file: string, options: SqliteEngineOptions, writer: SqliteConnection, reader: SqliteConnection) {
    this.file = file;
    this.options = options;
    this.writer = writer;
    this.#reader = reader;
    this.#inMemory = reader === writer;
    const { busyDeadlineMs, log } = options;
    if (!this.#inMemory && countsLogPages())
      this.#checkpointer = new Checkpointer({ file, writer, queue: this.#queue, busyDeadlineMs, log });
    if (this.#inMemory) return;
    if (canStartReaders()) this.#readers = new ReaderPool({ file, ...options, max: READERS_MAX });
    else
      log.warn({}, 'the program of the SQLite reader processes is missing; reads that may be long run in this process, without a deadline');
  }

  /** The one that is left for everything else is this process. */
  get longStatementsMax(): number | undefined {
    return this.#readers === undefined ? undefined : READERS_MAX + 1;
  }

  /** Processes that read, and those that are kept for the next statement. */
  get readerPids(): readonly number[] {
    return this.#readers?.pids ?? [];
  }

  get pool(): PoolStatus {
    return { max: 1, used: this.#queue.isHeld ? 1 : 0, waiting: this.#queue.waiting };
  }

  toOwnPlaceholders(text: string, parameters: readonly unknown[]): { readonly text: string; readonly parameters: readonly unknown[] } {
    const positional = toPositional(text);
    return { text: positional.text, parameters: reorder(parameters, positional.order) };
  }

  runNow(text: string, parameters: readonly unknown[], { as, long }: QueryOptions = {}): StatementResult | undefined {
    if (long !== undefined && this.#readers !== undefined) return undefined;
    const isWrite = this.#inMemory || !isReadOnly(text);
    const connection = isWrite ? this.#freeWriter() : this.#freeReader();
    try {
      const result = connection?.run(text, parameters, as, long?.deadlineMs);
      if (isWrite && result !== undefined) this.#checkpointer?.wrote();
      return result;
    } catch (error) {
      if (isBusy(error)) return undefined;
      throw error;
    }
  }

  /** The writer when it is free and has no queue: a statement that ends at once needs no turn. */
  #freeWriter(): SqliteConnection | undefined {
    return this.#queue.isHeld || this.#closed || openScopeOf(this) !== undefined ? undefined : this.writer;
  }

  /**
   * The writer where it is free, else the reader. A commit makes SQLite forget what every other connection has of the file: after one, the reader reads
   * its pages again, and the writer does not. A transaction that could not be rolled back shows nothing to others.
   */
  #freeReader(): SqliteConnection {
    const writer = this.#freeWriter();
    return writer === undefined || writer.database.isTransaction ? this.#reader : writer;
  }

  async run(text: string, parameters: readonly unknown[], { as, long }: QueryOptions = {}): Promise<StatementResult> {
    if (long !== undefined && this.#readers !== undefined && isReadOnly(text)) return this.#readers.run(text, parameters, { ...long, as });
    const deadlineMs = long?.deadlineMs;
    if (!this.#inMemory && isReadOnly(text)) return this.#attempt(this.#reader, text, parameters, as, deadlineMs);
    return this.withWriter(() => this.#attempt(this.writer, text, parameters, as, deadlineMs));
  }

  async *stream(
    text: string,
    parameters: readonly unknown[],
    chunkSize: number,
    options: StreamOptions = {},
  ): AsyncIterableIterator<StatementResult> {
    if (this.#inMemory || !isReadOnly(text)) {
      const { rows } = await this.run(text, parameters, options);
      yield* chunks(rows, chunkSize);
      return;
    }
    // A statement being stepped keeps its connection on one snapshot: on the shared reader every other read would go stale.
    yield* this.#cursors.during(options.waitMsMax ?? this.options.busyDeadlineMs, () =>
      options.long === undefined || this.#readers === undefined
        ? this.#streamed(text, parameters, chunkSize, options)
        : this.#readers.stream(text, parameters, chunkSize, { ...options.long, as: options.as }),
    );
  }

  async *#streamed(
    text: string,
    parameters: readonly unknown[],
    chunkSize: number,
    { as }: StreamOptions,
  ): AsyncIterableIterator<StatementResult> {
    const connection = await openReader(this.file, this.options);
    try {
      yield* chunks(connection.iterate(text, parameters, as), chunkSize);
    } finally {
      connection.close();
    }
  }

  /** Undefined unless it is an ordinary transaction and the writer is free. */
  beginNow(options: EngineTransactionOptions): EngineTransaction | undefined {
    if (options.readOnly === true || options.withoutForeignKeys === true) return undefined;
    if (this.#freeWriter() === undefined || !this.#queue.tryAcquire()) return undefined;
    try {
      this.writer.begin();
    } catch (error) {
      this.#queue.release();
      if (isBusy(error)) return undefined;
      throw error;
    }
    return new SqliteTransaction(this.writer, () => this.#releaseWriter());
  }

  async begin(options: EngineTransactionOptions): Promise<EngineTransaction> {
    if (options.readOnly === true && !this.#inMemory) {
      const connection = await openReader(this.file, this.options);
      connection.exec('begin');
      return new SqliteTransaction(connection, () => connection.close());
    }
    const waitMsMax = options.waitMsMax ?? this.options.busyDeadlineMs;
    await this.#acquireWriter(waitMsMax);
    const release = (): void => {
      if (options.withoutForeignKeys === true) this.writer.exec('pragma foreign_keys = on; pragma legacy_alter_table = off');
      this.#releaseWriter();
    };
    try {
      // Before BEGIN: inside a transaction the pragma does nothing, and says nothing.
      if (options.withoutForeignKeys === true) this.writer.exec('pragma foreign_keys = off');
      await retryWhileBusy(() => this.writer.begin(), waitMsMax);
    } catch (error) {
      release();
      throw error;
    }
    return new SqliteTransaction(this.writer, release);
  }

  /** Works while a transaction is open on the writer: it reads the last commit. */
  async backUp(target: (file: string) => string): Promise<string | undefined> {
    if (this.#inMemory) return undefined;
    const path = target(this.file);
    const connection = await openReader(this.file, this.options);
    try {
      await createPrivateFile(path);
      await loadNodeSqlite().backup(connection.database, path);
    } finally {
      connection.close();
    }
    return path;
  }

  /** Runs `work` while this process's writer connection belongs to it alone. */
  async withWriter<R>(work: () => Promise<R>): Promise<R> {
    await this.#acquireWriter(this.options.busyDeadlineMs);
    try {
      return await work();
    } finally {
      this.#releaseWriter();
    }
  }

  #releaseWriter(): void {
    this.#checkpointer?.wrote();
    this.#queue.release();
  }

  isRetryable(): boolean {
    return false; // BEGIN IMMEDIATE takes the write lock first, so a running transaction cannot lose to another
  }

  async listen(channel: string, listener: NotificationListener, _options: ListenOptions): Promise<() => Promise<void>> {
    this.#notifications.on(channel, listener);
    return async () => void this.#notifications.off(channel, listener);
  }

  /** Listeners of this process only: SQLite has no channel between processes. */
  async notify(db: NotifyingHandle, channel: string, payload: string): Promise<void> {
    db.afterCommit(() => this.#callListeners(channel, payload));
  }

  #callListeners(channel: string, payload: string): void {
    for (const listener of this.#notifications.listeners(channel)) {
      try {
        (listener as NotificationListener)(payload);
      } catch (error) {
        this.options.log.error({ err: error }, 'a notification listener failed');
      }
    }
  }

  forgetStatements(): void {
    this.writer.forgetStatements();
    this.#reader.forgetStatements();
    this.#readers?.forgetStatements();
  }

  async close(): Promise<void> {
    await this.#queue.acquire(this.options.busyDeadlineMs); // the transaction under way ends first
    this.#closed = true;
    this.#queue.release(); // those still waiting are told that it is closed
    await Promise.all([this.#checkpointer?.close(), this.#readers?.close()]);
    this.#reader.close();
    this.writer.close();
    this.#notifications.removeAllListeners();
  }

  async #acquireWriter(waitMsMax: number): Promise<void> {
    // Asked before waiting: the transaction around this call holds the writer and waits for this very call.
    if (openScopeOf(this) !== undefined) {
      throw dbErrors.outer_handle_in_transaction({
        message: 'This statement would wait for the transaction it runs in: use the transaction handle, not the database handle.',
      });
    }
    await this.#queue.acquire(waitMsMax);
    if (!this.#closed) return;
    this.#queue.release();
    throw dbErrors.database_unavailable({ message: 'this database handle is closed' });
  }

  async #attempt(
    connection: SqliteConnection,
    text: string,
    parameters: readonly unknown[],
    as?: 'wire',
    deadlineMs?: number,
  ): Promise<StatementResult> {
    const run = () => connection.run(text, parameters, as, deadlineMs);
    try {
      return run();
    } catch (error) {
      if (!isBusy(error)) throw error;
    }
    return retryWhileBusy(run, this.options.busyDeadlineMs);
  }
}

function openReader(file: string, options: SqliteEngineOptions): Promise<SqliteConnection> {
  return retryWhileBusy(() => new SqliteConnection(file, { readOnly: true, durability: options.durability }), options.busyDeadlineMs);
}

function* chunks(rows: Iterable<unknown>, size: number): Generator<StatementResult> {
  let chunk: unknown[] = [];
  for (const row of rows) {
    chunk.push(row);
    if (chunk.length < size) continue;
    yield { rows: chunk, count: chunk.length };
    chunk = [];
  }
  if (chunk.length > 0) yield { rows: chunk, count: chunk.length };
}
