import { randomUUID } from 'node:crypto';
import type { Database, Db } from '../engine/db.ts';
import type { Engine } from '../engine/engine.ts';
import type { Handle } from '../engine/handle.ts';

/** Called with the name of a table whose rows were written; null: any table may have been. */
export type TableWriteListener = (table: string | null) => void;

interface Watched {
  readonly listeners: Set<TableWriteListener>;
  /** Tells notifications of this database handle from those of other processes. */
  readonly origin: string;
  /** False while the connection is lost, and behind a pooler that loses notifications: writes of other processes are missed. */
  isListening: boolean;
  /** What this process has told itself: it hears when this arrives. */
  echo: string;
}

const CHANNEL = 'kit_table_writes';
/** An echo that has not arrived by then is lost. */
const ECHO_MS_MAX = 10_000;
/** The pause before an echo is sent again that could not be sent. */
const ECHO_AGAIN_MS = 1_000;
const watched = new WeakMap<Engine, Watched>();
/** Every process that loads the application announces these, also a worker that keeps no responses itself. */
const announced = new Set<string>();

function engineOf(db: object): Engine {
  return (db as Handle).context.engine;
}

/** From now on writes of these tables are announced. */
export function announceWritesOf(tables: readonly string[]): void {
  for (const table of tables) announced.add(table);
}

/** Whether something that reads this table is told of its writes. Without it, nobody has to announce them. */
export function isAnnounced(table: string): boolean {
  return announced.has(table);
}

/** Whether writes are heard: on SQLite those of this process, on PostgreSQL those of others too, unless the connection is lost. */
export function hearsTableWrites(database: Database): boolean {
  return watched.get(engineOf(database))?.isListening === true;
}

/** Calls `listener` after every commit that wrote rows of an announced table through generic CRUD. */
export async function watchTableWrites(database: Database, listener: TableWriteListener): Promise<void> {
  const engine = engineOf(database);
  const known = watched.get(engine);
  if (known !== undefined) {
    known.listeners.add(listener);
    return;
  }
  const isLocal = database.dialect === 'sqlite';
  const entry: Watched = { listeners: new Set([listener]), origin: randomUUID(), isListening: isLocal, echo: '' };
  watched.set(engine, entry);
  if (isLocal) return;
  const arrived = Promise.withResolvers<void>();
  const heard = (payload: string): void => {
    const [origin, table] = payload.split(' ', 2);
    if (origin !== entry.origin) tell(entry, table ?? null);
    else if (table === entry.echo) {
      entry.isListening = true;
      arrived.resolve();
    }
  };
  await database.listen(CHANNEL, heard, {
    onDisconnect: () => {
      entry.isListening = false;
      tell(entry, null);
    },
    onReconnect: () => {
      tell(entry, null);
      sendEcho(database, entry);
    },
  });
  sendEcho(database, entry);
  const timer = setTimeout(() => arrived.reject(new Error(LOST)), ECHO_MS_MAX);
  timer.unref();
  await arrived.promise.finally(() => clearTimeout(timer));
}

const LOST = 'Notifications of the database do not arrive. A pooler in transaction mode loses them: use a direct connection.';

/** A pooler in transaction mode accepts LISTEN and passes on nothing: only what arrives proves that something does. */
function sendEcho(database: Database, entry: Watched): void {
  const echo = (entry.echo = randomUUID());
  const send = (): void => {
    if (entry.echo !== echo || database.closed) return;
    database.notify(database, CHANNEL, `${entry.origin} ${echo}`).catch(() => setTimeout(send, ECHO_AGAIN_MS).unref());
  };
  send();
}

function tell({ listeners }: Watched, table: string | null): void {
  for (const listener of listeners) listener(table);
}

/** Rows of the table were written through this handle: told when its transaction commits. Undefined where there is no listener. */
export function announceTableWrite(db: Db, table: string): Promise<unknown> | undefined {
  if (!announced.has(table)) return undefined;
  const entry = watched.get(engineOf(db));
  if (entry !== undefined) db.afterCommit(() => tell(entry, table));
  return db.dialect === 'postgres' ? db.query('select pg_notify($1, $2)', [CHANNEL, `${entry?.origin ?? '-'} ${table}`]) : undefined;
}
