import { type ChildProcess, fork } from 'node:child_process';
import { existsSync } from 'node:fs';
import { extname } from 'node:path';
import type { Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import type { ReaderAnswer, ReaderOrder } from './reader-message.ts';

/**
 * After it was stopped, a statement that reads rows ends within 3 ms; a full-text search without a match and a sort do not
 * look at the flag, and their process is killed.
 */
const STOP_MS = 50;
const NUMBER_MAX = 0x7fff_ffff;

const PROGRAM = fileURLToPath(new URL(`./reader-process${extname(import.meta.url)}`, import.meta.url));

/** False where the program is not a file: in an application that was bundled into one. */
export function canStartReaders(): boolean {
  return existsSync(PROGRAM);
}

export interface ReaderOptions {
  readonly file: string;
  readonly durability: 'normal' | 'full';
  readonly busyDeadlineMs: number;
  /** How long a statement may go on after it was stopped. */
  readonly stopMs?: number;
}

/** Its process has ended: what it was reading is not known. */
export class ReaderEnded extends Error {
  override readonly name = 'ReaderEnded';
}

/**
 * A process that reads a SQLite file, one statement at a time. Statements go through the channel of Node in its binary form: 71 µs and 44 µs of
 * this process's CPU there and back for a row, 598 µs and 234 µs for 200 rows of ten columns; with frames of our own on its standard streams
 * 92, 52, 848 and 457 µs, and as JSON 47, 26, 533 and 272 µs, without bigints and bytes. The process starts in 70 ms.
 */
export class Reader {
  readonly #process: ChildProcess;
  readonly #stopMs: number;
  /** Resolves when the process has ended. */
  readonly ended: Promise<void>;
  #answered: { readonly done: (answer: ReaderAnswer) => void; readonly failed: (error: unknown) => void } | undefined;
  #asked: Promise<ReaderAnswer> | undefined;
  #number = 0;
  #isOver = false;
  #killing: NodeJS.Timeout | undefined;

  constructor({ file, durability, busyDeadlineMs, stopMs = STOP_MS }: ReaderOptions) {
    this.#stopMs = stopMs;
    this.#process = fork(PROGRAM, [file, durability, String(busyDeadlineMs)], {
      serialization: 'advanced',
      // Without the flags of this process: modules that they load first are the application's, and the port of its inspector is taken. NODE_OPTIONS
      // holds for every Node below this process, as the operator means it.
      execArgv: [],
      stdio: ['ignore', 'ignore', 'inherit', 'ipc', 'pipe'],
    });
    this.ended = new Promise((ended) => {
      const end = (cause: unknown): void => {
        this.#isOver = true;
        clearTimeout(this.#killing);
        this.#answered?.failed(new ReaderEnded('The process that was reading has ended.', { cause }));
        ended();
      };
      this.#process.once('exit', (code, signal) => end(`exit ${signal ?? code}`)).once('error', end);
    });
    this.#process.on('message', (answer: ReaderAnswer) => this.#answered?.done(answer));
    // The process ended meanwhile, which is seen above.
    this.#pipe?.on('error', () => undefined);
    this.#ref(false);
  }

  get pid(): number | undefined {
    return this.#process.pid;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  run(text: string, values: Extract<ReaderOrder, { kind: 'run' }>['values']): Promise<ReaderAnswer> {
    return this.#ask({ kind: 'run', number: this.#nextNumber(), text, values });
  }

  /** Opens a statement and reads its first rows. */
  open(text: string, values: Extract<ReaderOrder, { kind: 'open' }>['values'], size: number): Promise<ReaderAnswer> {
    return this.#ask({ kind: 'open', number: this.#nextNumber(), text, values, size });
  }

  next(size: number): Promise<ReaderAnswer> {
    return this.#ask({ kind: 'next', number: this.#nextNumber(), size });
  }

  close(): void {
    this.#send({ kind: 'close' });
  }

  forgetStatements(): void {
    this.#send({ kind: 'forget' });
  }

  /** Resolves when nothing is asked of it, or it has ended. */
  async free(): Promise<void> {
    await this.#asked?.catch(() => undefined);
  }

  /** Ends the statement that runs, or else the process. What was asked is answered, or fails with `ReaderEnded`. */
  stop(): void {
    if (this.#answered === undefined || this.#killing !== undefined) return;
    const number = Buffer.alloc(4);
    number.writeInt32LE(this.#number);
    this.#pipe?.write(number);
    this.#killing = setTimeout(() => this.kill(), this.#stopMs);
  }

  /** Nothing is lost: the process only reads. */
  kill(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    // Whoever waits for `ended` waits for this process to see it.
    this.#ref(true);
    this.#process.kill('SIGKILL');
  }

  /** Undefined when the process could not be started. */
  get #pipe(): (Writable & { ref(): void; unref(): void }) | undefined {
    return (this.#process.stdio as unknown[] | undefined)?.[4] as (Writable & { ref(): void; unref(): void }) | undefined;
  }

  #nextNumber(): number {
    return (this.#number = (this.#number % NUMBER_MAX) + 1);
  }

  #ask(order: ReaderOrder): Promise<ReaderAnswer> {
    return (this.#asked = this.#answer(order));
  }

  async #answer(order: ReaderOrder): Promise<ReaderAnswer> {
    this.#ref(true);
    try {
      return await new Promise<ReaderAnswer>((done, failed) => {
        this.#answered = { done, failed };
        if (this.#isOver) failed(new ReaderEnded('The process that was to read has ended.'));
        else this.#send(order);
      });
    } finally {
      this.#answered = undefined;
      clearTimeout(this.#killing);
      this.#killing = undefined;
      this.#ref(false);
    }
  }

  #send(order: ReaderOrder): void {
    // What cannot be sent goes to a process that has ended, or ends.
    if (this.#process.connected) this.#process.send(order, (error) => error !== null && this.kill());
    else this.kill();
  }

  /** A process without work does not keep this one alive. */
  #ref(isNeeded: boolean): void {
    const of = isNeeded ? 'ref' : 'unref';
    this.#process[of]();
    this.#process.channel?.[of]();
    this.#pipe?.[of]();
  }
}
