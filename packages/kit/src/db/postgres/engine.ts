import pg from 'pg';
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
import type { DbLog } from '../log.ts';
import { runOnClient, streamOnClient, type QuerySettings } from './client-queries.ts';
import { CursorSlots } from '../cursor-slots.ts';
import { isConflict, isConnectionFailure, translateFailure } from './connection-failure.ts';
import { PostgresListener } from './listener.ts';
import { losesStatements } from './loses-statements.ts';
import { Pipeline } from './pipeline.ts';
import { StatementNames } from './statement-names.ts';
import { PostgresTransaction } from './transaction.ts';

export interface PostgresEngineOptions {
  readonly poolMax: number;
  /** False for poolers that hand every transaction another connection (PgBouncer before 1.21). */
  readonly prepare: boolean;
  /** How long a statement waits for a free connection before it is refused. */
  readonly acquireDeadlineMs: number;
  readonly log: DbLog;
}

/** The server routine that says "cached plan must not change result type": a migration changed a named statement's columns. */
const STALE_PLAN = 'RevalidateCachedQuery';

/** A pool of connections to PostgreSQL. */
export class PostgresEngine implements Engine {
  readonly dialect = 'postgres';
  readonly #pool: pg.Pool;
  readonly #cursors: CursorSlots;
  readonly #acquireDeadlineMs: number;
  readonly #clients = new Set<pg.ClientBase>();
  readonly #names: StatementNames | undefined;
  /** How many names had been given when a connection was last rid of old statements. */
  readonly #lookedAt = new WeakMap<pg.PoolClient, number>();
  readonly #settings: QuerySettings;
  readonly #listener: PostgresListener;
  /** Undefined with a pooler that may hand every statement another connection. */
  readonly #pipeline: Pipeline | undefined;
  #emptied: (() => void) | undefined;

  constructor(url: string, options: PostgresEngineOptions) {
    this.#pool = new pg.Pool({
      connectionString: url,
      max: options.poolMax,
      connectionTimeoutMillis: options.acquireDeadlineMs,
      keepAlive: true,
      pipeline: options.prepare,
    });
    this.#cursors = new CursorSlots(options.poolMax);
    this.#acquireDeadlineMs = options.acquireDeadlineMs;
    // Without these two a connection that dies, idle or in use, ends the process with an unhandled 'error' event.
    this.#pool.on('error', (error) =>
      options.log.warn({ err: error }, 'an idle PostgreSQL connection was lost; the pool opens another when needed'),
    );
    this.#pool.on('connect', (client) => {
      this.#clients.add(client);
      client.on('error', () => undefined);
    });
    this.#pool.on('remove', (client) => {
      this.#clients.delete(client);
      if (this.#clients.size === 0) this.#emptied?.();
    });
    this.#names = options.prepare ? new StatementNames() : undefined;
    // A connection that comes back is in no transaction, and no other caller writes to it yet.
    this.#pool.on('release', (error, client) => {
      if (!error) this.#removeStaleStatements(client);
    });
    this.#settings = { names: this.#names };
    this.#pipeline = options.prepare ? new Pipeline(() => this.#acquire(), release, this.#settings) : undefined;
    this.#listener = new PostgresListener(url, options.log);
  }

  get pool(): PoolStatus {
    const { totalCount, idleCount, waitingCount } = this.#pool;
    // The pool queues every request for a turn of the event loop, also one that it has an idle connection for.
    return { max: this.#pool.options.max, used: totalCount - idleCount, waiting: Math.max(0, waitingCount - idleCount) };
  }

  async run(text: string, parameters: readonly unknown[], options: QueryOptions = {}): Promise<StatementResult> {
    try {
      if (options.pipelined === true && this.#pipeline !== undefined) return await this.#pipeline.run(text, parameters, options);
      const client = await this.#pool.connect();
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
    let failure: unknown;
    try {
      await transaction.query('begin read only');
      yield* streamOnClient(transaction, text, parameters, chunkSize, options);
    } catch (error) {
      failure = error;
      throw translateFailure(error);
    } finally {
      // A consumer may stop half way: the read-only transaction is ended in every case.
      await transaction.query('rollback').catch((error: unknown) => (failure = error));
      release(transaction, failure);
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

  async losesStatements(): Promise<boolean> {
    return this.#names !== undefined && (await losesStatements(() => new pg.Client(this.#pool.options)));
  }

  async close(): Promise<void> {
    await this.#listener.close();
    // The pool's own end() does not wait for the connections to be closed; dropping the database needs that.
    const gone = new Promise<void>((done) => (this.#emptied = done));
    await this.#pool.end();
    if (this.#clients.size > 0) await gone;
  }

  async #acquire(): Promise<pg.PoolClient> {
    try {
      return await this.#pool.connect();
    } catch (error) {
      throw translateFailure(error);
    }
  }
}

/** A client goes back to the pool unless its connection is the problem. */
function release(client: pg.PoolClient, failure: unknown): void {
  const isBroken = failure !== undefined && isConnectionFailure(failure);
  client.release(isBroken ? (failure instanceof Error ? failure : true) : undefined);
}
