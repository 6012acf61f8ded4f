import type { Database } from '../src/db/index.ts';

/** Makes the database reject every row of a table for which a condition on `new` holds, until the returned function is called. */
export async function rejectUpdates(db: Database, table: string, condition: string): Promise<() => Promise<void>> {
  const statements =
    db.dialect === 'sqlite'
      ? [`create trigger reject_updates before update on ${table} when ${condition} begin select raise(abort, 'rejected by a test'); end`]
      : [
          `create or replace function reject_updates() returns trigger language plpgsql as $$ begin raise exception 'rejected by a test'; end $$`,
          `create trigger reject_updates before update on ${table} for each row when (${condition}) execute function reject_updates()`,
        ];
  for (const statement of statements) await db.query(statement);
  return async () => void (await db.query(`drop trigger reject_updates${db.dialect === 'sqlite' ? '' : ` on ${table}`}`));
}
