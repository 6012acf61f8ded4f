import type { Db } from '../../../db/engine/db.ts';
import { skipLocked } from '../../../work/lock-patience.ts';
import { insert } from '../../../db/rows/repository.ts';
import { uploadRemovals, uploads } from '../models.ts';
import type { Upload } from '../declare/upload.ts';
import type { UploadState } from '../declare/upload-state.ts';

/** Whose uploads. Another scope's are as missing as ones that never were. */
export interface UploadScope {
  /** The id of the user that the upload belongs to. */
  readonly owner: string;
  /** The tenant that the upload belongs to; empty for personal uploads. */
  readonly tenantKey: string;
}

export interface Removal {
  readonly id: string;
  readonly key: string;
  readonly multipart_id: string | null;
  readonly attempts: number;
}

const COLUMNS = Object.keys(uploads.columns).join(', ');

export function insertUpload(tx: Db, upload: Omit<Upload, 'id'>): Promise<Upload> {
  return insert(tx, uploads, upload);
}

export async function findUpload(db: Db, id: string): Promise<Upload | null> {
  const [row] = await db.query<Upload>(`select ${COLUMNS} from uploads where id = $1`, [id.toLowerCase()]);
  return row ?? null;
}

export async function findOwnUpload(db: Db, { owner, tenantKey }: UploadScope, id: string): Promise<Upload | null> {
  const text = `select ${COLUMNS} from uploads where id = $1 and owner_id = $2 and tenant_key = $3`;
  const [row] = await db.query<Upload>(text, [id.toLowerCase(), owner, tenantKey]);
  return row ?? null;
}

/** Writers of one owner's uploads follow one another from here to the end of the transaction. */
export async function lockOwner(tx: Db, { owner, tenantKey }: UploadScope, now: Date): Promise<void> {
  await tx.execute(
    `insert into upload_owners (owner_id, tenant_key, changed_at) values ($1, $2, $3)
     on conflict (owner_id, tenant_key) do update set changed_at = excluded.changed_at`,
    [owner, tenantKey, now],
  );
}

/** What an owner has that takes room, or may. Counted from the rows: there is no counter that could be wrong. */
export async function usageOf(db: Db, { owner, tenantKey }: UploadScope): Promise<{ readonly bytes: number; readonly count: number }> {
  const [row] = await db.query<{ bytes: number | bigint | string; count: number | bigint }>(
    `select cast(coalesce(sum(size), 0) as bigint) as bytes, count(*) as count from (
       select size from uploads where owner_id = $1 and tenant_key = $2 and state in ('pending', 'quarantined', 'complete')
       union all select size from upload_removals where owner_id = $1 and tenant_key = $2
     ) taken`,
    [owner, tenantKey],
  );
  return { bytes: Number(row?.bytes ?? 0), count: Number(row?.count ?? 0) };
}

/** Moves an upload from one state to another, if it still is in the first: of several who try, one gets the row. */
export async function changeState(
  tx: Db,
  id: string,
  from: UploadState,
  changes: Partial<Omit<Upload, 'id'>>,
  condition: { readonly sql: string; readonly values: readonly unknown[] } = { sql: '', values: [] },
): Promise<Upload | null> {
  const entries = Object.entries(changes);
  const values = [...entries.map(([, value]) => value), id, from, ...condition.values];
  const assignments = entries.map(([name], index) => `${name} = $${index + 1}`).join(', ');
  const base = entries.length + 2;
  const extra = condition.sql.replaceAll(/\?(\d)/g, (_, number: string) => `$${base + Number(number)}`);
  const [row] = await tx.query<Upload>(
    `update uploads set ${assignments} where id = $${base - 1} and state = $${base}${extra === '' ? '' : ` and ${extra}`} returning ${COLUMNS}`,
    values,
  );
  return row ?? null;
}

export async function changeOwner(tx: Db, id: string, { owner, tenantKey }: UploadScope): Promise<Upload | null> {
  const text = `update uploads set owner_id = $1, tenant_key = $2 where id = $3 returning ${COLUMNS}`;
  const [row] = await tx.query<Upload>(text, [owner, tenantKey, id]);
  return row ?? null;
}

export async function deleteUpload(tx: Db, id: string): Promise<boolean> {
  return (await tx.execute('delete from uploads where id = $1', [id])).count > 0;
}

/** Locks the row, so that what is removed with it is what it says now. */
export async function lockUpload(tx: Db, scope: UploadScope | null, id: string): Promise<Upload | null> {
  const lock = tx.dialect === 'postgres' ? ' for update' : '';
  const where = scope === null ? '' : ' and owner_id = $2 and tenant_key = $3';
  const values = scope === null ? [id.toLowerCase()] : [id.toLowerCase(), scope.owner, scope.tenantKey];
  const [row] = await tx.query<Upload>(`select ${COLUMNS} from uploads where id = $1${where}${lock}`, values);
  return row ?? null;
}

