import { AsyncLocalStorage } from 'node:async_hooks';
import { setImmediate as othersFirst } from 'node:timers/promises';
import type { App } from '../../app/declare/module.ts';
import type { Database, Db } from '../../db/engine/db.ts';
import type { ServerSentEvent } from '../../http/declare/server-sent-event.ts';
import { WakeUp } from '../../work/wake-up.ts';
import type { Item } from '../declare/item.ts';
import type { Policy } from '../policy/policy.ts';
import { CHANGES_CHANNEL, keyOfText, priorRow } from '../write/change-log.ts';
import { RowStatements } from '../write/row-statements.ts';
import { type ChangedRow, changedRows } from './changed-rows.ts';
import { isKitError } from '../../errors/kit-error.ts';
import type { LiveList, LiveRow, LiveStream } from './live-stream.ts';
import { isContinued, type LogPosition, positionOf } from './log-position.ts';
import { SharedAccess } from './shared-access.ts';
import { StreamIndex } from './stream-index.ts';

/** A notification may be lost, and there is none behind a pooler or from other processes on SQLite: the log is looked at this often. */
const LOOK_EVERY_MS = 400;
/** How often rights are asked that change without a change of a row: with the time that asking takes for ten thousand lists, within a second. */
const RIGHTS_EVERY_MS = 700;
/** After a failed look. */
const RETRY_MS = 1_000;
/** Lists whose rights are asked together, before requests have their turn: one takes about 20 µs. */
const ASKED_TOGETHER = 500;

/** It reads for all streams: not as part of the request that came first, nor in its time. */
const outsideOfRequests = AsyncLocalStorage.snapshot();

/** Everything that a cycle reads is of one moment. */
export const SNAPSHOT = Object.freeze({ isolation: 'repeatable read', readOnly: true } as const);

/** How a row was and is. Undefined: not known. */
interface Compared {
  readonly key: unknown;
  readonly keyText: string;
  readonly prior: Item | null | undefined;
  readonly row: Item | null;
}

/**
 * Reads the change log for all streams of one database in this process. A cycle is one snapshot: what changed since the last one, and the rows as they are;
 * so that a stream has, after each batch, the list of that moment.
 */
export class ChangeReader {
  readonly #db: Database;
  readonly #log: App['log'];
  readonly #indexes = new Map<string, StreamIndex>();
  /** Streams whose position is not yet that of the reader. */
  readonly #joining = new Set<LiveStream>();
  readonly #wakeUp = new WakeUp();
  #position: LogPosition | undefined;
  #isRunning = false;
  #checkedAt = 0;
  #isChecking = false;

  constructor(db: Database, log: App['log']) {
    this.#db = db;
    this.#log = log;
  }

