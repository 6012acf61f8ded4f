import type { Database, Db } from '../../db/engine/db.ts';
import type { ServerSentEvent } from '../../http/declare/server-sent-event.ts';
import { type ChangeReader, SNAPSHOT } from './change-reader.ts';
import { type LiveList, type LivePlace, type LiveRow, type LiveSource, LiveStream } from './live-stream.ts';
import { positionOf } from './log-position.ts';
import { SharedAccess } from './shared-access.ts';

/** Where a client continues: its place, and the rights that it is for. */
export interface Resumed {
  readonly place: LivePlace;
  readonly rights: string;
}

/**
 * The list, then its changes. First every row as `upsert`, then `ready`: the client has the list. Then batches, each ended by `ready`: after it, the client has
 * the list of a later moment. `reset`: the client forgets the list, which follows again from its start. `lost`: the client has a position that does not hold.
 */
export async function* liveEvents(
  db: Database,
  reader: ChangeReader,
  source: LiveSource,
  resumed: (() => Promise<Resumed | 'lost'>) | undefined,
): AsyncGenerator<ServerSentEvent> {
  let from = await resumed?.();
  for (;;) {
    const stream = yield* listOf(db, reader, source, from);
    try {
      for (let events = await stream.next(); events !== undefined; events = await stream.next()) yield* events;
      from = 'lost';
    } finally {
      reader.remove(stream);
    }
  }
}

/** Sends the list. A generator of its own: while a stream is idle, nothing has its rows. */
async function* listOf(
  db: Database,
  reader: ChangeReader,
  source: LiveSource,
  from: Resumed | 'lost' | undefined,
): AsyncGenerator<ServerSentEvent, LiveStream> {
  const { stream, place, rows, isReset } = await begin(db, reader, source, from);
  reader.add(stream, place);
  let isSent = false;
  try {
    if (isReset) yield { event: 'reset', data: {} };
    for (const data of rows) yield { event: 'upsert', data };
    yield { event: 'ready', data: {}, id: await source.seal(place, stream.list.rights) };
    isSent = true;
    return stream;
  } finally {
    if (!isSent) reader.remove(stream);
  }
}

interface Begun {
  readonly stream: LiveStream;
  readonly place: LivePlace;
  readonly rows: Iterable<LiveRow>;
  readonly isReset: boolean;
}

/** Position, time and rows are of one moment. */
function begin(db: Database, reader: ChangeReader, source: LiveSource, from: Resumed | 'lost' | undefined): Promise<Begun> {
  return db.transaction(async (tx) => {
    const { list, place } = await openAt(tx, reader, source);
    const stream = new LiveStream(source, list);
    if (typeof from === 'object' && from.rights === list.rights) return { stream, place: from.place, rows: [], isReset: false };
    return { stream, place, rows: (await list.read(tx)).values(), isReset: from !== undefined };
  }, SNAPSHOT);
}

async function openAt(tx: Db, reader: ChangeReader, source: LiveSource): Promise<{ readonly list: LiveList; readonly place: LivePlace }> {
  const place = { position: await positionOf(tx), at: reader.now() };
  return { list: await source.open(new SharedAccess(), place, tx), place };
}

/** Says that something changed, for those that read it again themselves: first when it begins to follow, then once per batch. */
export async function* newsOf(db: Database, reader: ChangeReader, source: LiveSource): AsyncGenerator<void> {
  for (;;) {
    const [stream, place] = await db.transaction(async (tx) => {
      const opened = await openAt(tx, reader, source);
      return [new LiveStream(source, opened.list), opened.place] as const;
    }, SNAPSHOT);
    reader.add(stream, place);
    try {
      do yield;
      while ((await stream.next()) !== undefined);
    } finally {
      reader.remove(stream);
    }
  }
}
