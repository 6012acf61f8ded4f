import { BoundedMap } from '../../../values/bounded-map.ts';
import type { QueryOptions, StatementResult } from '../../engine.ts';
import { isKitError } from '../../../../errors/kit-error.ts';
import { dbErrors } from '../../../errors.ts';
import type { DbLog } from '../../../log.ts';
import { isBusy } from '../busy.ts';
import { encodeSqlite } from '../codec.ts';
import { type ResultColumns, RowDecoder } from '../row-decoder.ts';
import { translateFailure } from '../translate-failure.ts';
import { Reader, ReaderEnded, type ReaderOptions } from './reader.ts';
import type { ReaderAnswer, ReaderFailure } from './reader-message.ts';
import { StatementEnd, type StatementLimits } from './statement-end.ts';

export interface ReaderPoolOptions extends ReaderOptions {
  /** Statements that run at the same time, besides streams. */
  readonly max: number;
  readonly log: DbLog;
  /** How long a process without work is kept. */
  readonly idleMs?: number;
}

/** Of a stream, the limits are those of each chunk. */
export interface ReadOptions extends StatementLimits {
  readonly as?: QueryOptions['as'] | undefined;
}

/** A process takes 50 MB. */
const IDLE_MS = 60_000;
/** Shapes of results; a statement has one. */
const DECODERS_MAX = 500;

/**
 * Processes with read-only connections, for statements that may read many rows: SQLite runs a statement to its end in the thread that sent it, and
 * only a process can be stopped then. They start on first need. A statement has its process to itself, and so has a stream for as long as it is
 * open, with the snapshot that it reads.
 */
export class ReaderPool {
  readonly #options: ReaderPoolOptions;
  readonly #readers = new Set<Reader>();
  readonly #decoders = new BoundedMap<string, RowDecoder>(DECODERS_MAX);
  #idle: Reader[] = [];
  readonly #waiting: (() => void)[] = [];
  #running = 0;
  #isClosed = false;
  #idleTimer: NodeJS.Timeout | undefined;

  constructor(options: ReaderPoolOptions) {
    this.#options = options;
  }

  /** Of the processes there are. */
  get pids(): number[] {
    return [...this.#readers].flatMap(({ pid }) => pid ?? []);
  }

  async run(text: string, parameters: readonly unknown[], options: ReadOptions): Promise<StatementResult> {
    const values = parameters.map(encodeSqlite);
    const end = new StatementEnd(options);
    try {
      await this.#acquire(end);
      // The caller does not wait until the process is free again.
      const reading = this.#retried(end, (reader) => reader.run(text, values)).finally(() => this.#release());
      const rows = this.#decode(await Promise.race([reading, end.reached]), options.as);
      return { rows, count: rows.length };
    } finally {
      end.clear();
    }
  }

  async *stream(
    text: string,
    parameters: readonly unknown[],
    chunkSize: number,
    options: ReadOptions,
  ): AsyncIterableIterator<StatementResult> {
    const values = parameters.map(encodeSqlite);
    const reader = this.#take();
    const read = (asked: Promise<ReaderAnswer>): Promise<unknown[]> => {
      const rows = this.#chunk(reader, asked, options);
      // The next chunk is read while this one is being used.
      rows.catch(() => undefined);
      return rows;
    };
    try {
      let next: Promise<unknown[]> | undefined = read(reader.open(text, values, chunkSize));
      while (next !== undefined) {
        const rows: unknown[] = await next;
        next = rows.length < chunkSize ? undefined : read(reader.next(chunkSize));
        if (rows.length > 0) yield { rows, count: rows.length };
      }
    } finally {
      reader.stop();
      void this.#giveBackFreed(reader);
    }
  }

  async #chunk(reader: Reader, asked: Promise<ReaderAnswer>, options: ReadOptions): Promise<unknown[]> {
    const end = new StatementEnd(options);
    end.stop = () => reader.stop();
    try {
      return this.#decode(await Promise.race([asked, end.reached]), options.as);
    } catch (error) {
      throw error instanceof ReaderEnded ? this.#unavailable(error) : error;
    } finally {
      end.clear();
    }
  }

