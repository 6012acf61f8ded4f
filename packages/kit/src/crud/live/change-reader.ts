import { AsyncLocalStorage } from 'node:async_hooks';
import { setImmediate as othersFirst } from 'node:timers/promises';
import type { App } from '../../app/declare/module.ts';
import type { Database, Db } from '../../db/engine/db.ts';
import { WakeUp } from '../../work/wake-up.ts';
import { CHANGES_CHANNEL } from '../write/change-log.ts';
import { type Comparison, concernedStreams, isRefusal, type Outcome, outcomeOf, type Outcomes, SharedReads } from './batch.ts';
import { type ChangedRows, changedRows } from './changed-rows.ts';
import type { LiveList, LivePlace, LiveStream } from './live-stream.ts';
import { isContinued, type LogPosition, positionOf } from './log-position.ts';
import { SharedAccess } from './shared-access.ts';
import { StreamIndex } from './stream-index.ts';

/** A notification may be lost, and there is none behind a pooler or from other processes on SQLite: the log is looked at this often. */
const LOOK_EVERY_MS = 400;
/** How often rights are asked that change without a change of a row: with the time that asking takes for ten thousand lists, within a second. */
const RIGHTS_EVERY_MS = 700;
/** After a failed look. */
const RETRY_MS = 1_000;
/** The next look for the sake of time is not sooner: a clock may stand still. */
const SOONEST_MS = 10;
/** Lists whose rights are asked together, before requests have their turn: one takes about 20 µs. */
const ASKED_TOGETHER = 500;

/** It reads for all streams: not as part of the request that came first, nor in its time. */
const outsideOfRequests = AsyncLocalStorage.snapshot();

/** Everything that a cycle reads is of one moment. */
export const SNAPSHOT = Object.freeze({ isolation: 'repeatable read', readOnly: true } as const);

/**
 * Reads the change log for all streams of one database in this process. A cycle is one snapshot: what changed since the last one, and the rows as they are;
 * so that a stream has, after each batch, the list of that moment.
 */
export class ChangeReader {
  readonly #db: Database;
  readonly #log: App['log'];
  readonly #clock: App['clock'];
  readonly #indexes = new Map<string, StreamIndex>();
  /** Streams whose place is not yet that of the reader, with where they begin. */
  readonly #joining = new Map<LiveStream, LivePlace>();
  readonly #wakeUp = new WakeUp();
  /** Of all streams that are not joining. */
  #place: LivePlace | undefined;
  #isRunning = false;
  #checkedAt = 0;
  #isChecking = false;

  constructor({ db, log, clock }: Pick<App, 'db' | 'log' | 'clock'>) {
    this.#db = db;
    this.#log = log;
    this.#clock = clock;
  }

  now(): Date {
    return this.#clock.now();
  }

  /** The stream gets the changes since its place, until it is removed. */
  add(stream: LiveStream, begin: LivePlace): void {
    const { policy } = stream.source;
    const index = this.#indexes.get(policy.tableName) ?? new StreamIndex(policy);
    this.#indexes.set(policy.tableName, index);
    index.add(stream);
    this.#joining.set(stream, begin);
    this.#start();
    this.#wakeUp.wake();
  }

