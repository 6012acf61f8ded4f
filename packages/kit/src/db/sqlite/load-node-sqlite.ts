import type * as NodeSqlite from 'node:sqlite';

/** Loaded when a SQLite database is opened: whoever uses PostgreSQL alone needs no Node that has it. */
export function loadNodeSqlite(): typeof NodeSqlite {
  const loaded = process.getBuiltinModule('node:sqlite') as typeof NodeSqlite | undefined;
  if (loaded !== undefined) return loaded;
  throw new Error(`SQLite needs node:sqlite, which Node ${process.version} does not have: use Node 24.15 or later, or PostgreSQL.`);
}
