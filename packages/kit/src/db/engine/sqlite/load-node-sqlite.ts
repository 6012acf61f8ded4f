import type * as NodeSqlite from 'node:sqlite';

/** The first release whose `node:sqlite` is stable and has what the engine uses. */
const NEEDED = [24, 15] as const;

/** Loaded when a SQLite database is opened: PostgreSQL alone runs on releases of Node without it, or with an experimental one. */
export function loadNodeSqlite(version: string = process.versions.node): typeof NodeSqlite {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  if (major < NEEDED[0] || (major === NEEDED[0] && minor < NEEDED[1]))
    throw new Error(`SQLite needs Node ${NEEDED.join('.')} or later, and this is ${version}. Update Node, or use PostgreSQL.`);
  return process.getBuiltinModule('node:sqlite');
}
