import type { Db } from '../../../db/engine/db.ts';
import { skipLocked } from '../../../work/lock-patience.ts';

/** A grant as it is stored. */
export interface GrantRow {
  readonly id: string;
  readonly subject: string;
  readonly object_type: string;
  readonly object_id: string;
  readonly tenant_key: string;
  readonly actions: string;
  readonly granted_by: string | null;
  readonly created_at: Date;
  readonly expires_at: Date | null;
  readonly object_deleted_at: Date | null;
}

const GRANT = 'id, subject, object_type, object_id, tenant_key, actions, granted_by, created_at, expires_at, object_deleted_at';

/** Grants on any of the objects, oldest first; of some subjects only where they are given. */
export async function grantsOn(
  db: Db,
  objects: readonly { readonly type: string; readonly id: string }[],
  subjects?: readonly string[],
): Promise<GrantRow[]> {
  if (objects.length === 0) return [];
  const parameters: unknown[] = [];
  const among = objects
    .map(({ type, id }) => `(object_type = $${parameters.push(type)} and object_id = $${parameters.push(id)})`)
    .join(' or ');
  const of = subjects === undefined ? '' : ` and ${amongTexts(db, 'subject', subjects, parameters)}`;
  return db.query<GrantRow>(`select ${GRANT} from grants where (${among})${of} order by id`, parameters, { replanned: true });
}

function amongTexts({ dialect }: Db, expression: string, texts: readonly string[], parameters: unknown[]): string {
  return dialect === 'postgres'
    ? `${expression} = any($${parameters.push(texts)}::text[])`
    : `${expression} in (select value from json_each($${parameters.push(JSON.stringify(texts))}))`;
}

export async function findGrant(db: Db, id: string): Promise<GrantRow | null> {
  const [row] = await db.query<GrantRow>(`select ${GRANT} from grants where id = $1`, [id]);
  return row ?? null;
}

export async function findGrants(db: Db, ids: readonly string[]): Promise<readonly GrantRow[]> {
  if (ids.length === 0) return [];
  return db.query<GrantRow>(`select ${GRANT} from grants where id in (${ids.map((_, index) => `$${index + 1}`).join(', ')})`, ids);
}

export async function countGrantsOn(db: Db, type: string, id: string): Promise<number> {
  const [row] = await db.query<{ count: number | bigint }>(
    'select count(*) as count from grants where object_type = $1 and object_id = $2',
    [type, id],
  );
  return Number(row?.count ?? 0);
}

/** Writes the one row of a subject and object, and returns it. */
export async function upsertGrant(tx: Db, row: GrantRow): Promise<GrantRow> {
  const [written] = await tx.query<GrantRow>(
    `insert into grants (${GRANT}) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
     on conflict (object_type, object_id, subject) do update set tenant_key = excluded.tenant_key, actions = excluded.actions,
       granted_by = excluded.granted_by, expires_at = excluded.expires_at, object_deleted_at = excluded.object_deleted_at
     returning ${GRANT}`,
    [
      row.id,
      row.subject,
      row.object_type,
      row.object_id,
      row.tenant_key,
      row.actions,
      row.granted_by,
      row.created_at,
      row.expires_at,
      row.object_deleted_at,
    ],
  );
  return written as GrantRow;
}

export async function deleteGrant(tx: Db, id: string): Promise<boolean> {
  return (await tx.query('delete from grants where id = $1 returning id', [id])).length === 1;
}

export async function deleteGrantsOn(tx: Db, type: string, id: string): Promise<GrantRow[]> {
  return tx.query<GrantRow>(`delete from grants where object_type = $1 and object_id = $2 returning ${GRANT}`, [type, id]);
}

export async function deleteGrantsOf(tx: Db, subject: string): Promise<GrantRow[]> {
  return tx.query<GrantRow>(`delete from grants where subject = $1 returning ${GRANT}`, [subject]);
}

/** Hides the grants of an object that is deleted softly, or shows them again. */
export async function setDeleted(tx: Db, type: string, id: string, deletedAt: Date | null): Promise<void> {
  await tx.query('update grants set object_deleted_at = $3 where object_type = $1 and object_id = $2', [type, id, deletedAt]);
}

export interface GrantFilter {
  readonly subject?: string;
  readonly subjects?: readonly string[];
  readonly type?: string;
  readonly id?: string;
}

/** A page by key, oldest first. */
export async function listGrants(
  db: Db,
  { subject, subjects, type, id }: GrantFilter,
  after: string | null,
  limit: number,
): Promise<GrantRow[]> {
  const parameters: unknown[] = [];
  const conditions = [
    ...(subject === undefined ? [] : [`subject = $${parameters.push(subject)}`]),
    ...(subjects === undefined ? [] : [amongTexts(db, 'subject', subjects, parameters)]),
    ...(type === undefined ? [] : [`object_type = $${parameters.push(type)}`]),
    ...(id === undefined ? [] : [`object_id = $${parameters.push(id)}`]),
    ...(after === null ? [] : [`id > $${parameters.push(after)}`]),
  ];
  const where = conditions.length === 0 ? '' : ` where ${conditions.join(' and ')}`;
  return db.query<GrantRow>(`select ${GRANT} from grants${where} order by id limit $${parameters.push(limit)}`, parameters, {
    replanned: true,
  });
}

/** Removes expired grants, some at a time, so that no transaction is long. Returns what was removed. */
export async function deleteExpired(db: Db, now: Date, limit: number): Promise<number> {
  const rows = await db.query(
    `delete from grants where id in
       (select id from grants where expires_at is not null and expires_at <= $1 order by expires_at limit $2${skipLocked(db)}) returning id`,
    [now, limit],
  );
  return rows.length;
}
