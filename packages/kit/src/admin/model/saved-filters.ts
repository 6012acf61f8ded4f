import { CONFLICT_RETRIES } from '../../db/engine/conflict-retries.ts';
import type { Db } from '../../db/engine/db.ts';
import type { Clock } from '../../db/clock.ts';
import { uuidv7 } from '../../db/values/uuidv7.ts';
import type { Principal } from '../../auth/people/principal.ts';
import type { AuditSink } from '../../auth/request/audit-sink.ts';
import { adminErrors } from '../../screens/errors.ts';
import { ADMIN_ROLES, type AdminRole } from '../options.ts';
import type { AdminSavedFilter } from '../wire/wire.ts';

/** A longer list is not useful. */
const SAVED_MAX = 50;

/** Who asks, about which list. */
export interface SavingStaff {
  readonly principal: Principal;
  readonly role: AdminRole;
  readonly resource: string;
}

/** Who changes one, and where it is recorded. */
export interface SavingRequest extends SavingStaff {
  readonly audit: AuditSink | null;
  readonly requestId: string;
}

interface Row {
  readonly id: string;
  readonly user_id: string;
  readonly name: string;
  readonly query: string;
  readonly shared_with: AdminRole | null;
}

/** Their own, and those that others share with their role. */
export async function listSavedFilters(db: Db, staff: SavingStaff): Promise<AdminSavedFilter[]> {
  const { user } = staff.principal;
  const roles = ADMIN_ROLES.slice(0, ADMIN_ROLES.indexOf(staff.role) + 1);
  const rows = await db.query<Row>(
    `select id, user_id, name, query, shared_with from admin_saved_filters
     where resource = $1 and (user_id = $2 or shared_with in (${roles.map((_, index) => `$${index + 3}`).join(', ')})) order by name, id`,
    [staff.resource, user.id, ...roles],
  );
  return rows.map(({ id, user_id, name, query, shared_with }) => ({ id, name, query, shared_with, own: user_id === user.id }));
}

/** One of the same name is replaced. */
export function saveFilter(
  db: Db,
  clock: Clock,
  staff: SavingRequest,
  { name, query, sharedWith }: { readonly name: string; readonly query: string; readonly sharedWith: AdminRole | null },
): Promise<AdminSavedFilter> {
  const { user } = staff.principal;
  return db.transaction(async (tx) => {
    const own = await tx.query<Row>('select * from admin_saved_filters where user_id = $1 and resource = $2', [user.id, staff.resource]);
    const before = own.find((each) => each.name === name);
    if (before === undefined && own.length >= SAVED_MAX) throw adminErrors.too_many_saved({ extensions: { saved_max: SAVED_MAX } });
    const [row] = await tx.query<{ id: string }>(
      `insert into admin_saved_filters (id, user_id, resource, name, query, shared_with, created_at) values ($1, $2, $3, $4, $5, $6, $7)
       on conflict (user_id, resource, name) do update set query = excluded.query, shared_with = excluded.shared_with returning id`,
      [uuidv7(clock), user.id, staff.resource, name, query, sharedWith, clock.now()],
    );
    const saved = { id: row?.id ?? '', name, query, shared_with: sharedWith };
    await recordSharing(tx, staff, before ?? null, saved);
    return { ...saved, own: true };
  }, CONFLICT_RETRIES);
}

/** Of a user who is gone: also what others saw of it. */
export async function deleteSavedFiltersOf(tx: Db, userId: string): Promise<void> {
  await tx.query('delete from admin_saved_filters where user_id = $1', [userId]);
}

/** An administrator deletes what others share, too. Any other filter of another user gets the same answer as a missing one. */
export function deleteSavedFilter(db: Db, staff: SavingRequest, id: string): Promise<boolean> {
  const { user } = staff.principal;
  return db.transaction(async (tx) => {
    const [row] = await tx.query<Row>(
      `delete from admin_saved_filters where id = $1 and resource = $2
       and (user_id = $3${staff.role === 'administrator' ? ' or shared_with is not null' : ''}) returning *`,
      [id, staff.resource, user.id],
    );
    if (row === undefined) return false;
    await recordSharing(tx, staff, row, null);
    return true;
  }, CONFLICT_RETRIES);
}

/** What nobody else saw, before and after, is nobody else's business. */
async function recordSharing(
  tx: Db,
  { audit, principal, requestId, resource }: SavingRequest,
  before: Omit<Row, 'user_id'> | null,
  after: Omit<Row, 'user_id'> | null,
): Promise<void> {
  const [was, is] = [sharingOf(before), sharingOf(after)];
  if (audit === null || (was === null && is === null)) return;
  const entry = {
    actor: principal,
    action: is === null ? 'saved_view.withdrawn' : 'saved_view.shared',
    target_type: 'saved_view',
    target_id: (after ?? before)?.id ?? '',
    before: was,
    after: is,
    metadata: { list: resource },
    request_id: requestId,
  };
  await audit.record(tx, [entry]);
}

function sharingOf(row: Omit<Row, 'user_id'> | null): object | null {
  return row === null || row.shared_with === null ? null : { name: row.name, query: row.query, shared_with: row.shared_with };
}
