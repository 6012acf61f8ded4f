import { writeSync } from 'node:fs';

/** Lines wait in memory up to this much while the descriptor takes none. */
const QUEUE_BYTES_MAX = 16 * 1024 * 1024;
const RETRY_MS = 50;

export interface LineWriterOptions {
  readonly queueBytesMax?: number;
  /** Called with the number of lines that were lost, once the descriptor takes lines again. */
  readonly onRecovered?: (dropped: number) => void;
}

/**
 * Writes lines to a descriptor without ever waiting for it. What a full pipe or a full disk does not take stays queued and is
 * tried again; beyond the ceiling lines are dropped and counted. A pipe must be in non-blocking mode.
 */
export class LineWriter {
  readonly #fd: number;
  readonly #queueBytesMax: number;
  readonly #onRecovered: ((dropped: number) => void) | undefined;
  /** Lines not handed to the descriptor yet. */
  #fresh = '';
  /** Bytes of which the descriptor may have taken a part. */
  #started: Buffer = Buffer.alloc(0);
  #dropped = 0;
  #retry: NodeJS.Timeout | undefined;

  constructor(fd: number, options: LineWriterOptions = {}) {
    this.#fd = fd;
    this.#queueBytesMax = options.queueBytesMax ?? QUEUE_BYTES_MAX;
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
    // While a retry is pending the descriptor is known to be full: asking it again on every request would cost a system call each.
    if (this.#retry === undefined) this.#drain();
  }

  /** A last attempt before the process ends. */
  close(): void {
    clearTimeout(this.#retry);
    this.#retry = undefined;
    this.flush();
    clearTimeout(this.#retry);
  }

  #drain(): void {
    try {
      while (this.#started.length > 0 || this.#fresh !== '') this.#write();
    } catch {
      // EAGAIN: the reader is behind. Anything else (a full disk, a closed pipe) may pass as well; neither is a reason to stop serving.
      this.#retry = setTimeout(() => {
        this.#retry = undefined;
        this.#drain();
      }, RETRY_MS);
      this.#retry.unref();
      return;
    }
    if (this.#dropped === 0) return;
    const dropped = this.#dropped;
    this.#dropped = 0;
    this.#onRecovered?.(dropped);
  }

  #write(): void {
    if (this.#started.length === 0) {
      this.#started = Buffer.from(this.#fresh);
      this.#fresh = '';
    }
    this.#started = this.#started.subarray(writeSync(this.#fd, this.#started));
  }
}
