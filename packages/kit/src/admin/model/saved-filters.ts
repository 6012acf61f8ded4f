import { CONFLICT_RETRIES } from '../../db/engine/conflict-retries.ts';
import type { Db } from '../../db/engine/db.ts';
import type { Clock } from '../../db/clock.ts';
import { uuidv7 } from '../../db/values/uuidv7.ts';
import { adminErrors } from '../../screens/errors.ts';
import type { AdminSavedFilter } from '../wire/wire.ts';

/** A longer list is not useful. */
const SAVED_MAX = 50;

export function listSavedFilters(db: Db, userId: string, resource: string): Promise<AdminSavedFilter[]> {
  return db.query<AdminSavedFilter>('select id, name, query from admin_saved_filters where user_id = $1 and resource = $2 order by name', [
    userId,
    resource,
  ]);
}

/** One of the same name is replaced. */
export function saveFilter(
  db: Db,
  clock: Clock,
  { userId, resource, name, query }: { readonly userId: string; readonly resource: string; readonly name: string; readonly query: string },
): Promise<AdminSavedFilter> {
  return db.transaction(async (tx) => {
    const others = (await listSavedFilters(tx, userId, resource)).filter((each) => each.name !== name);
    if (others.length >= SAVED_MAX) throw adminErrors.too_many_saved({ extensions: { saved_max: SAVED_MAX } });
    const [row] = await tx.query<{ id: string }>(
      `insert into admin_saved_filters (id, user_id, resource, name, query, created_at) values ($1, $2, $3, $4, $5, $6)
       on conflict (user_id, resource, name) do update set query = excluded.query returning id`,
      [uuidv7(clock), userId, resource, name, query, clock.now()],
    );
    return { id: row?.id ?? '', name, query };
  }, CONFLICT_RETRIES);
}

/** Of a user who is gone. */
export async function deleteSavedFiltersOf(tx: Db, userId: string): Promise<void> {
  await tx.query('delete from admin_saved_filters where user_id = $1', [userId]);
}

/** A filter of another user gets the same answer as a missing one. */
export async function deleteSavedFilter(db: Db, userId: string, resource: string, id: string): Promise<boolean> {
  const rows = await db.query('delete from admin_saved_filters where id = $1 and user_id = $2 and resource = $3 returning id', [
    id,
    userId,
    resource,
  ]);
  return rows.length > 0;
}
