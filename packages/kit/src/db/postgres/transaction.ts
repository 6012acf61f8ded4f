import type pg from 'pg';
import type { EngineTransaction, QueryOptions, StatementResult, StreamOptions } from '../engine.ts';
import { dbErrors } from '../errors.ts';
import { runOnClient, streamOnClient, type QuerySettings } from './client-queries.ts';
import { isConnectionFailure, translateFailure } from './connection-failure.ts';

/** A transaction on one client of the pool. */
export class PostgresTransaction implements EngineTransaction {
  readonly #client: pg.PoolClient;
  readonly #settings: QuerySettings;
  #ended = false;

  constructor(client: pg.PoolClient, settings: QuerySettings) {
    this.#client = client;
    this.#settings = settings;
  }

  async run(text: string, parameters: readonly unknown[], options?: QueryOptions): Promise<StatementResult> {
    this.#refuseWhenOver();
    try {
      return await runOnClient(this.#client, this.#settings, text, parameters, options);
    } catch (error) {
      throw translateFailure(error);
    }
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
    await this.run(`release savepoint "${name}"`, []);
  }

  async commit(): Promise<void> {
    this.#refuseWhenOver();
    let result: pg.QueryResult;
    try {
      result = await this.#client.query('commit');
    } catch (error) {
      if (!isConnectionFailure(error)) throw error;
      throw dbErrors.commit_unknown({ cause: error, message: 'the connection was lost during COMMIT' });
    }
    this.#end();
    // COMMIT of a transaction in which a statement failed "succeeds" by rolling back; saying nothing would lose a write.
    if (result.command === 'ROLLBACK') {
      throw dbErrors.transaction_aborted({
        message: 'A statement failed in this transaction and its error was swallowed: nothing was saved.',
      });
    }
  }

  async rollback(): Promise<void> {
    if (this.#ended) return;
    try {
      await this.#client.query('rollback');
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
