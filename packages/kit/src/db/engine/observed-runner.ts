import { AsyncResource } from 'node:async_hooks';
import type { DatabaseObservers } from './database-observer.ts';
import type { EngineTransaction, QueryOptions, SentStatement, StatementResult, StatementRunner, StreamOptions } from './engine.ts';
import { dbErrors } from '../errors.ts';
import { isKitError } from '../../errors/kit-error.ts';
import { type LongStatement, longStatement, type StatementOutcome } from './long-statement.ts';
import { isObserved, type QueryEvent, reportQuery } from './query-observer.ts';
import type { StatementShares } from './statement-shares.ts';

/** Throws when the transaction no longer takes statements. */
type Admit = (text: string, writes?: boolean) => void;

/** Runs statements and reports them to the database's observers and to those of the async context. */
export class ObservedRunner implements StatementRunner {
  #runner: StatementRunner;
  readonly observers: DatabaseObservers;
  readonly #using: string;
  readonly #admit: Admit | undefined;
  /** Of the connections, for statements that may be long. Undefined in a transaction, which has its connection, and where there is one for all. */
  #shares: StatementShares | undefined;

  constructor(runner: StatementRunner, using: string, observers: DatabaseObservers, shares?: StatementShares, admit?: Admit) {
    this.#runner = runner;
    this.observers = observers;
    this.#using = using;
    this.#shares = shares;
    this.#admit = admit;
  }

  /** Statements go to this runner from now on: the database was opened. */
  connect(runner: StatementRunner, shares: StatementShares | undefined): void {
    this.#runner = runner;
    this.#shares = shares;
  }

