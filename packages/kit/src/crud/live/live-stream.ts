import type { Db } from '../../db/engine/db.ts';
import type { ServerSentEvent } from '../../http/declare/server-sent-event.ts';
import type { TimeBound } from '../../db/sql/where/moving-where.ts';
import type { Item } from '../declare/item.ts';
import type { Policy } from '../policy/policy.ts';
import { type Bound, narrowest } from './equalities.ts';
import type { LogPosition } from './log-position.ts';
import type { Moment } from './moment.ts';
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
  /** Whether the item of a row is another one than with these prior values. */
  isChanged(db: Db, prior: Item, row: Item): boolean | Promise<boolean>;
  /** What is compared with the time, in conditions and in fields: then rows come, go and change by time alone. */
  readonly times: readonly TimeBound[];
  /** Whether a row as code has it is in the list at a time: undefined when it is not, else a text that is another when its fields are, by time alone. */
  stateOf(row: Item, at: Date): string | undefined;
  /** The rows of the list at the moment that it was opened for, or those among them with these keys; by the key as the log has it. */
  read(tx: Db, keys?: readonly unknown[]): Promise<ReadonlyMap<string, LiveRow>>;
}

/** Up to where a stream has its list: the changes before a position, at a time. */
export interface LivePlace {
  readonly position: LogPosition;
  readonly at: Date;
}

/** What a stream asks again whenever it reads: the caller's rights are those of the moment. */
export interface LiveSource {
  readonly policy: Policy;
  readonly signal: AbortSignal;
  /** The rights change with the caller alone, who is looked at by others. */
  readonly isSteady: boolean;
  /** Throws where the caller may not read the list any more. Lists that are opened together share what the access of resources is asked. */
  open(access: SharedAccess, moment: Moment, tx?: Db): Promise<LiveList>;
  /** The position and its time as the client keeps them; empty where they are too long. */
  seal(place: LivePlace, rights: string): Promise<string>;
}

/** Events that wait for a slow client. More of them, and the list is read again. */
export const WAITING_EVENTS_MAX = 2_000;

/** One open stream, between the reader of the log and the response. */
export class LiveStream {
  readonly source: LiveSource;
  /** Decided when it was last read from its start. Only this of the list: the rest has the transaction that it was read in. */
  readonly list: Pick<LiveList, 'rights'>;
  /** Where changes look for it. */
  readonly bound: Bound | undefined;
  /** What its list compares with the time. */
  readonly times: readonly TimeBound[];
  #waiting: ServerSentEvent[] = [];
  #failure: { readonly error: unknown } | undefined;
  #isReset = false;
  /** Set while the response waits. */
  #wake: (() => void) | undefined;

  constructor(source: LiveSource, { rights, bounds, times }: LiveList) {
    this.source = source;
    this.list = { rights };
    this.bound = narrowest(source.policy, bounds);
    this.times = times;
  }

  /** No more batches until it is read again. */
  get isOver(): boolean {
    return this.#isReset || this.#failure !== undefined || this.source.signal.aborted;
  }

  push(batch: readonly ServerSentEvent[]): void {
    if (this.#waiting.length + batch.length > WAITING_EVENTS_MAX) return this.reset();
    this.#waiting.push(...batch);
    this.#wake?.();
  }

  /** What waits is dropped: the list is read again. */
  reset(): void {
    this.#waiting = [];
    this.#isReset = true;
    this.#wake?.();
  }

  fail(error: unknown): void {
    this.#failure ??= { error };
    this.#wake?.();
  }

  /**
   * The next events; undefined when the list has to be read again. Rejects when the caller may not read it any more, or left. One promise, one function and no timer,
   * because thousands of idle streams wait here.
   */
  next(): Promise<readonly ServerSentEvent[] | undefined> {
    const { signal } = this.source;
    return new Promise((resolve, reject) => {
      const take = (): void => {
        if (!this.isOver && this.#waiting.length === 0) return;
        signal.removeEventListener('abort', take);
        this.#wake = undefined;
        if (signal.aborted) reject(signal.reason);
        else if (this.#failure !== undefined) reject(this.#failure.error);
        else resolve(this.#isReset ? undefined : this.#waiting.splice(0));
      };
      this.#wake = take;
      signal.addEventListener('abort', take);
      take();
    });
  }
}
