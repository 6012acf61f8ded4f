import type { Db } from '../../db/engine/db.ts';
import { isKitError } from '../../errors/kit-error.ts';
import type { ServerSentEvent } from '../../http/declare/server-sent-event.ts';
import type { Item } from '../declare/item.ts';
import type { Policy } from '../policy/policy.ts';
import { keyOfText, keyText, priorRow } from '../write/change-log.ts';
import { RowStatements } from '../write/row-statements.ts';
import type { ChangedRow } from './changed-rows.ts';
import type { LiveList, LivePlace, LiveRow, LiveStream } from './live-stream.ts';
import type { StreamIndex } from './stream-index.ts';

/** How a row was and is. Undefined: not known. */
export interface Compared {
  readonly key: unknown;
  readonly keyText: string;
  readonly prior: Item | null | undefined;
  readonly row: Item | null;
  /** It did not change: time went by. */
  readonly isCrossing?: true;
}

/** Streams that are at a place, and where they go. */
export interface Comparison {
  readonly since: LivePlace;
  readonly now: LivePlace;
  /** The place is that of the reader. */
  readonly isFollowed: boolean;
  readonly isMeant: (stream: LiveStream) => boolean;
}

/** The events of a batch, a list that has to be read again, or an error that ends the stream. */
export type Outcome = readonly ServerSentEvent[] | 'reset' | { readonly error: unknown };
export type Outcomes = Map<LiveStream, Outcome>;

/** The caller may not read the list any more. Anything else is a failure of the server. */
export function isRefusal(error: unknown): boolean {
  return isKitError(error) && error.status < 500;
}

/** The streams whose list may have one of the rows that changed, or that time moved, each with these rows. */
export async function concernedStreams(
  tx: Db,
  index: StreamIndex,
  changed: readonly ChangedRow[],
  { since, now, isFollowed }: Comparison,
): Promise<Map<LiveStream, Compared[]> | 'too many'> {
  const { policy, times } = index;
  const crossed = await times.crossed(tx, since.at, now.at, isFollowed);
  if (crossed === 'too many') return crossed;
  const compared = await comparedRows(tx, policy, changed);
  times.note(
    compared.flatMap(({ row }) => (row === null ? [] : [row])),
    now.at,
  );
  const known = new Set(compared.map(({ keyText }) => keyText));
  for (const row of crossed) {
    const key = row[policy.key.name];
    const text = keyText(policy, key);
    if (known.has(text)) continue;
    known.add(text);
    compared.push({ key, keyText: text, prior: row, row, isCrossing: true });
  }
  const concerned = new Map<LiveStream, Compared[]>();
  for (const each of compared) {
    const { prior, row } = each;
    for (const stream of prior === undefined ? index.all() : index.concerned(prior, row)) {
      if (each.isCrossing && stream.times.length === 0) continue;
      const ofStream = concerned.get(stream);
      if (ofStream === undefined) concerned.set(stream, [each]);
      else ofStream.push(each);
    }
  }
  return concerned;
}

async function comparedRows(tx: Db, policy: Policy, changed: readonly ChangedRow[]): Promise<Compared[]> {
  const keys = changed.map(({ key }) => keyOfText(policy, key));
  const named = keys.filter((key) => key !== null);
  const rows = named.length === 0 ? [] : await new RowStatements(policy).selectMany(tx, undefined, policy.key, named, { lock: false });
  const textOf = (key: unknown) => String(policy.key.encode(key));
  const byKey = new Map(rows.map((row) => [textOf(row[policy.key.name]), row]));
  return changed.map(({ key: text, prior: logged }, place) => {
    const key = keys[place];
    const row = key === null ? null : (byKey.get(textOf(key)) ?? null);
    const prior = logged === undefined || logged === null ? logged : priorRow(policy, logged.values, logged.areTexts);
    return { key, keyText: text, prior, row };
  });
}

/** One batch: the rows that are in the list now, and the keys of those that were. */
export async function outcomeOf(
  { since, now }: Comparison,
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
    const changes: ListChange[] = [];
    for (const each of compared) changes.push(await read.changeOf(list, each, since.at, now.at));
    const wanted = changes.filter(({ isNews }) => isNews);
    const items = wanted.length === 0 ? NONE : await read.of(list, wanted);
    const events: ServerSentEvent[] = [];
    for (const each of changes) {
      const data = items.get(each.keyText);
      if (data !== undefined) events.push({ event: 'upsert', data });
      else if (each.prior === undefined) {
        if (isPossible(source.policy, list.bounds, each.row)) return 'reset';
      } else if (each.wasIn && (!each.isIn || each.isNews))
        events.push({ event: 'remove', data: { key: JSON.parse(each.keyText) as unknown } });
    }
    return events.length === 0 ? events : [...events, { event: 'ready', data: {}, id: await source.seal(now, list.rights) }];
  } catch (error) {
    if (isRefusal(error)) return { error };
    // It begins again by itself: an error that stays is its own, and the others go on.
    stream.reset();
    throw error;
  }
}

/** What a change is to a list. */
interface ListChange extends Compared {
  readonly wasIn: boolean;
  readonly isIn: boolean;
  /** Its item is new, or another one. */
  readonly isNews: boolean;
}

/** Items of one snapshot: callers who see the same rows and fields share them. */
export class SharedReads {
  readonly #tx: Db;
  readonly #known = new Map<object, Map<string, ReturnType<LiveList['read']>>>();

  constructor(tx: Db) {
    this.#tx = tx;
  }

  async changeOf(list: LiveList, compared: Compared, since: Date, now: Date): Promise<ListChange> {
    const { prior, row, isCrossing } = compared;
    const was = prior === undefined || prior === null ? undefined : list.stateOf(prior, since);
    const is = row === null ? undefined : list.stateOf(row, now);
    const isSame = was !== undefined && was === is;
    const isNews = is !== undefined && (!isSame || (isCrossing !== true && (await list.isChanged(this.#tx, prior as Item, row as Item))));
    return { ...compared, wasIn: was !== undefined, isIn: is !== undefined, isNews };
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
