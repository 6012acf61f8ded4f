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
  /** False while the connection is lost: writes of other processes are missed. */
  isListening: boolean;
}

const CHANNEL = 'kit_table_writes';
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
  const entry: Watched = { listeners: new Set([listener]), origin: randomUUID(), isListening: database.dialect === 'sqlite' };
  watched.set(engine, entry);
  if (database.dialect === 'sqlite') return;
  const heard = (payload: string): void => {
    const [origin, table] = payload.split(' ', 2);
    if (origin !== entry.origin) tell(entry, table ?? null);
  };
  await database.listen(CHANNEL, heard, {
    onDisconnect: () => {
      entry.isListening = false;
      tell(entry, null);
    },
    onReconnect: () => {
      tell(entry, null);
      entry.isListening = true;
    },
  });
  entry.isListening = true;
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