  /** The tables have changed. */
  forgetStatements(): void {
    for (const reader of this.#readers) reader.forgetStatements();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#idleTimer);
    for (const enter of this.#waiting.splice(0)) enter();
    const readers = [...this.#readers];
    for (const reader of readers) reader.kill();
    await Promise.all(readers.map(({ ended }) => ended));
  }

  /** What a process was reading when it was killed from outside is read again by another. */
  async #retried(end: StatementEnd, ask: (reader: Reader) => Promise<ReaderAnswer>): Promise<ReaderAnswer> {
    for (let isRetry = false; ; isRetry = true) {
      const reader = this.#take();
      end.stop = () => reader.stop();
      if (end.isReached) reader.stop();
      try {
        return await ask(reader);
      } catch (error) {
        if (!(error instanceof ReaderEnded) || end.isReached) throw error;
        if (isRetry || this.#isClosed) throw this.#unavailable(error);
      } finally {
        this.#giveBack(reader);
      }
    }
  }

  /** Waits until fewer than `max` statements run. First come, first served. */
  async #acquire(end: StatementEnd): Promise<void> {
    if (!end.isReached && this.#running < this.#options.max) {
      this.#running += 1;
      return;
    }
    let enter!: () => void;
    const entered = new Promise<void>((resolve) => (enter = resolve));
    this.#waiting.push(enter);
    try {
      await Promise.race([entered, end.reached]);
    } catch (error) {
      const place = this.#waiting.indexOf(enter);
      // Its turn came at the same moment.
      if (place < 0) this.#release();
      else this.#waiting.splice(place, 1);
      throw isKitError(error, 'statement_timeout') ? dbErrors.database_busy({ message: 'every reader process of SQLite was busy' }) : error;
    }
  }

  #release(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#running -= 1;
    else next();
  }

  #take(): Reader {
    if (this.#isClosed) throw dbErrors.database_unavailable({ message: 'this database handle is closed' });
    const idle = this.#idle.pop();
    if (idle !== undefined) return idle;
    const reader = this.#start();
    this.#readers.add(reader);
    void this.#forgetEnded(reader);
    return reader;
  }

  async #forgetEnded(reader: Reader): Promise<void> {
    await reader.ended;
    this.#readers.delete(reader);
    this.#idle = this.#idle.filter((each) => each !== reader);
  }

  async #giveBackFreed(reader: Reader): Promise<void> {
    await reader.free();
    reader.close();
    this.#giveBack(reader);
  }

  #start(): Reader {
    try {
      return new Reader(this.#options);
    } catch (error) {
      throw this.#unavailable(error);
    }
  }

  #giveBack(reader: Reader): void {
    if (reader.isOver) return;
    if (this.#isClosed || this.#idle.length >= this.#options.max) return reader.kill();
    this.#idle.push(reader);
    clearTimeout(this.#idleTimer);
    this.#idleTimer = setTimeout(() => {
      for (const each of this.#idle.splice(0)) each.kill();
    }, this.#options.idleMs ?? IDLE_MS).unref();
  }

  #unavailable(cause: unknown): Error {
    if (!this.#isClosed) this.#options.log.warn({ err: cause }, 'a reader process of SQLite failed');
    return dbErrors.database_unavailable({ cause, message: 'the process that was reading the SQLite file has ended' });
  }

  #decode({ columns, rows = [], failure }: ReaderAnswer, as: 'wire' | undefined): unknown[] {
    if (failure !== undefined) throw failed(failure);
    if (columns === undefined) return rows;
    return this.#decoders.getOrMake(columns, () => new RowDecoder(JSON.parse(columns) as ResultColumns)).decode(rows, as);
  }
}

/** The error as the connection of this process would have thrown it. */
function failed({ message, ...members }: ReaderFailure): unknown {
  const error = Object.assign(new Error(message), members);
  return isBusy(error) ? dbErrors.database_busy({ cause: error, message }) : translateFailure(error);
}
