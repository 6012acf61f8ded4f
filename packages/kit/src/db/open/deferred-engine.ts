import type { PoolStatus } from '../engine/database-observer.ts';
import type { Dialect } from '../dialect.ts';
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
} from '../engine/engine.ts';
import { dbErrors } from '../errors.ts';
import { reorder, toPositional } from '../sql/statement-text.ts';

/** Stands in until the engine is needed. What is asked of it opens the engine first. */
export class DeferredEngine implements Engine {
  readonly dialect: Dialect;
  readonly pool: PoolStatus = { max: 0, used: 0, waiting: 0 };
  readonly #open: () => Promise<Engine>;
  #opening: Promise<Engine> | undefined;
  #isClosed = false;

  constructor(dialect: Dialect, open: () => Promise<Engine>) {
    this.dialect = dialect;
    this.#open = open;
  }

  /** One for all who ask at the same time; after a failure the next one tries again. */
  async opened(): Promise<Engine> {
    if (this.#isClosed) throw dbErrors.database_unavailable({ message: 'this database handle is closed' });
    this.#opening ??= this.#open();
    const opening = this.#opening;
    try {
      return await opening;
    } catch (error) {
      if (this.#opening === opening) this.#opening = undefined;
      throw error;
    }
  }

  toOwnPlaceholders(text: string, parameters: readonly unknown[]): { readonly text: string; readonly parameters: readonly unknown[] } {
    if (this.dialect === 'postgres') return { text, parameters };
    const positional = toPositional(text);
    return { text: positional.text, parameters: reorder(parameters, positional.order) };
  }

  async run(text: string, parameters: readonly unknown[], options?: QueryOptions): Promise<StatementResult> {
    return (await this.opened()).run(text, parameters, options);
  }

  async *stream(
    text: string,
    parameters: readonly unknown[],
    chunkSize: number,
    options?: StreamOptions,
  ): AsyncIterableIterator<StatementResult> {
    yield* (await this.opened()).stream(text, parameters, chunkSize, options);
  }

  beginNow(): undefined {
    return undefined;
  }

  async begin(options: EngineTransactionOptions): Promise<EngineTransaction> {
    return (await this.opened()).begin(options);
  }

  isRetryable(): boolean {
    return false; // nothing has run
  }

  async listen(channel: string, listener: NotificationListener, options: ListenOptions): Promise<() => Promise<void>> {
    return (await this.opened()).listen(channel, listener, options);
  }

  async notify(db: NotifyingHandle, channel: string, payload: string): Promise<void> {
    await (await this.opened()).notify(db, channel, payload);
  }

  async backUp(target: (file: string) => string): Promise<string | undefined> {
    return (await this.opened()).backUp(target);
  }

  forgetStatements(): void {}

  /** An engine that is being opened is closed, too. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const engine = await this.#opening?.catch(() => undefined);
    await engine?.close();
  }
}
