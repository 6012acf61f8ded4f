import { Readable } from 'node:stream';
import { ClientPace, pacedStreams } from '../../http/exchange/client-pace.ts';
import { INPUT_LIMITS } from '../../options/input-limits.ts';

export interface ExportStreamOptions {
  /** The text before the first row. */
  readonly opening: string;
  /** The last line of a file that ends with an error. Without it the connection is cut: a short file must not look whole. */
  readonly errorLine?: (error: unknown) => string;
  readonly onError: (error: unknown) => void;
  readonly signal: AbortSignal;
  /** A client that takes nothing for this long is cut, and so is one that takes less than the minimum on average. */
  readonly idleMs: number;
  /** An export that takes longer is cut: its snapshot holds back vacuum and checkpoints. */
  readonly durationMs: number;
  /** Called when the rows are no longer needed, perhaps twice. */
  readonly onEnd: () => void;
}

/** Bytes that are handed over together. Small ones show how fast the client is. */
const PIECE_BYTES = 64 * 1024;

/**
 * The text of an export. One chunk is read whenever the client has taken the one before, so that a slow reader slows the cursor. The source
 * is always finalised: end, error, disconnect, shutdown or a limit.
 */
export class ExportStream extends Readable {
  readonly #source: AsyncIterator<string>;
  readonly #options: ExportStreamOptions;
  readonly #deadline: NodeJS.Timeout;
  readonly #stop: () => void;
  readonly #pace: ClientPace;
  /** Bytes that were read and not handed over yet. */
  #rest: Buffer;
  #handedOver = 0;
  #isReading = false;
  #isOver = false;

  constructor(source: AsyncIterator<string>, options: ExportStreamOptions) {
    super({ highWaterMark: PIECE_BYTES });
    this.#source = source;
    this.#options = options;
    this.#rest = Buffer.from(options.opening);
    const { signal, idleMs, durationMs } = options;
    this.#deadline = setTimeout(() => this.#fail(new ExportCut(`it took longer than ${durationMs} ms`)), durationMs);
    pacedStreams.add(this);
    this.#pace = new ClientPace({
      verb: 'took',
      idleMs,
      bytesPerSecond: INPUT_LIMITS.clientBytesPerSecond,
      onSlow: (why) => this.destroy(new ExportCut(why)),
    });
    this.#stop = () => this.destroy(signal.reason as Error);
    if (signal.aborted) queueMicrotask(this.#stop);
    else signal.addEventListener('abort', this.#stop, { once: true });
  }

  override _read(): void {
    this.#pace.moved(this.#handedOver);
    this.#handedOver = 0;
    if (this.#rest.length > 0) this.#handOver();
    else if (!this.#isReading && !this.#isOver) void this.#next();
  }

  /** An empty piece would end nothing and read nothing. */
  #handOver(): void {
    const piece = this.#rest.subarray(0, PIECE_BYTES);
    this.#rest = this.#rest.subarray(PIECE_BYTES);
    this.#handedOver = piece.length;
    this.#pace.wait();
    this.push(piece);
    if (this.#isOver && this.#rest.length === 0) this.push(null);
  }

  async #next(): Promise<void> {
    this.#isReading = true;
    try {
      const { done, value } = await this.#source.next();
      this.#isReading = false;
      if (this.#isOver || this.destroyed) return;
      if (done === true) this.#end();
      else this.#take(value);
    } catch (error) {
      this.#isReading = false;
      this.#fail(error);
    }
  }

  #take(text: string): void {
    this.#rest = Buffer.from(text);
    if (this.#rest.length > 0) this.#handOver();
    else void this.#next();
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
    // The rows that were read already still go out before the line.
    this.#rest = Buffer.concat([this.#rest, Buffer.from(errorLine(error))]);
    if (this.#handedOver === 0) this.#handOver();
    // The snapshot is not kept until a slow client has read the last line.
    void this.#release();
  }

  #release(): Promise<unknown> {
    clearTimeout(this.#deadline);
    if (this.destroyed) this.#pace.stop();
    this.#options.signal.removeEventListener('abort', this.#stop);
    return Promise.resolve(this.#source.return?.())
      .catch(() => undefined)
      .finally(this.#options.onEnd);
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
    super(`The export was aborted: ${why}.`);
  }
}
