import type { Db } from '../../db/engine/db.ts';
import type { ServerSentEvent } from '../../http/declare/server-sent-event.ts';
import type { Item } from '../declare/item.ts';
import type { Policy } from '../policy/policy.ts';
import { WakeUp } from '../../work/wake-up.ts';
import type { LogPosition } from './log-position.ts';
import type { SharedAccess } from './shared-access.ts';

/** The data of an `upsert`. */
export interface LiveRow {
  readonly key: unknown;
  readonly item: Item;
}

/** The list of one caller, as it is decided in one transaction. */
export interface LiveList {
  /** Same text, same rows and fields for this caller. */
  readonly rights: string;
  /** What items are made by: lists with the same rights and the same one read the same items. Undefined: they depend on the caller. */
  readonly shape: object | undefined;
  /** Columns that every row of the list has one value in, by name. */
  readonly bounds: ReadonlyMap<string, unknown>;
  /** Whether a row as code has it is in the list. */
  contains(row: Item): boolean;
  /** The rows of the list, or those among them with these keys; by the key as the log has it. */
  read(tx: Db, keys?: readonly unknown[]): Promise<ReadonlyMap<string, LiveRow>>;
}

/** What a stream asks again whenever it reads: the caller's rights are those of the moment. */
export interface LiveSource {
  readonly policy: Policy;
  readonly signal: AbortSignal;
  /** Throws where the caller may not read the list any more. Lists that are opened together share what the access of resources is asked. */
  open(access: SharedAccess, tx?: Db): Promise<LiveList>;
  /** The position as the client keeps it; empty where it is too long. */
  seal(position: LogPosition, rights: string): Promise<string>;
}

/** Events that wait for a slow client. More of them, and the list is read again. */
export const WAITING_EVENTS_MAX = 2_000;

/** One open stream, between the reader of the log and the response. */
export class LiveStream {
  readonly source: LiveSource;
  /** Decided when it was last read from its start. Only this of the list: the rest has the transaction that it was read in. */
  readonly list: Pick<LiveList, 'rights' | 'bounds'>;
  /** Where it begins. Later it is where the reader is. */
  readonly position: LogPosition;
  #waiting: ServerSentEvent[] = [];
  #failure: { readonly error: unknown } | undefined;
  #isReset = false;
  readonly #news = new WakeUp();

  constructor(source: LiveSource, { rights, bounds }: LiveList, position: LogPosition) {
    this.source = source;
    this.list = { rights, bounds };
    this.position = position;
  }

  /** No more batches until it is read again. */
  get isOver(): boolean {
    return this.#isReset || this.#failure !== undefined || this.source.signal.aborted;
  }

  push(batch: readonly ServerSentEvent[]): void {
    if (this.#waiting.length + batch.length > WAITING_EVENTS_MAX) return this.reset();
    this.#waiting.push(...batch);
    this.#news.wake();
  }

  /** What waits is dropped: the list is read again. */
  reset(): void {
    this.#waiting = [];
    this.#isReset = true;
    this.#news.wake();
  }

  fail(error: unknown): void {
    this.#failure ??= { error };
    this.#news.wake();
  }

  /** The next events; undefined when the list has to be read again. Throws when the caller may not read it any more. */
  async next(): Promise<readonly ServerSentEvent[] | undefined> {
    const { signal } = this.source;
    const stop = () => this.#news.wake();
    signal.addEventListener('abort', stop, { once: true });
    try {
      for (;;) {
        if (signal.aborted) throw signal.reason;
        if (this.#failure !== undefined) throw this.#failure.error;
        if (this.#isReset) return undefined;
        if (this.#waiting.length > 0) return this.#waiting.splice(0);
        await this.#news.next(Infinity);
      }
    } finally {
      signal.removeEventListener('abort', stop);
    }
  }
}