  /** The same listeners over a transaction of the same database. `admit` throws when it no longer takes statements. */
  over(runner: StatementRunner, admit?: Admit): ObservedRunner {
    return new ObservedRunner(runner, this.#using, this.observers, undefined, admit);
  }

  /** Undefined when the statement has to wait. */
  runNow(text: string, parameters: readonly unknown[], given?: QueryOptions): StatementResult | undefined {
    if (this.#runner.runNow === undefined) return undefined;
    const options = this.#ofRequest(given);
    this.#admit?.(text, options?.writes);
    if (options?.long !== undefined && this.#shares !== undefined) return undefined;
    if (options?.long === undefined && !this.#isObserved()) return this.#runner.runNow(text, parameters, options);
    const started = performance.now();
    let result: StatementResult | undefined;
    try {
      result = this.#runner.runNow(text, parameters, options);
    } catch (error) {
      this.#report(text, parameters, 0, started, error);
      throw this.#counted(error, options?.long);
    }
    if (result !== undefined) this.#report(text, parameters, result.count, started);
    return result;
  }

  /** Throws when the transaction no longer takes statements. */
  run(text: string, parameters: readonly unknown[], given?: QueryOptions): Promise<StatementResult> {
    const options = this.#ofRequest(given);
    this.#admit?.(text, options?.writes);
    if (options?.long !== undefined) return this.#runLong(text, parameters, options, options.long);
    return this.#runSeen(text, parameters, options);
  }

  /** When the caller's share of the connections allows it; at once in a transaction, which has its connection. */
  async #runLong(text: string, parameters: readonly unknown[], options: QueryOptions, long: LongStatement): Promise<StatementResult> {
    try {
      const run = (admitted: LongStatement) => this.#runSeen(text, parameters, { ...options, long: admitted });
      return await (this.#shares === undefined ? run(long) : this.#shares.during(long, run));
    } catch (error) {
      throw this.#counted(error, long);
    }
  }

  /** The error of a statement, which is counted where it ended before its time, and says what it read. */
  #counted(error: unknown, long: LongStatement | undefined): unknown {
    const outcome = long && outcomeOf(error, long);
    if (outcome === undefined) return error;
    this.observers.ended(outcome, long as LongStatement);
    return outcome === 'timed_out' ? namingReads(error as Error, long as LongStatement) : error;
  }

  #runSeen(text: string, parameters: readonly unknown[], options?: QueryOptions): Promise<StatementResult> {
    return this.#isObserved() ? this.#runObserved(text, parameters, options) : this.#runner.run(text, parameters, options);
  }

  async #runObserved(text: string, parameters: readonly unknown[], options?: QueryOptions): Promise<StatementResult> {
    const started = performance.now();
    let result: StatementResult;
    try {
      result = await this.#runner.run(text, parameters, options);
    } catch (error) {
      this.#report(text, parameters, 0, started, error);
      throw error;
    }
    this.#report(text, parameters, result.count, started);
    return result;
  }

  /** See {@link EngineTransaction.send}. False: the engine has nothing to gain by it, and nothing was sent. */
  send(text: string, parameters: readonly unknown[], sent?: SentStatement): boolean {
    const runner = this.#runner as Partial<Pick<EngineTransaction, 'send'>>;
    if (runner.send === undefined) return false;
    // What is sent without waiting for its rows is sent for what it writes.
    this.#admit?.(text, true);
    if (!this.#isObserved()) {
      runner.send(text, parameters, sent);
      return true;
    }
    const started = performance.now();
    // The observers of the caller's async context, in which the answer does not arrive.
    const report = AsyncResource.bind((error: unknown, count: number) => this.#report(text, parameters, count, started, error));
    const answered = (error: unknown, count: number): void => {
      report(error, count);
      sent?.answered?.(error, count);
    };
    runner.send(text, parameters, { ...sent, answered });
    return true;
  }

  async *stream(
    text: string,
    parameters: readonly unknown[],
    chunkSize: number,
    given?: StreamOptions,
  ): AsyncIterableIterator<StatementResult> {
    const options = this.#ofRequest(given, true);
    this.#admit?.(text);
    const started = performance.now();
    let rowCount = 0;
    let failure: unknown;
    try {
      for await (const chunk of this.#runner.stream(text, parameters, chunkSize, options)) {
        rowCount += chunk.count;
        yield chunk;
      }
    } catch (error) {
      failure = error;
      throw this.#counted(error, options?.long);
    } finally {
      this.#shares?.serveNext();
      if (this.#isObserved()) this.#report(text, parameters, rowCount, started, failure);
    }
  }

  /**
   * A statement that may be long belongs to the request it runs in. In a transaction it only has its deadline: what was written goes on when the
   * client is gone.
   */
  #ofRequest<O extends Pick<QueryOptions, 'mayBeLong' | 'long'>>(options: O | undefined, isStream = false): O | undefined {
    if (options?.mayBeLong === undefined || options.long !== undefined) return options;
    const long = longStatement(options.mayBeLong, isStream);
    if (long === undefined) return options;
    const { deadlineMs, reads, owner } = long;
    return { ...options, long: this.#admit === undefined ? long : { deadlineMs, reads, owner } };
  }

  #isObserved(): boolean {
    return this.observers.observesQuery() || isObserved();
  }

  #report(sql: string, parameters: readonly unknown[], rowCount: number, started: number, error?: unknown): void {
    const event: QueryEvent = {
      using: this.#using,
      dialect: this.observers.dialect,
      sql,
      parameterCount: parameters.length,
      rowCount,
      durationMs: performance.now() - started,
      failed: error !== undefined,
      errorType: error === undefined ? undefined : errorType(error),
    };
    this.observers.queried(event);
    reportQuery(event);
  }
}

/** For the log: what the statement reads, in names without values, and the index that it misses. */
function namingReads(error: Error, { reads = 'a statement' }: LongStatement): Error {
  return dbErrors.statement_timeout({ cause: error, message: `${error.message} (${reads})` });
}

/** Undefined for failures that have nothing to do with its time. */
function outcomeOf(error: unknown, { signal }: LongStatement): StatementOutcome | undefined {
  if (signal?.aborted === true) return 'cancelled';
  if (isKitError(error, 'statement_timeout')) return 'timed_out';
  return isKitError(error, 'too_busy') || isKitError(error, 'database_busy') ? 'rejected' : undefined;
}

/** A code or a class, never the message: PostgreSQL's messages repeat values. */
function errorType(error: unknown): string {
  const { code, name } = (error ?? {}) as { readonly code?: unknown; readonly name?: unknown };
  if (typeof code === 'string') return code;
  return typeof name === 'string' ? name : 'Error';
}
