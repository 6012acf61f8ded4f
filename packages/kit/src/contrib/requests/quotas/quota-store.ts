import { createHash } from 'node:crypto';
import { exceptHeld, heldSubjects } from '../../../app/data/legal-holds.ts';
import { CONFLICT_RETRIES } from '../../../db/engine/conflict-retries.ts';
import type { Db } from '../../../db/engine/db.ts';
import { skipLocked } from '../../../work/lock-patience.ts';
import type { CalendarPeriod, Quota } from '../../../throttle/quota.ts';
import { type QUOTA_KINDS, requestQuotas } from '../models.ts';

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

/** A count of a subject in a period. */
export interface QuotaCount {
  readonly id: string;
  readonly subject: QuotaSubject;
  readonly period: CountedPeriod;
}

export function quotaCount(subject: QuotaSubject, period: CountedPeriod): QuotaCount {
  return { id: idOf(subject, period.quota.period, period.from), subject, period };
}

/** How many requests each count has with this one, or the place of the count whose quota is used up: then this one is in none. */
export type Taken = { readonly used: readonly number[] } | { readonly usedUp: number };

class UsedUp extends Error {
  readonly place: number;

  constructor(place: number) {
    super();
    this.place = place;
  }
}

/** Counts one request in each of them, or in none. */
export async function takeRequest(db: Db, counts: readonly QuotaCount[]): Promise<Taken> {
  const takeEach = async (tx: Db): Promise<Taken> => {
    const used: number[] = [];
    // Always in the same order, so that two requests wait for one another instead of failing.
    for (const count of counts) {
      const [row] = await tx.query<{ used: number | bigint | string }>(TAKE, countValues(count));
      if (row === undefined) throw new UsedUp(used.length);
      used.push(Number(row.used));
    }
    return { used };
  };
  try {
    return await (counts.length === 1 ? takeEach(db) : db.transaction(takeEach, CONFLICT_RETRIES));
  } catch (error) {
    if (error instanceof UsedUp) return { usedUp: error.place };
    throw error;
  }
}

export function countValues({
  id,
  subject: { kind, owner, tenant, keyId },
  period: { from, until, quota },
}: QuotaCount): readonly unknown[] {
  return [id, kind, owner, tenant, keyId, quota.period, from, until, quota.count];
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
  readonly counted_in_redis: number | bigint | string;
}

const COLUMNS = 'cast(id as text) as id, kind, owner_id, tenant_key, key_id, period, starts_at, ends_at, used, quota, counted_in_redis';

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

/** Counts of periods that are over and were not recorded yet, as many as a transaction may have. */
export async function unrecorded(db: Db, endedBefore: Date): Promise<readonly string[]> {
  const rows = await db.query<{ id: string }>(
    `select cast(id as text) as id from request_quotas where recorded_at is null and ends_at <= $1 order by ends_at limit ${BATCH}`,
    [endedBefore],
  );
  return rows.map(({ id }) => id);
}

/** Marks counts as recorded, and returns them. Each is returned once, whatever the number of processes. */
export function markRecorded(tx: Db, ids: readonly string[], now: Date): Promise<QuotaRow[]> {
  return tx.query<QuotaRow>(
    `update request_quotas set recorded_at = $1 where recorded_at is null and id in (
       select id from request_quotas where recorded_at is null and id in (${ids.map((_, index) => `$${index + 2}`).join(', ')})${skipLocked(tx)})
     returning ${COLUMNS}`,
    [now, ...ids],
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
