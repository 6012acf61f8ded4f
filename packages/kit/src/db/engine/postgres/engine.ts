import type pg from 'pg';
import type { PoolStatus } from '../database-observer.ts';
import type {
  Engine,
  EngineTransaction,
  ListenOptions,
  NotificationListener,
  NotifyingHandle,
  QueryOptions,
  StatementResult,
  StreamOptions,
  TransactionOptions,
} from '../engine.ts';
import type { DbLog } from '../../log.ts';
import { runOnClient, streamOnClient, type QuerySettings } from './client-queries.ts';
import { CursorSlots } from '../cursor-slots.ts';
import { isConflict, isConnectionFailure, isReadOnlyServer, translateFailure } from './connection-failure.ts';
import type { LongStatement } from '../long-statement.ts';
import { ConnectionPool } from './connection-pool.ts';
import { PostgresListener } from './listener.ts';
import { LongStatements } from './long-statements.ts';
import { losesStatements } from './loses-statements.ts';
import { Pipeline } from './pipeline.ts';
import { readServerAddress } from './server-address.ts';
import { readServerFacts, type ServerFacts } from './server-facts.ts';
import { SessionOpener } from './session.ts';
import { SilenceWatch } from './silence-watch.ts';
import { StatementNames } from './statement-names.ts';
import { PostgresTransaction } from './transaction.ts';

export interface PostgresEngineOptions {
  readonly poolMax: number;
  /** False for poolers that hand every transaction another connection (PgBouncer before 1.21). */
  readonly prepare: boolean;
  /** How long a statement waits for a free connection before it is refused. */
  readonly acquireDeadlineMs: number;
  readonly connectMsMax: number;
  readonly silenceMsMax: number;
  readonly connectionAgeMsMax: number;
  readonly keepAliveMs: number;
  /** All connections silent for so long, while new ones can be opened: the process does not heal by itself. */
  readonly stuckMs: number;
  /** Of every statement, as the session has it. Undefined: as the server or the role has it. */
  readonly statementMsMax?: number | undefined;
  readonly log: DbLog;
}

/** The server routine that says "cached plan must not change result type": a migration changed a named statement's columns. */
const STALE_PLAN = 'RevalidateCachedQuery';

const READ_ONLY = `select current_setting('transaction_read_only') as value`;

/** A pool of connections to PostgreSQL. */
export class PostgresEngine implements Engine {
  readonly dialect = 'postgres';
  readonly #pool: ConnectionPool;
  readonly #opener: SessionOpener;
  readonly #watch: SilenceWatch;
  readonly #cursors: CursorSlots;
  readonly #acquireDeadlineMs: number;
  readonly #names: StatementNames | undefined;
  /** How many names had been given when a connection was last rid of old statements. */
  readonly #lookedAt = new WeakMap<pg.PoolClient, number>();
  readonly #settings: QuerySettings;
  readonly #listener: PostgresListener;
  /** Undefined with a pooler that may hand every statement another connection. */
  readonly #pipeline: Pipeline | undefined;
  readonly #long: LongStatements;

