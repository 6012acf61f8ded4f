import type { QueryOptions, StatementResult, StatementRunner } from './engine.ts';
import { isObserved, type QueryEvent, type QueryObserver, reportQuery } from './query-observer.ts';

/** Runs statements and tells whoever listens: the database's own observer and those of the async context. */
export class ObservedRunner implements StatementRunner {
  readonly runner: StatementRunner;
  readonly #using: string;
  readonly #observer: QueryObserver | undefined;
  readonly #admit: ((text: string) => void) | undefined;

  constructor(runner: StatementRunner, using: string, observer?: QueryObserver, admit?: (text: string) => void) {
    this.runner = runner;
    this.#using = using;
    this.#observer = observer;
    this.#admit = admit;
  }

  /** The same listeners over a transaction of the same database. `admit` throws when it no longer takes statements. */
  over(runner: StatementRunner, admit?: (text: string) => void): ObservedRunner {
    return new ObservedRunner(runner, this.#using, this.#observer, admit);
  }

  /** Undefined when the statement has to wait, or somebody wants to know about it. */
  runNow(text: string, parameters: readonly unknown[]): StatementResult | undefined {
    if (this.runner.runNow === undefined || this.#observer !== undefined || isObserved()) return undefined;
    this.#admit?.(text);
    return this.runner.runNow(text, parameters);
  }

  async run(text: string, parameters: readonly unknown[], options?: QueryOptions): Promise<StatementResult> {
    this.#admit?.(text);
    if (this.#observer === undefined && !isObserved()) return this.runner.run(text, parameters, options);
    return this.#measured(text, parameters, options);
  }

  async *stream(text: string, parameters: readonly unknown[], chunkSize: number): AsyncIterableIterator<StatementResult> {
    this.#admit?.(text);
    const started = performance.now();
    let rowCount = 0;
    for await (const chunk of this.runner.stream(text, parameters, chunkSize)) {
      rowCount += chunk.count;
      yield chunk;
    }
    this.#report(text, parameters, rowCount, started, false);
  }

  async #measured(text: string, parameters: readonly unknown[], options?: QueryOptions): Promise<StatementResult> {
    const started = performance.now();
    try {
      const result = await this.runner.run(text, parameters, options);
      this.#report(text, parameters, result.count, started, false);
      return result;
    } catch (error) {
      this.#report(text, parameters, 0, started, true);
      throw error;
    }
  }

  #report(sql: string, parameters: readonly unknown[], rowCount: number, started: number, failed: boolean): void {
    const event: QueryEvent = {
      using: this.#using,
      sql,
      parameterCount: parameters.length,
      rowCount,
      durationMs: performance.now() - started,
      failed,
    };
    this.#observer?.(event);
    reportQuery(event);
  }
}
