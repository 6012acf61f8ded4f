import type pg from 'pg';
import type { EngineTransaction, QueryOptions, SentStatement, StatementResult, StreamOptions } from '../engine.ts';
import { dbErrors } from '../../errors.ts';
import { driverStatement, type QuerySettings, sendOnClient, streamOnClient, toResult } from './client-queries.ts';
import { sendCancelRequest } from './cancel-request.ts';
import { isConnectionFailure, isReadOnlyServer, isUnsent, translateFailure } from './connection-failure.ts';
import { deadlineStatement } from './long-statements.ts';
import { type DriverResult, type DriverStatement, isPrepared, PrecededQuery, StatementQuery } from './statement-query.ts';

/** The server's answer to every statement after one that failed. */
const ABORTED = '25P02';

const BEGIN = 'begin';

/** A COMMIT that waits for a standby is not cut: it would have happened, and be reported as failed. */
const COMMIT_UNLIMITED = 'set local statement_timeout = 0; commit';

/**
 * A transaction on one client of the pool. BEGIN goes out with the first statement (a round trip less), and nothing else goes out before it is
 * answered: a statement behind a BEGIN that failed would be committed on its own.
 */
export class PostgresTransaction implements EngineTransaction {
  readonly #client: pg.PoolClient;
  readonly #settings: QuerySettings;
  readonly #begin: string;
  /** Settled when BEGIN is answered. Undefined: nothing was sent yet. */
  #begun: Promise<void> | undefined;
  #isOpen = false;
  /** The error of BEGIN: there is no transaction, and there will be none. */
  #beginFailure: unknown;
  /** COMMIT or ROLLBACK is on its way: a statement behind it would be committed on its own. */
  #isEnding = false;
  #ended = false;
  /** Statements that were sent and not answered yet. */
  #unanswered = 0;
  /** Those of them that had to wait for BEGIN, or took it along. */
  readonly #early: Promise<void>[] = [];
  /** The error of a statement that was sent and not awaited. It holds until the savepoint around the statement is rolled back. */
  #failure: unknown;
  #isCorked = false;
  /** Why nothing is saved any more: its time is over. */
  #cancelled: { readonly reason: unknown } | undefined;
  /** A statement brought its deadline, which holds for those behind it. */
  #isLimited = false;
  /** The error of a server that takes no changes: the connection is of no use to others. */
  #readOnlyServer: unknown;

  constructor(client: pg.PoolClient, settings: QuerySettings, begin = BEGIN) {
    this.#client = client;
    this.#settings = settings;
    this.#begin = begin;
  }

