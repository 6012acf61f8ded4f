import type { ServerResponse } from 'node:http';
import { Readable } from 'node:stream';

export interface ExportStreamOptions {
  /** The text before the first row. */
  readonly opening: string;
  /** The last line of a file that ends with an error. Without it the connection is cut: a short file must not look whole. */
  readonly errorLine?: (error: unknown) => string;
  readonly onError: (error: unknown) => void;
  readonly response: ServerResponse;
  readonly signal: AbortSignal;
  /** A client that takes no byte for this long is cut. */
  readonly idleMs: number;
  /** An export that takes longer is cut: its snapshot holds back vacuum and checkpoints. */
  readonly durationMs: number;
}

/**
 * The text of an export. One chunk is read whenever the client has taken the one before, so that a slow reader slows the cursor. The source
 * is always finalised: end, error, disconnect, shutdown or a limit.
 */
export class ExportStream extends Readable {
  readonly #source: AsyncIterator<string>;
  readonly #options: ExportStreamOptions;
  readonly #deadline: NodeJS.Timeout;
  readonly #stop: () => void;
  #opening: string | undefined;
  #isReading = false;
  #isOver = false;

  constructor(source: AsyncIterator<string>, options: ExportStreamOptions) {
    super({ highWaterMark: 64 * 1024 });
    this.#source = source;
    this.#options = options;
    this.#opening = options.opening;
    const { response, signal, idleMs, durationMs } = options;
    this.#deadline = setTimeout(() => this.#fail(new ExportCut(`it took longer than ${durationMs} ms`)), durationMs);
    // Node's own timer: it starts over with every byte the client takes. While the database is working, the client is not waited for.
    response.setTimeout(idleMs, () => {
      if (!this.#isReading && !this.destroyed) this.destroy(new ExportCut(`the client took nothing for ${idleMs} ms`));
    });
    this.#stop = () => this.destroy(signal.reason as Error);
    if (signal.aborted) queueMicrotask(this.#stop);
    else signal.addEventListener('abort', this.#stop, { once: true });
  }

  override _read(): void {
    if (this.#opening !== undefined) {
      const opening = this.#opening;
      this.#opening = undefined;
      // An empty push would end nothing and read nothing.
      if (opening !== '') {
        this.push(opening);
        return;
      }
    }
    if (this.#isReading || this.#isOver) return;
    void this.#next();
  }

  async #next(): Promise<void> {
    this.#isReading = true;
    try {
      const { done, value } = await this.#source.next();
      this.#isReading = false;
      if (this.#isOver || this.destroyed) return;
      if (done === true) this.#end();
      else this.push(value);
    } catch (error) {
      this.#isReading = false;
      this.#fail(error);
    }
  }

  #end(): void {
    this.#isOver = true;
    this.push(null);
  }

  #fail(error: unknown): void {
    if (this.#isOver || this.destroyed) return;
    const { errorLine, onError } = this.#options;
    if (errorLine === undefined) {
      this.destroy(error as Error);
      return;
    }
    onError(error);
    this.#isOver = true;
    this.push(errorLine(error));
    this.push(null);
    // The snapshot is not kept until a slow client has read the last line.
    void this.#release();
  }

  #release(): Promise<unknown> {
    clearTimeout(this.#deadline);
    this.#options.signal.removeEventListener('abort', this.#stop);
    return Promise.resolve(this.#source.return?.()).catch(() => undefined);
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    if (error !== null && !this.#isOver) this.#options.onError(error);
    // Closed when the statement is, so that an ended export never has its snapshot still open.
    // oxlint-disable-next-line promise/no-promise-in-callback, promise/no-callback-in-promise -- the stream's own way to wait
    void this.#release().finally(() => callback(error));
  }
}

/** Why the server ended an export. */
export class ExportCut extends Error {
  override readonly name = 'ExportCut';

  constructor(why: string) {
    super(`The export was cut: ${why}.`);
  }
}