  remove(stream: LiveStream): void {
    const { tableName } = stream.source.policy;
    const index = this.#indexes.get(tableName);
    index?.delete(stream);
    this.#joining.delete(stream);
    if (index?.size === 0) this.#indexes.delete(tableName);
    if (this.#indexes.size === 0) this.#wakeUp.wake();
  }

  #start(): void {
    if (this.#isRunning) return;
    this.#isRunning = true;
    const running = outsideOfRequests(() => this.#run());
    void running.finally(() => {
      this.#isRunning = false;
      // A stream may have come while the reader stopped.
      if (this.#indexes.size > 0) this.#start();
    });
  }

  async #run(): Promise<void> {
    const stop = await this.#listen();
    try {
      let waitMs = 0;
      while (this.#indexes.size > 0) {
        await this.#wakeUp.next(waitMs);
        waitMs = await this.#look();
      }
    } finally {
      this.#place = undefined;
      await stop?.().catch(() => undefined);
    }
  }

  /** Without notifications it looks by itself. */
  async #listen(): Promise<(() => Promise<void>) | undefined> {
    const wake = () => this.#wakeUp.wake();
    try {
      return await this.#db.listen(CHANGES_CHANNEL, wake, { onReconnect: wake });
    } catch (error) {
      this.#log.warn({ err: error }, 'could not listen for changes of live lists; polling');
      return undefined;
    }
  }

  /** Returns how long to wait for the next look. */
  async #look(): Promise<number> {
    try {
      const joining = [...this.#joining];
      const { now, outcomes } = await this.#db.transaction((tx) => this.#read(tx, joining), SNAPSHOT);
      // Not before the whole snapshot was read: a stream must not be ahead of the position that the next one begins at.
      for (const [stream, outcome] of outcomes) apply(stream, outcome);
      for (const [stream] of joining) this.#joining.delete(stream);
      this.#place = now;
      void this.#checkRights();
      const soonest = Math.min(
        this.#checkedAt + RIGHTS_EVERY_MS - performance.now(),
        Math.max(SOONEST_MS, this.#nextMs() + 1 - this.now().getTime()),
      );
      return Math.min(LOOK_EVERY_MS, Math.max(1, soonest));
    } catch (error) {
      for (const { times } of this.#indexes.values()) times.forget();
      if (this.#db.closed) this.#failAll(error);
      else this.#log.warn({ err: error }, 'could not read the changes of live lists');
      return RETRY_MS;
    }
  }

  #failAll(error: unknown): void {
    for (const stream of this.#streams()) stream.fail(error);
    this.#indexes.clear();
  }

  /** When time alone moves a row next. */
  #nextMs(): number {
    return Math.min(Infinity, ...[...this.#indexes.values()].map(({ times }) => times.nextMs));
  }

  async #read(tx: Db, joining: readonly Joining[]): Promise<{ readonly now: LivePlace; readonly outcomes: Outcomes }> {
    const now = { position: await positionOf(tx), at: this.now() };
    const outcomes: Outcomes = new Map();
    const place = this.#place;
    // Also a stream that came while the snapshot is read is not at the place of the others.
    if (place !== undefined)
      await this.#compare(tx, { since: place, now, isFollowed: true, isMeant: (stream) => !this.#joining.has(stream) }, outcomes);
    for (const [, together] of Map.groupBy(joining, placeOf)) {
      const those = new Set(together.map(([stream]) => stream));
      const [, since] = together[0] as Joining;
      await this.#compare(tx, { since, now, isFollowed: false, isMeant: (stream) => those.has(stream) }, outcomes);
    }
    const isSetBack = place !== undefined && now.at < place.at;
    for (const { times } of this.#indexes.values()) await times.lookAhead(tx, now.at, isSetBack);
    return { now, outcomes };
  }

  /** What becomes of the streams that are at a place. */
  async #compare(tx: Db, compared: Comparison, outcomes: Outcomes): Promise<void> {
    const { since, now, isMeant } = compared;
    const changed = await this.#changedRows(tx, since.position, now.position);
    for (const [table, index] of this.#indexes) {
      const rows = changed === undefined ? 'too many' : changed.get(table);
      const found = rows === 'too many' ? rows : await concernedStreams(tx, index, rows ?? [], compared);
      if (found === 'too many') {
        for (const stream of index.all()) if (isMeant(stream)) outcomes.set(stream, 'reset');
        continue;
      }
      const read = new SharedReads(tx);
      const concerned = [...found].filter(([stream]) => isMeant(stream) && !stream.isOver);
      for (const part of parts(concerned)) {
        const lists = await openAll(
          part.map(([stream]) => stream),
          now.at,
          tx,
        );
        for (const [place, [stream, rowsOfStream]] of part.entries())
          outcomes.set(stream, await outcomeOf(compared, stream, rowsOfStream, read, lists[place] as PromiseSettledResult<LiveList>));
      }
    }
  }

  /** Undefined: the log does not tell it. */
  async #changedRows(tx: Db, since: LogPosition, now: LogPosition): Promise<ChangedRows | undefined> {
    if (since.text === now.text && since.origin === now.origin) return new Map();
    return (await isContinued(tx, since, now)) ? changedRows(tx, since, [...this.#indexes.keys()]) : undefined;
  }

  #streams(): LiveStream[] {
    const streams: LiveStream[] = [];
    for (const index of this.#indexes.values()) streams.push(...index.all());
    return streams;
  }

  /**
   * Rights that changed without a change of a row. A caller that cannot be looked up keeps its stream. Beside the reading of changes, which a rule that takes long
   * must not keep back.
   */
  async #checkRights(): Promise<void> {
    if (this.#isChecking || performance.now() - this.#checkedAt < RIGHTS_EVERY_MS) return;
    this.#isChecking = true;
    this.#checkedAt = performance.now();
    let failure: unknown;
    for (const part of parts(this.#streams().filter(({ source }) => !source.isSteady))) {
      const lists = await openAll(part, this.now());
      for (const [place, stream] of part.entries()) {
        const list = lists[place] as PromiseSettledResult<LiveList>;
        if (stream.isOver) continue;
        if (list.status === 'fulfilled') {
          if (list.value.rights !== stream.list.rights) stream.reset();
        } else if (isRefusal(list.reason)) stream.fail(list.reason);
        else failure ??= list.reason;
      }
      await othersFirst();
    }
    this.#isChecking = false;
    if (failure !== undefined) this.#log.warn({ err: failure }, 'could not look up the rights of the callers of live lists');
  }
}

function* parts<T>(all: readonly T[]): Generator<readonly T[]> {
  for (let from = 0; from < all.length; from += ASKED_TOGETHER) yield all.slice(from, from + ASKED_TOGETHER);
}

/** The lists as their callers have them now. What an access is asked about all of them is one statement. */
function openAll(streams: readonly LiveStream[], at: Date, tx?: Db): Promise<PromiseSettledResult<LiveList>[]> {
  const shared = new SharedAccess();
  return Promise.allSettled(streams.map(({ source, times }) => source.open(shared, { at, isTimed: times.length > 0 }, tx)));
}

type Joining = readonly [LiveStream, begin: LivePlace];

/** Streams with the same one are compared together. The time counts where rows come and go by it. */
function placeOf([{ times }, { position, at }]: Joining): string {
  return `${position.text} ${position.origin} ${times.length === 0 ? '' : at.getTime()}`;
}

function apply(stream: LiveStream, outcome: Outcome): void {
  if (outcome === 'reset') stream.reset();
  else if ('error' in outcome) stream.fail(outcome.error);
  else if (outcome.length > 0) stream.push(outcome);
}

const readers = new WeakMap<Database, ChangeReader>();

/** One per database and process. */
export function changeReaderOf(app: Pick<App, 'db' | 'log' | 'clock'>): ChangeReader {
  let reader = readers.get(app.db);
  if (reader === undefined) readers.set(app.db, (reader = new ChangeReader(app)));
  return reader;
}
