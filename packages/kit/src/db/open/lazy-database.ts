import type { HandleContext } from '../engine/handle.ts';
import type { DatabaseOptions } from './database-options.ts';
import { DeferredEngine } from './deferred-engine.ts';
import { dialectOf, openEngine } from './open-engine.ts';
import { OpenedDatabase } from './opened-database.ts';

/** Knows its dialect and its address at once, and connects with its first statement or with `open`. */
export class LazyDatabase extends OpenedDatabase {
  readonly #engine: DeferredEngine;
  #options: DatabaseOptions;

  constructor(url: string, options: DatabaseOptions) {
    const engine = new DeferredEngine(dialectOf(url), async () => {
      const opened = await openEngine(url, this.#options);
      this.connect(opened, this.#options);
      return opened;
    });
    super(url, engine, options);
    this.#engine = engine;
    this.#options = options;
  }

  /** Rejects when the database cannot be reached. What a statement has opened before stays as it is. */
  async open(given: Required<Pick<DatabaseOptions, 'clock' | 'log' | 'createFile'>>): Promise<void> {
    this.#options = { ...this.#options, ...given };
    Object.assign<HandleContext, Partial<HandleContext>>(this.context, { clock: given.clock, log: given.log });
    await this.#engine.opened();
  }
}