  /** The stream gets the changes since its position until the returned function is called. */
  add(stream: LiveStream): () => void {
    const { policy } = stream.source;
    const index = this.#indexes.get(policy.tableName) ?? new StreamIndex(policy);
    this.#indexes.set(policy.tableName, index);
    index.add(stream);
    this.#joining.add(stream);
    this.#start();
    this.#wakeUp.wake();
    return () => {
      index.delete(stream);
      this.#joining.delete(stream);
      if (index.size === 0 && this.#indexes.get(policy.tableName) === index) this.#indexes.delete(policy.tableName);
      if (this.#indexes.size === 0) this.#wakeUp.wake();
    };
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
      this.#position = undefined;
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
      for (const stream of joining) this.#joining.delete(stream);
      this.#position = now;
      void this.#checkRights();
      return Math.min(LOOK_EVERY_MS, Math.max(1, this.#checkedAt + RIGHTS_EVERY_MS - performance.now()));
    } catch (error) {
      if (this.#db.closed) this.#failAll(error);
      else this.#log.warn({ err: error }, 'could not read the changes of live lists');
      return RETRY_MS;
    }
  }

  #failAll(error: unknown): void {
    for (const stream of this.#streams()) stream.fail(error);
    this.#indexes.clear();
  }

  async #read(tx: Db, joining: readonly LiveStream[]): Promise<{ readonly now: LogPosition; readonly outcomes: Outcomes }> {
    const now = await positionOf(tx);
    const outcomes: Outcomes = new Map();
    // Also a stream that came while the snapshot is read is not at the position of the others.
    if (this.#position !== undefined) await this.#compare(tx, this.#position, now, (stream) => !this.#joining.has(stream), outcomes);
    for (const [, streams] of Map.groupBy(joining, ({ position: { text, origin } }) => `${text} ${origin}`)) {
      const those = new Set(streams);
      await this.#compare(tx, (streams[0] as LiveStream).position, now, (stream) => those.has(stream), outcomes);
    }
    return { now, outcomes };
  }

  /** What becomes of the streams that are at a position. */
  async #compare(
    tx: Db,
    since: LogPosition,
    now: LogPosition,
    isMeant: (stream: LiveStream) => boolean,
    outcomes: Outcomes,
  ): Promise<void> {
    if (since.text === now.text && since.origin === now.origin) return;
    const tables = [...this.#indexes.keys()];
    const changed = (await isContinued(tx, since, now)) ? await changedRows(tx, since, tables) : undefined;
    for (const [table, index] of this.#indexes) {
      const rows = changed === undefined ? 'too many' : changed.get(table);
      if (rows === undefined) continue;
      if (rows === 'too many') {
        for (const stream of index.all()) if (isMeant(stream)) outcomes.set(stream, 'reset');
        continue;
      }
      const read = new SharedReads(tx);
      const concerned = [...(await concernedStreams(tx, index, rows))].filter(([stream]) => isMeant(stream) && !stream.isOver);
      for (const part of parts(concerned)) {
        const lists = await openAll(
          part.map(([stream]) => stream),
          tx,
        );
        for (const [place, [stream, compared]] of part.entries())
          outcomes.set(stream, await outcomeOf(now, stream, compared, read, lists[place] as PromiseSettledResult<LiveList>));
      }
    }
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
    for (const part of parts(this.#streams())) {
      const lists = await openAll(part);
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
function openAll(streams: readonly LiveStream[], tx?: Db): Promise<PromiseSettledResult<LiveList>[]> {
  const shared = new SharedAccess();
  return Promise.allSettled(streams.map(({ source }) => source.open(shared, tx)));
}

/** The events of a batch, a list that has to be read again, or an error that ends the stream. */
type Outcome = readonly ServerSentEvent[] | 'reset' | { readonly error: unknown };
type Outcomes = Map<LiveStream, Outcome>;

function apply(stream: LiveStream, outcome: Outcome): void {
  if (outcome === 'reset') stream.reset();
  else if ('error' in outcome) stream.fail(outcome.error);
  else if (outcome.length > 0) stream.push(outcome);
}

/** The caller may not read the list any more. Anything else is a failure of the server. */
function isRefusal(error: unknown): boolean {
  return isKitError(error) && error.status < 500;
}

async function concernedStreams(tx: Db, index: StreamIndex, changed: readonly ChangedRow[]): Promise<Map<LiveStream, Compared[]>> {
  const { policy } = index;
  const keys = changed.map(({ key }) => keyOfText(policy, key));
  const named = keys.filter((key) => key !== null);
  const rows = named.length === 0 ? [] : await new RowStatements(policy).selectMany(tx, undefined, policy.key, named, { lock: false });
  const textOf = (key: unknown) => String(policy.key.encode(key));
  const byKey = new Map(rows.map((row) => [textOf(row[policy.key.name]), row]));
  const concerned = new Map<LiveStream, Compared[]>();
  for (const [place, { key: keyText, prior: logged }] of changed.entries()) {
    const key = keys[place];
    const row = key === null ? null : (byKey.get(textOf(key)) ?? null);
    const prior = logged === undefined || logged === null ? logged : priorRow(policy, logged.values, logged.areTexts);
    const compared: Compared = { key, keyText, prior, row };
    for (const stream of prior === undefined ? index.all() : index.concerned(prior, row)) {
      const known = concerned.get(stream);
      if (known === undefined) concerned.set(stream, [compared]);
      else known.push(compared);
    }
  }
  return concerned;
}

/** One batch: the rows that are in the list now, and the keys of those that were. */
async function outcomeOf(
  now: LogPosition,
  stream: LiveStream,
  compared: readonly Compared[],
  read: SharedReads,
  opened: PromiseSettledResult<LiveList>,
): Promise<Outcome> {
  const { source } = stream;
  try {
    if (opened.status === 'rejected') throw opened.reason;
    const list = opened.value;
    if (list.rights !== stream.list.rights) return 'reset';
    const wanted = compared.filter(({ row }) => row !== null && list.contains(row));
    const items = wanted.length === 0 ? NONE : await read.of(list, wanted);
    const events: ServerSentEvent[] = [];
    for (const { keyText, prior, row } of compared) {
      const data = items.get(keyText);
      if (data !== undefined) events.push({ event: 'upsert', data });
      else if (prior === undefined) {
        if (isPossible(source.policy, list.bounds, row)) return 'reset';
      } else if (prior !== null && list.contains(prior)) events.push({ event: 'remove', data: { key: JSON.parse(keyText) as unknown } });
    }
    return events.length === 0 ? events : [...events, { event: 'ready', data: {}, id: await source.seal(now, list.rights) }];
  } catch (error) {
    if (isRefusal(error)) return { error };
    // It begins again by itself: an error that stays is its own, and the others go on.
    stream.reset();
    throw error;
  }
}

/** Items of one snapshot: callers who see the same rows and fields share them. */
class SharedReads {
  readonly #tx: Db;
  readonly #known = new Map<object, Map<string, ReturnType<LiveList['read']>>>();

  constructor(tx: Db) {
    this.#tx = tx;
  }

  of(list: LiveList, wanted: readonly Compared[]): ReturnType<LiveList['read']> {
    const read = () =>
      list.read(
        this.#tx,
        wanted.map(({ key }) => key),
      );
    if (list.shape === undefined) return read();
    const ofShape = this.#known.get(list.shape) ?? new Map<string, ReturnType<LiveList['read']>>();
    this.#known.set(list.shape, ofShape);
    const place = JSON.stringify([list.rights, wanted.map(({ keyText }) => keyText)]);
    const known = ofShape.get(place) ?? read();
    ofShape.set(place, known);
    return known;
  }
}

const NONE: ReadonlyMap<string, LiveRow> = new Map();

/** Whether a row whose past is not known may have been in the list: the owner and the tenant of a row never change. */
function isPossible({ bounds: { owner, tenant } }: Policy, bounds: ReadonlyMap<string, unknown>, row: Item | null): boolean {
  if (row === null) return true;
  return [owner, tenant].every((name) => name === undefined || !bounds.has(name) || String(bounds.get(name)) === String(row[name]));
}

const readers = new WeakMap<Database, ChangeReader>();

/** One per database and process. */
export function changeReaderOf(db: Database, log: App['log']): ChangeReader {
  let reader = readers.get(db);
  if (reader === undefined) readers.set(db, (reader = new ChangeReader(db, log)));
  return reader;
}
