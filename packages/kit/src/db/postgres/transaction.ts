import type pg from 'pg';
import type { AnswerListener, EngineTransaction, QueryOptions, StatementResult, StreamOptions } from '../engine.ts';
import { dbErrors } from '../errors.ts';
import { driverQuery, runOnClient, streamOnClient, type QuerySettings } from './client-queries.ts';
import { isConnectionFailure, translateFailure } from './connection-failure.ts';

/** The server's answer to every statement after one that failed. */
const ABORTED = '25P02';

/** A transaction on one client of the pool. */
export class PostgresTransaction implements EngineTransaction {
  readonly #client: pg.PoolClient;
  readonly #settings: QuerySettings;
  #ended = false;
  /** Statements that were sent and not answered yet. */
  #unanswered = 0;
  /** The error of a statement that was sent and not awaited. It holds until the savepoint around the statement is rolled back. */
  #failure: unknown;
  #isCorked = false;

  constructor(client: pg.PoolClient, settings: QuerySettings) {
    this.#client = client;
    this.#settings = settings;
  }

  async run(text: string, parameters: readonly unknown[], options?: QueryOptions): Promise<StatementResult> {
    this.#refuseWhenOver();
    try {
      const answer = runOnClient(this.#client, this.#settings, text, parameters, options);
      this.#uncork();
      return await answer;
    } catch (error) {
      throw translateFailure(this.#cause(error));
    }
  }

  send(text: string, parameters: readonly unknown[], answered: AnswerListener): void {
    this.#refuseWhenOver();
    const query = driverQuery(this.#settings, text, parameters);
    this.#cork();
    this.#unanswered += 1;
    // A callback, not a promise: `commit` relies on a failure being noted at once.
    this.#client.query(query, (error: Error | null | undefined, result) => {
      this.#unanswered -= 1;
      if (error) this.#failure ??= error;
      answered(error ?? undefined, error ? 0 : (result.rowCount ?? 0));
    });
  }

  /** What is sent from here on goes out in one write, with the next statement that is waited for or at the end of this turn of the event loop. */
  #cork(): void {
    if (this.#isCorked) return;
    this.#isCorked = true;
    this.#client.connection.stream.cork();
    setImmediate(() => this.#uncork());
  }

  #uncork(): void {
    if (!this.#isCorked) return;
    this.#isCorked = false;
    this.#client.connection.stream.uncork();
  }

  /** After a failed statement PostgreSQL refuses everything; the error to report is that of the statement. */
  #cause(error: unknown): unknown {
    return (error as { code?: unknown } | null)?.code === ABORTED ? (this.#failure ?? error) : error;
  }

  async *stream(
    text: string,
    parameters: readonly unknown[],
    chunkSize: number,
    options?: StreamOptions,
  ): AsyncIterableIterator<StatementResult> {
    this.#refuseWhenOver();
    yield* streamOnClient(this.#client, text, parameters, chunkSize, options);
  }

  async savepoint(name: string): Promise<void> {
    await this.run(`savepoint "${name}"`, []);
  }

  async releaseSavepoint(name: string): Promise<void> {
    await this.run(`release savepoint "${name}"`, []);
  }

  async rollbackToSavepoint(name: string): Promise<void> {
    if (this.#ended) return;
    await this.run(`rollback to savepoint "${name}"`, []);
    this.#failure = undefined;
    await this.run(`release savepoint "${name}"`, []);
  }

  async commit(): Promise<void> {
    this.#refuseWhenOver();
    // The driver reports a statement that it could not send at the next tick: PostgreSQL would not know of it, and commit.
    if (this.#unanswered > 0) await new Promise<void>((done) => process.nextTick(done));
    if (this.#failure !== undefined) throw translateFailure(this.#failure);
    let result: pg.QueryResult;
    try {
      const answer = this.#client.query('commit');
      this.#uncork();
      result = await answer;
    } catch (error) {
      if (!isConnectionFailure(error)) throw error;
      throw dbErrors.commit_unknown({ cause: error, message: 'the connection was lost during COMMIT' });
    }
    this.#end();
    // COMMIT of a transaction in which a statement failed "succeeds" by rolling back; saying nothing would lose a write.
    if (result.command === 'ROLLBACK') {
      if (this.#failure !== undefined) throw translateFailure(this.#failure);
      throw dbErrors.transaction_aborted({
        message: 'A statement failed in this transaction and its error was swallowed: nothing was saved.',
      });
    }
  }

  async rollback(): Promise<void> {
    if (this.#ended) return;
    try {
      const answer = this.#client.query('rollback');
      this.#uncork();
      await answer;
      this.#end();
    } catch (error) {
      this.#ended = true;
      this.#client.release(error instanceof Error ? error : true); // closes the connection, which rolls back too
    }
  }

  #end(): void {
    this.#ended = true;
    this.#client.release();
  }

  #refuseWhenOver(): void {
    if (this.#ended) throw dbErrors.transaction_finished({ message: 'This transaction has ended: await everything inside its callback.' });
  }
}
