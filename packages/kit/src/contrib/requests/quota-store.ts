import { createHash } from 'node:crypto';
import { exceptHeld, heldSubjects } from '../../app/data/legal-holds.ts';
import type { Db } from '../../db/engine/db.ts';
import { skipLocked } from '../../work/lock-patience.ts';
import type { CalendarPeriod, Quota } from '../../throttle/quota.ts';
import { type QUOTA_KINDS, requestQuotas } from './models.ts';

/** Whose requests are counted. `owner` and `tenant` say who may see the count. */
export interface QuotaSubject {
  readonly kind: (typeof QUOTA_KINDS)[number];
  readonly owner: string;
  readonly tenant: string;
  readonly keyId: string;
}

export interface CountedPeriod extends CalendarPeriod {
  readonly quota: Quota;
}

// Check and count are one statement: the upsert takes the row's lock before it evaluates its `where`, so of N parallel requests against a quota of L
// exactly L are admitted, whichever process they come from. No row back: refused, and nothing was written. A smaller quota refuses at once, a larger one
// admits at once.
const TAKE = `
insert into request_quotas (id, kind, owner_id, tenant_key, key_id, period, starts_at, ends_at, quota, used)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, 1)
on conflict (id) do update set used = request_quotas.used + 1, quota = excluded.quota
where excluded.quota is null or request_quotas.used < excluded.quota
returning used`;

/** Counts one request. Returns how many there were in the period, or null where the quota is used up. */
export async function takeRequest(db: Db, subject: QuotaSubject, { from, until, quota }: CountedPeriod): Promise<number | null> {
  const { kind, owner, tenant, keyId } = subject;
  const [row] = await db.query<{ used: number | bigint | string }>(TAKE, [
    idOf(subject, quota.period, from),
    kind,
    owner,
    tenant,
    keyId,
    quota.period,
    from,
    until,
    quota.count,
  ]);
  return row === undefined ? null : Number(row.used);
}

/** The same for every process: a UUID of version 8 (RFC 9562) from the digest. The owner of a key and what its quota is are not part of it. */
function idOf({ kind, owner, tenant, keyId }: QuotaSubject, period: string, from: Date): string {
  const whose = kind === 'key' ? keyId : kind === 'owner' ? owner : tenant;
  const hex = createHash('sha256')
    .update(JSON.stringify([kind, whose, period, from.toISOString()]))
    .digest('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}

export interface QuotaRow {
  readonly id: string;
  readonly kind: QuotaSubject['kind'];
  readonly owner_id: string;
  readonly tenant_key: string;
  readonly key_id: string;
  readonly period: Quota['period'];
  readonly starts_at: Date | string;
  readonly ends_at: Date | string;
  readonly used: number | bigint | string;
  readonly quota: number | bigint | string | null;
}

const COLUMNS = 'cast(id as text) as id, kind, owner_id, tenant_key, key_id, period, starts_at, ends_at, used, quota';

/** The counts of a subject in the periods that a moment is in. */
export function countsAt(db: Db, kind: QuotaSubject['kind'], id: string, at: Date): Promise<QuotaRow[]> {
  const column = kind === 'key' ? 'key_id' : kind === 'owner' ? 'owner_id' : 'tenant_key';
  return db.query<QuotaRow>(
    `select ${COLUMNS} from request_quotas where ${column} = $1 and ${column} <> '' and kind = $2 and starts_at <= $3 and ends_at > $3 order by starts_at`,
    [id, kind, at],
  );
}

/** Counts of one transaction. */
const BATCH = 100;

/** Marks counts of periods that are over, and returns them. Each is returned once, whatever the number of processes. */
export function markRecorded(tx: Db, endedBefore: Date, now: Date): Promise<QuotaRow[]> {
  return tx.query<QuotaRow>(
    `update request_quotas set recorded_at = $1 where recorded_at is null and id in (
       select id from request_quotas where recorded_at is null and ends_at <= $2 order by ends_at limit ${BATCH}${skipLocked(tx)})
     returning ${COLUMNS}`,
    [now, endedBefore],
  );
}

/** Removes a batch of counts of periods that ended before a time and were recorded; returns how many. */
export async function removeOldCounts(db: Db, endedBefore: Date): Promise<number> {
  const values: unknown[] = [endedBefore];
  const kept = exceptHeld(await heldSubjects(db), requestQuotas, 'request_quotas', values);
  const removed = await db.execute(
    `delete from request_quotas where id in (
       select id from request_quotas where ends_at < $1 and recorded_at is not null${kept} order by ends_at limit 2000${skipLocked(db)})`,
    values,
  );
  return removed.count;
}
