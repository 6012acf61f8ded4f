import type { EngineTransaction, QueryOptions, StatementResult, StreamOptions } from '../engine.ts';
import { dbErrors } from '../../errors.ts';
import type { SqliteConnection } from './connection.ts';

/** A transaction on a connection that is used by nothing else until `release`. */
export class SqliteTransaction implements EngineTransaction {
  readonly #connection: SqliteConnection;
  readonly #release: () => void;
  #ended = false;
  /**
   * SQLite would go on after a failed statement; PostgreSQL refuses everything up to the rollback. Both refuse here,
   * so that code which works on one works on the other.
   */
  #aborted = false;
  /** Why nothing is saved any more: its time is over. */
  #cancelled: { readonly reason: unknown } | undefined;

  constructor(connection: SqliteConnection, release: () => void) {
    this.#connection = connection;
    this.#release = release;
  }

  async run(text: string, parameters: readonly unknown[], options?: QueryOptions): Promise<StatementResult> {
    return this.runNow(text, parameters, options);
  }

  runNow(text: string, parameters: readonly unknown[], { as, long }: QueryOptions = {}): StatementResult {
    this.#refuseWhenOver();
    try {
      return this.#connection.run(text, parameters, as, long?.deadlineMs);
    } catch (error) {
      this.#aborted = true;
      throw error;
    }
  }

  async *stream(
    text: string,
    parameters: readonly unknown[],
    chunkSize: number,
    { as }: StreamOptions = {},
  ): AsyncIterableIterator<StatementResult> {
    this.#refuseWhenOver();
    let rows: unknown[] = [];
    for (const row of this.#connection.iterate(text, parameters, as)) {
      rows.push(row);
      if (rows.length < chunkSize) continue;
      yield { rows, count: rows.length };
      rows = [];
    }
    if (rows.length > 0) yield { rows, count: rows.length };
  }

  async savepoint(name: string): Promise<void> {
    this.#refuseWhenOver();
    this.#connection.exec(`savepoint "${name}"`);
  }

  async releaseSavepoint(name: string): Promise<void> {
    this.#refuseWhenOver();
    this.#connection.exec(`release "${name}"`);
  }

  async rollbackToSavepoint(name: string): Promise<void> {
    if (this.#ended) return;
    this.#connection.exec(`rollback to "${name}"; release "${name}"`);
    this.#aborted = false;
  }

  async commit(): Promise<void> {
    this.#refuseWhenOver();
    this.#connection.commit();
    this.#end();
  }

  cancel(reason: unknown): void {
    this.#cancelled ??= { reason };
  }

  async rollback(): Promise<void> {
    if (this.#ended) return;
    try {
      // A full disk or a failed commit may have rolled back already.
      if (this.#connection.database.isTransaction) this.#connection.exec('rollback');
    } finally {
      this.#end();
    }
  }

  #end(): void {
    this.#ended = true;
    this.#release();
  }

  #refuseWhenOver(): void {
    if (this.#cancelled !== undefined) throw this.#cancelled.reason;
    if (this.#ended) throw dbErrors.transaction_finished({ message: 'This transaction has ended: await everything inside its callback.' });
    if (this.#aborted) {
      throw dbErrors.transaction_aborted({
        message: 'A statement failed earlier in this transaction: wrap statements that may fail in a savepoint, tx.transaction(…).',
      });
    }
  }
}
