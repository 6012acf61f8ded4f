import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { DbLog } from '../../log.ts';
import { CHECKPOINT_PAGES, type SqliteConnection } from './connection.ts';
import type { WriterQueue } from './writer-queue.ts';

/** Pages in the log at which a commit copies them itself, whatever the thread does. */
const PAGES_MAX = 4 * CHECKPOINT_PAGES;

/** Writes between two looks at the log, which take 7 µs each. */
const WRITES_PER_LOOK = 32;

const THREAD = new URL(`./checkpoint-thread${extname(import.meta.url)}`, import.meta.url);

export interface CheckpointerOptions {
  readonly file: string;
  readonly writer: SqliteConnection;
  readonly queue: WriterQueue;
  readonly busyDeadlineMs: number;
  readonly log: DbLog;
}

interface Pass {
  /** With the pages in the log. */
  readonly done: (pages: number) => void;
  readonly failed: (error: unknown) => void;
}

/**
 * Copies the log of a database to its file in a thread. SQLite itself does it in a commit, which then waits for the disk (15 to 90 ms for 4,000 pages),
 * and the event loop with it. The thread starts when the log is first half as long.
 */
export class Checkpointer {
  readonly #options: CheckpointerOptions;
  #thread: Worker | undefined;
  #pass: Pass | undefined;
  #copying: Promise<void> | undefined;
  #isOver = false;
  #writes = 0;
  /** Pages in the log after the last copy. The next write starts it over, unless a reader still needs it. */
  #copied = 0;

  constructor(options: CheckpointerOptions) {
    this.#options = options;
    options.writer.checkpointAt(PAGES_MAX);
  }

  /** After a write. It never throws: the write is done. */
  wrote(): void {
    this.#writes += 1;
    if (this.#writes < WRITES_PER_LOOK) return;
    this.#writes = 0;
    if (this.#copying !== undefined || this.#isOver || !this.#isLong()) return;
    this.#copying = this.#copy()
      .catch((error: unknown) => this.#giveUp(error))
      .finally(() => (this.#copying = undefined));
  }

  #isLong(): boolean {
    const { writer } = this.#options;
    // Of a transaction that could not be rolled back.
    if (writer.database.isTransaction) return false;
    try {
      const pages = writer.logPages();
      if (pages < this.#copied) this.#copied = 0;
      // A thread takes 50 to 250 ms to start.
      if (pages >= CHECKPOINT_PAGES / 2) this.#thread ??= this.#startThread();
      return pages - this.#copied >= CHECKPOINT_PAGES;
    } catch (error) {
      this.#giveUp(error);
      return false;
    }
  }

  /** Before the connections of the database are closed. */
  async close(): Promise<void> {
    this.#isOver = true;
    await this.#copying;
    const thread = this.#thread;
    if (thread === undefined) return;
    thread.ref();
    thread.postMessage('close');
    await new Promise<void>((exited) => thread.once('exit', () => exited()));
  }

  /** Most of it while writes go on, the rest while none does: only a log that is copied whole is started over. */
  async #copy(): Promise<void> {
    const first = await this.#askThread();
    const second = await this.#askThread();
    this.#copied = second === first ? second : await this.#copyRest(second);
  }

  async #copyRest(known: number): Promise<number> {
    const { queue, busyDeadlineMs } = this.#options;
    try {
      await queue.acquire(busyDeadlineMs);
    } catch {
      return known; // a long transaction: the next copy takes the rest
    }
    try {
      return await this.#askThread();
    } finally {
      queue.release();
    }
  }

  /** Has the thread copy what it can. Returns the pages that the log had. */
  async #askThread(): Promise<number> {
    const thread = (this.#thread ??= this.#startThread());
    // A write may be waiting for the copy.
    thread.ref();
    try {
      return await new Promise<number>((done, failed) => {
        this.#pass = { done, failed };
        thread.postMessage('copy');
      });
    } finally {
      this.#pass = undefined;
      thread.unref();
    }
  }

  #startThread(): Worker {
    // Without the flags of this process: modules that they load first are the application's.
    const thread = new Worker(THREAD, { workerData: this.#options.file, execArgv: [] });
    thread.unref();
    thread.on('message', (pages: number) => this.#pass?.done(pages));
    thread.on('error', (error) => (this.#pass === undefined ? this.#giveUp(error) : this.#pass.failed(error)));
    thread.on('exit', () => {
      this.#thread = undefined;
      this.#pass?.failed(new Error('The thread has ended.'));
    });
    return thread;
  }

  #giveUp(error: unknown): void {
    this.#isOver = true;
    this.#options.writer.checkpointAt(CHECKPOINT_PAGES);
    this.#options.log.warn({ err: error }, 'the SQLite checkpoint thread failed; checkpoints now run during commits');
  }
}