  constructor(url: string, options: PostgresEngineOptions) {
    const { acquireDeadlineMs, connectionAgeMsMax, silenceMsMax, log } = options;
    const address = readServerAddress(url);
    this.#opener = new SessionOpener(address, {
      connectMsMax: address.connectMsMax ?? options.connectMsMax,
      identifyMsMax: acquireDeadlineMs,
      keepAliveMs: address.keepAliveMs ?? options.keepAliveMs,
      statementMsMax: options.statementMsMax,
      pipeline: options.prepare,
    });
    const open = () => this.#opener.open();
    this.#names = options.prepare ? new StatementNames() : undefined;
    this.#pool = new ConnectionPool({
      max: options.poolMax,
      waitMsMax: acquireDeadlineMs,
      ageMsMax: connectionAgeMsMax,
      open,
      onReturn: (client) => this.#removeStaleStatements(client),
      onReadOnly: () => this.#suspectAll(),
      log,
    });
    this.#cursors = new CursorSlots(options.poolMax);
    this.#acquireDeadlineMs = acquireDeadlineMs;
    this.#settings = { names: this.#names };
    this.#pipeline = options.prepare ? new Pipeline(() => this.#acquire(), release, this.#settings) : undefined;
    const acquire = () => this.#acquire();
    this.#long = new LongStatements({ acquire, release, settings: this.#settings });
    this.#listener = new PostgresListener({ open, answerMsMax: silenceMsMax, ageMsMax: connectionAgeMsMax, log });
    this.#watch = new SilenceWatch({
      pool: this.#pool,
      open,
      silenceMsMax,
      stuckMs: options.stuckMs,
      onDead: () => this.#suspectAll(),
      log,
    });
  }

  get pool(): PoolStatus {
    return this.#pool.status;
  }

  get isStuck(): boolean {
    return this.#watch.isStuck(this.#pool.status.max);
  }

  /** Whether the server takes changes. One that does not is left: the next connection may lead to another. */
  async isWritable(): Promise<boolean> {
    const readOnly = async () => (await this.run(READ_ONLY, [])).rows[0] as { readonly value: string } | undefined;
    if ((await readOnly())?.value === 'off') return true;
    this.#suspectAll();
    return (await readOnly())?.value === 'off';
  }

  /** The address may lead elsewhere by now. */
  #suspectAll(): void {
    this.#pool.retire();
    this.#listener.check();
  }

  get longStatementsMax(): number {
    return this.#pool.status.max;
  }

  get streams(): number {
    return this.#cursors.used;
  }

  async run(text: string, parameters: readonly unknown[], options: QueryOptions = {}): Promise<StatementResult> {
    try {
      if (options.long !== undefined) return await this.#long.run(text, parameters, options, options.long);
      if (options.pipelined === true && this.#pipeline !== undefined) return await this.#pipeline.run(text, parameters, options);
      const client = await this.#pool.acquire();
      let failure: unknown;
      try {
        return await runOnClient(client, this.#settings, text, parameters, options);
      } catch (error) {
        failure = error;
        throw error;
      } finally {
        release(client, failure);
      }
    } catch (error) {
      if ((error as { routine?: unknown }).routine !== STALE_PLAN) throw translateFailure(error);
    }
    this.#names?.startOver();
    return this.run(text, parameters, { ...options, pipelined: false });
  }

  /** Statements whose names were taken back would stay on the server until the connection closes. */
  #removeStaleStatements(client: pg.PoolClient): void {
    const names = this.#names;
    if (names === undefined || !names.isWorthLooking(this.#lookedAt.get(client) ?? 0)) return;
    this.#lookedAt.set(client, names.given);
    const { parsedStatements } = client.connection as unknown as { readonly parsedStatements: Record<string, string> };
    const stale = names.staleOf(Object.keys(parsedStatements));
    if (stale.length === 0) return;
    for (const name of stale) delete parsedStatements[name];
    client.query(stale.map((name) => `deallocate ${name}`).join('; ')).catch(() => undefined); // a lost connection takes them along
  }

  async *stream(
    text: string,
    parameters: readonly unknown[],
    chunkSize: number,
    options: StreamOptions = {},
  ): AsyncIterableIterator<StatementResult> {
    yield* this.#cursors.during(options.waitMsMax ?? this.#acquireDeadlineMs, () => this.#streamed(text, parameters, chunkSize, options));
  }

  async *#streamed(
    text: string,
    parameters: readonly unknown[],
    chunkSize: number,
    options: StreamOptions,
  ): AsyncIterableIterator<StatementResult> {
    const transaction = await this.#acquire();
    const { long } = options;
    let failure: unknown;
    const cancel = (): void => {
      failure = this.#long.cancel(transaction, long?.reads);
    };
    try {
      long?.signal?.throwIfAborted();
      long?.signal?.addEventListener('abort', cancel, { once: true });
      if (long === undefined) {
        await transaction.query('begin read only');
        yield* streamOnClient(transaction, text, parameters, chunkSize, options);
      } else yield* this.#streamedInTime(transaction, long, text, parameters, chunkSize, options);
    } catch (error) {
      failure ??= error;
      throw long?.signal?.aborted === true ? long.signal.reason : translateFailure(error);
    } finally {
      long?.signal?.removeEventListener('abort', cancel);
      // A consumer may stop half way: the read-only transaction is ended in every case. Where it is not, as when a request to cancel comes just then, the
      // connection ends with it: the next caller would be in an aborted transaction.
      const hasEnded = await transaction.query('rollback').then(
        () => true,
        () => false,
      );
      if (hasEnded) release(transaction, failure);
      else transaction.release(true);
    }
  }

  /** The deadline is that of each batch: the cursor's statements are the FETCHes. */
  async *#streamedInTime(
    client: pg.PoolClient,
    { deadlineMs, reads }: LongStatement,
    text: string,
    parameters: readonly unknown[],
    chunkSize: number,
    options: StreamOptions,
  ): AsyncIterableIterator<StatementResult> {
    const inTime = <T>(answer: Promise<T>): Promise<T> => this.#long.inTime(client, answer, deadlineMs, reads);
    await inTime(client.query(`begin read only; set local statement_timeout = ${Math.ceil(deadlineMs)}`));
    const chunks = streamOnClient(client, text, parameters, chunkSize, options);
    try {
      for (let step = await inTime(chunks.next()); step.done !== true; step = await inTime(chunks.next())) yield step.value;
    } finally {
      await inTime(chunks.return());
    }
  }

  async begin(options: TransactionOptions): Promise<EngineTransaction> {
    const isolation = options.isolation === undefined ? '' : ` isolation level ${options.isolation}`;
    const begin = `begin${isolation}${options.readOnly === true ? ' read only' : ''}`;
    return new PostgresTransaction(await this.#acquire(), this.#settings, begin);
  }

  isRetryable(error: unknown): boolean {
    return isConflict(error);
  }

  listen(channel: string, listener: NotificationListener, options: ListenOptions): Promise<() => Promise<void>> {
    return this.#listener.listen(channel, listener, options);
  }

  toOwnPlaceholders(text: string, parameters: readonly unknown[]): { readonly text: string; readonly parameters: readonly unknown[] } {
    return { text, parameters };
  }

  async notify(db: NotifyingHandle, channel: string, payload: string): Promise<void> {
    await db.query('select pg_notify($1, $2)', [channel, payload]);
  }

  /** The server's own business. */
  async backUp(): Promise<undefined> {
    return undefined;
  }

  forgetStatements(): void {
    this.#names?.startOver();
  }

  async runAlone(text: string): Promise<void> {
    const session = await this.#opener.open();
    try {
      // A pooler would give the setting to others.
      if (session.identity?.isPooled !== true) await session.client.query('set statement_timeout = 0');
      await session.client.query(text);
    } finally {
      await session.close();
    }
  }

  async serverFacts(): Promise<{ readonly server: ServerFacts; readonly keepAliveMs: number }> {
    return { server: await readServerFacts(() => this.#opener.open()), keepAliveMs: this.#opener.keepAliveMs };
  }

  async losesStatements(): Promise<boolean> {
    return this.#names !== undefined && (await losesStatements(() => this.#opener.open()));
  }

  async close(): Promise<void> {
    await this.#listener.close();
    await this.#pool.close();
    this.#watch.stop();
  }

  async #acquire(): Promise<pg.PoolClient> {
    try {
      return await this.#pool.acquire();
    } catch (error) {
      throw translateFailure(error);
    }
  }
}

/** The pool decides what a connection is good for after this failure. */
function release(client: pg.PoolClient, failure: unknown): void {
  const isOfConnection = failure instanceof Error && (isConnectionFailure(failure) || isReadOnlyServer(failure));
  client.release(isOfConnection ? failure : undefined);
}
