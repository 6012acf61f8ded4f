import { hash } from 'node:crypto';
import { derivedName, quoteName as q } from '../../declare/names.ts';
import type { Database, Db } from '../../engine/db.ts';
import { postgresChanges, rowOf, sqliteChanges, type TriggeredTable } from './change-sql.ts';
import { limitTableLocks, TABLE_LOCK_MS, untilUnlocked } from '../table-locks.ts';

const PREFIX = 'kit_changes_of';
const EVENTS = ['insert', 'update', 'delete', 'truncate'] as const;

interface Triggers {
  /** Of the function, or of each trigger. */
  readonly names: readonly string[];
  readonly statements: readonly string[];
}

/** Same text, same triggers: kept in their source, so that a table with other columns gets new ones. */
function versionOf(table: TriggeredTable): string {
  return hash('sha256', JSON.stringify([2, table]), 'base64url').slice(0, 12);
}

/** One statement of the log for each statement that writes, however many rows it has. A statement that changes nothing logs nothing. */
function forPostgres(table: TriggeredTable): Triggers {
  const name = derivedName(PREFIX, table.table);
  const [o, n] = [rowOf('o'), rowOf('n')];
  const changes = postgresChanges(table);
  const body = `/* ${versionOf(table)} */ begin
if tg_op = 'INSERT' then
  ${changes.created(n, ' from new_rows n')};
elsif tg_op = 'DELETE' then
  ${changes.removed(o, 'from old_rows o')};
elsif tg_op = 'UPDATE' then
  ${changes.changedMany(o, n, 'old_rows o', 'new_rows n')};
else
  ${changes.emptied()};
end if;
return null; end`;
  const rows = { insert: 'new table as new_rows', update: 'old table as old_rows new table as new_rows', delete: 'old table as old_rows' };
  return {
    names: [name],
    statements: [
      // Programs of other roles write the table: what they may do to it does not include writing the log.
      `create or replace function ${q(name)}() returns trigger language plpgsql security definer set search_path from current set timezone = 'UTC' as ${dollars(body)}`,
      ...EVENTS.map((event) => `drop trigger if exists ${q(`${PREFIX}_${event}`)} on ${q(table.table)}`),
      ...EVENTS.map(
        (event) =>
          `create trigger ${q(`${PREFIX}_${event}`)} after ${event} on ${q(table.table)}` +
          `${event === 'truncate' ? '' : ` referencing ${rows[event]}`} for each statement execute function ${q(name)}()`,
      ),
    ],
  };
}

function dollars(body: string): string {
  return `$kit$${body}$kit$`;
}

function forSqlite(table: TriggeredTable): Triggers {
  const { key, compared } = table;
  const names = (['insert', 'update', 'delete'] as const).map((event) => derivedName(PREFIX, table.table, event));
  const [o, n] = [rowOf('old'), rowOf('new')];
  const { created, changed } = sqliteChanges(table);
  const differs = compared.map((each) => `${o(each)} is not ${n(each)}`).join(' or ');
  const bodies = [
    `${created(n, '')};`,
    `${changed(o, n, ` where ${differs}`)}; ${created(n, ` where ${o(key.name)} is not ${n(key.name)}`)};`,
    `${changed(o, undefined, '')};`,
  ];
  return {
    names,
    statements: names.flatMap((name, index) => [
      `drop trigger if exists ${q(name)}`,
      `create trigger ${q(name)} after ${EVENTS[index]} on ${q(table.table)} begin select '${versionOf(table)}'; ${bodies[index]} end`,
    ]),
  };
}

function triggersOf(dialect: Db['dialect'], table: TriggeredTable): Triggers {
  return dialect === 'postgres' ? forPostgres(table) : forSqlite(table);
}

/** Names of the functions and triggers that are there, with what their tables are and their source. */
async function installed(db: Db): Promise<readonly { readonly name: string; readonly table: string; readonly source: string }[]> {
  if (db.dialect === 'sqlite')
    return db.query(
      `select name, tbl_name as "table", sql as source from sqlite_master where type = 'trigger' and name like 'kit\\_changes\\_of\\_%' escape '\\'`,
    );
  // A function whose triggers went with a dropped table has none.
  return db.query(
    `select p.proname as name, c.relname as "table", p.prosrc as source from pg_proc p
     join pg_trigger t on t.tgfoid = p.oid join pg_class c on c.oid = t.tgrelid
     where p.pronamespace = current_schema()::regnamespace and p.proname like 'kit\\_changes\\_of\\_%'
     group by p.oid, p.proname, c.relname, p.prosrc having count(*) = ${EVENTS.length}`,
  );
}

/** Tables whose triggers are missing or of another version, and tables that have triggers and need none any more. */
export interface TriggerDifference {
  readonly missing: readonly TriggeredTable[];
  readonly idle: readonly string[];
}

/** Changes nothing. */
export async function compareTriggers(db: Db, tables: readonly TriggeredTable[]): Promise<TriggerDifference> {
  const found = await installed(db);
  const missing = tables.filter((table) => {
    const version = versionOf(table);
    const { names } = triggersOf(db.dialect, table);
    return names.some((name) => !found.some((each) => each.name === name && each.table === table.table && each.source.includes(version)));
  });
  const wanted = new Set(tables.map(({ table }) => table));
  return { missing, idle: [...new Set(found.map(({ table }) => table))].filter((table) => !wanted.has(table)) };
}

/** The statements that bring a database from its triggers to those that it should have. */
export async function triggerStatements(db: Db, { missing, idle }: TriggerDifference): Promise<string[]> {
  const found = await installed(db);
  const dropped = found
    .filter(({ table }) => idle.includes(table))
    .map(({ name }) => (db.dialect === 'sqlite' ? `drop trigger ${q(name)}` : `drop function ${q(name)}() cascade`));
  return [...new Set(dropped), ...missing.flatMap((table) => triggersOf(db.dialect, table).statements)];
}

/** One number for every kit database: two processes that change triggers wait for each other. */
const LOCK_KEY = 7_319_002;

const LOCK_WAIT_MS = 300_000;

/** Creates and drops triggers so that exactly these tables have them. */
export async function applyTriggers(
  database: Database,
  tables: readonly TriggeredTable[],
  lockWaitMs: number = LOCK_WAIT_MS,
): Promise<void> {
  const apply = (): Promise<void> =>
    database.transaction(async (tx) => {
      await limitTableLocks(tx, TABLE_LOCK_MS);
      if (tx.dialect === 'postgres') await tx.query('select pg_advisory_xact_lock($1)', [LOCK_KEY]);
      for (const statement of await triggerStatements(tx, await compareTriggers(tx, tables))) await tx.query(statement);
    });
  const step = { id: 'kit/changes', migration: { operations: [] }, before: new Map() };
  await untilUnlocked(database, step, apply, { waitMsMax: lockWaitMs, retried: () => undefined });
}
