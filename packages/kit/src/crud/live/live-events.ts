import type { Database } from '../../db/engine/db.ts';
import type { ServerSentEvent } from '../../http/declare/server-sent-event.ts';
import { type ChangeReader, SNAPSHOT } from './change-reader.ts';
import { type LiveRow, type LiveSource, LiveStream } from './live-stream.ts';
import { type LogPosition, positionOf } from './log-position.ts';
import { SharedAccess } from './shared-access.ts';

/** Where a client continues: its position, and the rights that it is for. */
export interface Resumed {
  readonly position: LogPosition;
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
    const { stream, leave } = yield* listOf(db, reader, source, from);
    try {
      for (let events = await stream.next(); events !== undefined; events = await stream.next()) yield* events;
      from = 'lost';
    } finally {
      leave();
    }
  }
}

interface Followed {
  readonly stream: LiveStream;
  readonly leave: () => void;
}

/** Sends the list. A generator of its own: while a stream is idle, nothing has its rows. */
async function* listOf(
  db: Database,
  reader: ChangeReader,
  source: LiveSource,
  from: Resumed | 'lost' | undefined,
): AsyncGenerator<ServerSentEvent, Followed> {
  const { stream, rows, isReset } = await begin(db, source, from);
  const leave = reader.add(stream);
  let isSent = false;
  try {
    if (isReset) yield { event: 'reset', data: {} };
    for (const data of rows) yield { event: 'upsert', data };
    yield { event: 'ready', data: {}, id: await source.seal(stream.position, stream.list.rights) };
    isSent = true;
    return { stream, leave };
  } finally {
    if (!isSent) leave();
  }
}

interface Begun {
  readonly stream: LiveStream;
  readonly rows: Iterable<LiveRow>;
  readonly isReset: boolean;
}

/** Position and rows are of one moment. */
function begin(db: Database, source: LiveSource, from: Resumed | 'lost' | undefined): Promise<Begun> {
  return db.transaction(async (tx) => {
    const now = await positionOf(tx);
    const list = await source.open(new SharedAccess(), tx);
    if (typeof from === 'object' && from.rights === list.rights)
      return { stream: new LiveStream(source, list, from.position), rows: [], isReset: false };
    return { stream: new LiveStream(source, list, now), rows: (await list.read(tx)).values(), isReset: from !== undefined };
  }, SNAPSHOT);
}

/** Says that something changed, for those that read it again themselves: first when it begins to follow, then once per batch. */
export async function* newsOf(db: Database, reader: ChangeReader, source: LiveSource): AsyncGenerator<void> {
  for (;;) {
    const stream = await db.transaction(async (tx) => {
      const now = await positionOf(tx);
      return new LiveStream(source, await source.open(new SharedAccess(), tx), now);
    }, SNAPSHOT);
    const leave = reader.add(stream);
    try {
      do yield;
      while ((await stream.next()) !== undefined);
    } finally {
      leave();
    }
  }
}