  async run(text: string, parameters: readonly unknown[], options?: QueryOptions): Promise<StatementResult> {
    this.#refuseWhenOver();
    try {
      const statement = driverStatement(this.#settings, text, parameters, options);
      if (options?.long !== undefined) return toResult(await this.#runLimited(statement, options.long.deadlineMs));
      if (!this.#isOpen) return toResult(await this.#runEarly(statement));
      const answer = sendOnClient(this.#client, statement);
      this.#uncork();
      return toResult(await answer);
    } catch (error) {
      throw this.#translated(this.#cause(error));
    }
  }

  send(text: string, parameters: readonly unknown[], { answered, failureOf }: SentStatement = {}): void {
    this.#refuseWhenOver();
    const statement = driverStatement(this.#settings, text, parameters);
    const settle = (error: unknown, count: number): void => {
      this.#unanswered -= 1;
      if (error !== undefined) this.#failure ??= failureOf?.(error) ?? error;
      answered?.(error, count);
    };
    this.#unanswered += 1;
    if (!this.#isOpen) {
      const early = this.#runEarly(statement).then(
        (result) => settle(undefined, result.rowCount ?? 0),
        (error: unknown) => settle(error, 0),
      );
      this.#early.push(early);
      return;
    }
    this.#cork();
    // A callback, not a promise: `commit` relies on a failure being noted at once.
    const query = new StatementQuery(statement, (error, result) => (error ? settle(error, 0) : settle(undefined, result.rowCount ?? 0)));
    this.#client.query(query);
  }

  /** The server ends it after so long. */
  async #runLimited(statement: DriverStatement, deadlineMs: number): Promise<DriverResult> {
    if (!this.#isOpen) await this.#opened();
    this.#isLimited = true;
    const answer = new Promise<DriverResult>((resolve, reject) => {
      const query = new PrecededQuery(deadlineStatement(deadlineMs), statement, (error, result) =>
        error ? reject(error) : resolve(result),
      );
      this.#client.query(query);
    });
    this.#uncork();
    return answer;
  }

  /** Runs a statement that was asked for before BEGIN was answered: the first takes it along, others wait for it. */
  async #runEarly(statement: DriverStatement): Promise<DriverResult> {
    if (this.#begun === undefined && isPrepared(statement)) return this.#beginWith(statement);
    await this.#opened();
    return sendOnClient(this.#client, statement);
  }

  #beginWith(statement: DriverStatement): Promise<DriverResult> {
    const { promise: begun, resolve: opened, reject: failed } = Promise.withResolvers<void>();
    begun.catch(() => undefined); // the statement fails with it
    this.#begun = begun;
    return new Promise((resolve, reject) => {
      const first = new PrecededQuery({ text: this.#begin }, statement, (error, result) => {
        if (first.hasBegun) {
          this.#isOpen = true;
          opened();
        } else {
          this.#beginFailure = error;
          failed(error);
        }
        if (error) reject(error);
        else resolve(result);
      });
      this.#client.query(first);
    });
  }

  /** Waits until the transaction is open. Rejects when it cannot be, or has ended meanwhile. */
  async #opened(): Promise<void> {
    this.#begun ??= this.#beginAlone();
    await this.#begun;
    this.#refuseWhenOver();
  }

  async #beginAlone(): Promise<void> {
    try {
      await this.#client.query(this.#begin);
      this.#isOpen = true;
    } catch (error) {
      this.#beginFailure = error;
      throw error;
    }
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

  /** A write in a transaction that was opened to read is a mistake of its code, not the state of the database. */
  #translated(error: unknown): unknown {
    if (!isReadOnlyServer(error)) return translateFailure(error);
    if (this.#begin.includes('read only')) return error;
    this.#readOnlyServer = error;
    return translateFailure(error);
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
    if (!this.#isOpen) await this.#opened();
    try {
      yield* streamOnClient(this.#client, text, parameters, chunkSize, options);
    } catch (error) {
      throw this.#translated(this.#cause(error));
    }
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
    if (this.#begun === undefined) return this.#end();
    if (this.#early.length > 0) await Promise.all(this.#early);
    if (!this.#isOpen) await this.#opened();
    // The driver reports a statement that it could not send at the next tick: PostgreSQL would not know of it, and commit.
    if (this.#unanswered > 0) await new Promise<void>((done) => process.nextTick(done));
    if (this.#failure !== undefined) throw this.#translated(this.#failure);
    // Asked for while it waited for the others.
    this.#refuseWhenOver();
    let result: pg.QueryResult | undefined;
    try {
      this.#isEnding = true;
      const answer = this.#client.query(this.#isLimited ? COMMIT_UNLIMITED : 'commit') as Promise<pg.QueryResult | pg.QueryResult[]>;
      this.#uncork();
      result = [await answer].flat().at(-1);
    } catch (error) {
      // PostgreSQL has rolled back, or will.
      if (!isConnectionFailure(error) || isUnsent(error)) throw this.#translated(this.#cause(error));
      throw dbErrors.commit_unknown({ cause: error, message: 'the connection was lost during COMMIT' });
    }
    this.#end();
    // COMMIT of a transaction in which a statement failed "succeeds" by rolling back; saying nothing would lose a write.
    if (result?.command === 'ROLLBACK') {
      if (this.#failure !== undefined) throw this.#translated(this.#failure);
      throw dbErrors.transaction_aborted({
        message: 'A statement failed in this transaction and its error was swallowed: nothing was saved.',
      });
    }
  }

  /** The server is asked to stop what it runs. The request may come late, so the connection is closed, and COMMIT is not sent any more. */
  cancel(reason: unknown): void {
    if (this.#isEnding || this.#ended || this.#cancelled !== undefined) return;
    this.#cancelled = { reason };
    if (this.#begun !== undefined) void sendCancelRequest(this.#client);
  }

  async rollback(): Promise<void> {
    if (this.#ended) return;
    this.#isEnding = true;
    if (this.#begun === undefined) return this.#end();
    if (this.#cancelled !== undefined) return this.#discard(dbErrors.database_unavailable({ message: 'the transaction was cancelled' }));
    if (this.#beginFailure !== undefined) return this.#discard(this.#beginFailure);
    try {
      const answer = this.#client.query('rollback');
      this.#uncork();
      await answer;
      this.#end();
    } catch (error) {
      this.#discard(error); // which rolls back too
    }
  }

  /** Closes the connection. */
  #discard(error: unknown): void {
    this.#ended = true;
    this.#client.release(error instanceof Error ? error : true);
  }

  #end(): void {
    this.#ended = true;
    this.#client.release(this.#readOnlyServer as Error | undefined);
  }

  #refuseWhenOver(): void {
    if (this.#cancelled !== undefined) throw this.#cancelled.reason;
    if (this.#isEnding || this.#ended)
      throw dbErrors.transaction_finished({ message: 'This transaction has ended: await everything inside its callback.' });
  }
}