/** Uploads that were not completed in time. */
export function overdueUploads(db: Db, now: Date, limit: number): Promise<Upload[]> {
  return db.query<Upload>(`select ${COLUMNS} from uploads where state = 'pending' and complete_by < $1 order by complete_by limit $2`, [
    now,
    limit,
  ]);
}

/**
 * Takes uploads to scan until `leaseUntil`: another process takes them only when this one has not come back by then. `id` takes this one alone, if
 * it is due.
 */
export async function claimScans(db: Db, now: Date, leaseUntil: Date, limit: number, id?: string): Promise<Upload[]> {
  const chosen = id === undefined ? '' : ' and id = $4';
  return db.query<Upload>(
    `update uploads set scan_due_at = $1, scan_attempts = scan_attempts + 1
     where id in (select id from uploads where state = 'quarantined' and scan_due_at <= $2${chosen} order by scan_due_at limit $3${skipLocked(db)})
     returning ${COLUMNS}`,
    [leaseUntil, now, limit, ...(id === undefined ? [] : [id])],
  );
}

/** Something to remove from the store. */
export interface RemovableObject {
  readonly key: string;
  /** {@link ANY_MULTIPART}: whatever was begun under the key. */
  readonly multipartId?: string | null;
  /** Default: now. */
  readonly dueAt?: Date;
  /** Whose quota it counts for until then. */
  readonly heldFor?: UploadScope & { readonly size: bigint };
}

/** A multipart upload whose id was never stored, because the process ended first. No store gives this id. */
export const ANY_MULTIPART = '*';

export async function addRemovals(tx: Db, now: Date, objects: readonly RemovableObject[]): Promise<readonly string[]> {
  const ids: string[] = [];
  for (const { key, multipartId = null, dueAt = now, heldFor } of objects) {
    const row = await insert(tx, uploadRemovals, {
      key,
      multipart_id: multipartId,
      due_at: dueAt,
      attempts: 0,
      created_at: now,
      owner_id: heldFor?.owner ?? null,
      tenant_key: heldFor?.tenantKey ?? null,
      size: heldFor?.size ?? null,
    });
    ids.push(row.id);
  }
  return ids;
}

/** Takes a removal back. False when a process has claimed it: the object is gone, or soon will be. */
export async function withdrawRemoval(tx: Db, id: string): Promise<boolean> {
  return (await tx.execute('delete from upload_removals where id = $1 and attempts = 0', [id])).count === 1;
}

/** Takes removals that are due until `leaseUntil`; `ids` takes exactly these, due or not. */
export async function claimRemovals(db: Db, now: Date, leaseUntil: Date, limit: number, ids?: readonly string[]): Promise<Removal[]> {
  const skip = skipLocked(db);
  const chosen =
    ids === undefined
      ? `select id from upload_removals where due_at <= $2 order by due_at limit $3${skip}`
      : `select id from upload_removals where due_at <= $2 and id in (${ids.map((_, index) => `$${index + 4}`).join(', ')}) order by due_at limit $3${skip}`;
  return db.query<Removal>(
    `update upload_removals set due_at = $1, attempts = attempts + 1 where id in (${chosen}) returning id, key, multipart_id, attempts`,
    [leaseUntil, now, limit, ...(ids ?? [])],
  );
}

export async function finishRemoval(db: Db, id: string): Promise<void> {
  await db.execute('delete from upload_removals where id = $1', [id]);
}

export async function postponeRemoval(db: Db, id: string, dueAt: Date): Promise<void> {
  await db.execute('update upload_removals set due_at = $1 where id = $2', [dueAt, id]);
}

/** When the next of these removals is due; null when all of them are done. */
export async function nextRemovalAt(db: Db, ids: readonly string[]): Promise<Date | null> {
  const list = ids.map((_, index) => `$${index + 1}`).join(', ');
  const [row] = await db.query<{ due_at: Date }>(`select due_at from upload_removals where id in (${list}) order by due_at limit 1`, [
    ...ids,
  ]);
  return row?.due_at ?? null;
}

/** Which of these keys some row still means. */
export async function knownKeys(db: Db, keys: readonly string[]): Promise<ReadonlySet<string>> {
  if (keys.length === 0) return new Set();
  const list = keys.map((_, index) => `$${index + 1}`).join(', ');
  const rows = await db.query<{ key: string }>(
    `select pending_key as key from uploads where pending_key in (${list}) and state = 'pending'
     union select final_key as key from uploads where final_key in (${list}) and state in ('quarantined', 'complete')
     union select key from upload_removals where key in (${list})`,
    [...keys],
  );
  return new Set(rows.map(({ key }) => key));
}
