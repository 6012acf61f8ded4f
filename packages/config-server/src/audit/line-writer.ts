import { writeSync } from 'node:fs';

/** How many bytes of lines wait in memory while the descriptor accepts none. */
const QUEUE_BYTES_MAX = 16 * 1024 * 1024;
const RETRY_MS = 50;
/** While the process waits to end: a pipe holds 64 KiB, so 16 MiB take more than a second even so. */
const CLOSING_RETRY_MS = 5;

/**
 * A burst of lines larger than a pipe (64 KiB) finds it full although its reader is active. The writer waits this long, once,
 * before the pipe counts as stalled and lines are queued.
 */
const PIPE_WAIT_MS = 20;
const sleeper = new Int32Array(new SharedArrayBuffer(4));

export interface LineWriterOptions {
  readonly queueBytesMax?: number;
  /** Called with the error code when the descriptor fails for another reason than a slow reader; once until it accepts lines again. */
  readonly onFailing?: (code: string) => void;
  /** Called with the number of dropped lines, once the descriptor accepts lines again. */
  readonly onRecovered?: (dropped: number) => void;
}

/**
 * Writes lines to a descriptor without waiting long for it. What a full pipe or disk does not accept stays queued and is retried;
 * beyond the limit lines are dropped and counted. A pipe must be in non-blocking mode.
 */
export class LineWriter {
  readonly #fd: number;
  readonly #queueBytesMax: number;
  readonly #onFailing: ((code: string) => void) | undefined;
  readonly #onRecovered: ((dropped: number) => void) | undefined;
  /** Lines not handed to the descriptor yet. */
  #fresh = '';
  /** Bytes that the descriptor may have accepted in part. */
  #started: Buffer = Buffer.alloc(0);
  #dropped = 0;
  #failing = false;
  #retry: NodeJS.Timeout | undefined;
  /** Present once the writer is closing. */
  #closed: PromiseWithResolvers<void> | undefined;

  constructor(fd: number, options: LineWriterOptions = {}) {
    this.#fd = fd;
    this.#queueBytesMax = options.queueBytesMax ?? QUEUE_BYTES_MAX;
    this.#onFailing = options.onFailing;
    this.#onRecovered = options.onRecovered;
  }

  get dropped(): number {
    return this.#dropped;
  }

  /** Adds a line, without its line feed; `flush` writes it. */
  add(line: string): void {
    if (this.#started.length + this.#fresh.length + line.length >= this.#queueBytesMax) this.#dropped++;
    else this.#fresh += `${line}\n`;
  }

  flush(): void {
    // While a retry is pending the descriptor is known to be full: trying on every request would cost a system call each.
    if (this.#retry === undefined) this.#drain(PIPE_WAIT_MS);
  }

  /**
   * Resolves when the queue is empty, or cannot be written for another reason than a slow reader. The caller limits the time: until the
   * process ends, writing goes on.
   */
  close(): Promise<void> {
    this.#closed ??= Promise.withResolvers();
    clearTimeout(this.#retry);
    this.#retry = undefined;
    this.flush();
    return this.#closed.promise;
  }

  #drain(waitMs: number): void {
    let waits = waitMs;
    while (this.#started.length > 0 || this.#fresh !== '') {
      const code = this.#write();
      if (code === undefined) continue;
      if (code === 'EAGAIN' && waits-- > 0) Atomics.wait(sleeper, 0, 0, 1);
      else return this.#retryLater(code);
    }
    this.#failing = false;
    this.#closed?.resolve();
    if (this.#dropped === 0) return;
    const dropped = this.#dropped;
    this.#dropped = 0;
    return this.#onRecovered?.(dropped);
  }

  #retryLater(code: string): void {
    if (code !== 'EAGAIN' && !this.#failing) {
      this.#failing = true;
      this.#onFailing?.(code);
    }
    if (code !== 'EAGAIN' && this.#closed !== undefined) return this.#closed.resolve();
    this.#retry = setTimeout(
      () => {
        this.#retry = undefined;
        this.#drain(0);
      },
      this.#closed === undefined ? RETRY_MS : CLOSING_RETRY_MS,
    );
    this.#retry.unref();
  }

  /** Writes as much as the descriptor accepts. A code means nothing was written (slow reader, full disk, closed pipe), which may pass. */
  #write(): string | undefined {
    try {
      if (this.#started.length === 0) this.#writeFresh();
      else this.#started = this.#started.subarray(writeSync(this.#fd, this.#started));
      return undefined;
    } catch (error) {
      return (error as NodeJS.ErrnoException).code ?? 'unknown error';
    }
  }

  /** As text: nearly always everything is written, and then no bytes need to be kept. With one connection this is once per request. */
  #writeFresh(): void {
    const lines = this.#fresh;
    const written = writeSync(this.#fd, lines);
    this.#fresh = '';
    if (written < Buffer.byteLength(lines)) this.#started = Buffer.from(lines).subarray(written);
  }
}
