import { domainEvent } from '../../../events/domain-event.ts';
import { emit } from '../../../events/emit.ts';
import { CONFLICT_RETRIES } from '../../../db/engine/conflict-retries.ts';
import type { Clock } from '../../../db/clock.ts';
import type { Db } from '../../../db/engine/db.ts';
import { jsonSchema } from '../../../http/declare/json-schema.ts';
import { QUOTA_KINDS } from '../models.ts';
import { quotaCounters } from './quota-counter.ts';
import { markRecorded, unrecorded, type QuotaRow } from './quota-store.ts';

/** What somebody used in a period that is over. */
export interface RecordedUsage {
  /** The same for every repetition: give it to a meter that counts a key once. */
  readonly id: string;
  readonly kind: (typeof QUOTA_KINDS)[number];
  /** The id of the API key, user or tenant. */
  readonly of: string;
  /** The user of a key, or the user; empty for a tenant. */
  readonly owner: string;
  /** The tenant of a key, or the tenant; empty where there is none. */
  readonly tenant: string;
  readonly period: string;
  readonly from: string;
  readonly until: string;
  readonly used: number;
  readonly quota: number | null;
}

const text = { type: 'string' } as const;
const time = { type: 'string', format: 'date-time' } as const;

/**
 * Emitted once for each API key, user and tenant with a quota when a period is over, within about ten minutes. What was not used has none.
 *
 * @example
 * ```ts
 * declare const meter: { add(usage: { customer: string; value: number; identifier: string }): Promise<void> };
 * const billing = on(UsageRecorded, ({ id, of, used }) => meter.add({ customer: of, value: used, identifier: id }), { durable: true, name: 'meter' });
 * ```
 */
export const UsageRecorded = domainEvent(
  'usage.recorded',
  jsonSchema<RecordedUsage>({
    type: 'object',
    properties: {
      id: text,
      kind: { enum: [...QUOTA_KINDS] },
      of: text,
      owner: text,
      tenant: text,
      period: text,
      from: time,
      until: time,
      used: { type: 'integer', minimum: 0 },
      quota: { type: ['integer', 'null'] },
    },
    required: ['id', 'kind', 'of', 'owner', 'tenant', 'period', 'from', 'until', 'used', 'quota'],
    additionalProperties: false,
  }),
);

/** A process whose clock is behind by less still counts in the period before. */
const SKEW_MS = 60_000;

/** Emits a batch of periods that are over; returns how many. */
export async function recordPeriods(db: Db, clock: Clock): Promise<number> {
  const now = clock.now();
  const ids = await unrecorded(db, new Date(now.getTime() - SKEW_MS));
  if (ids.length === 0) return 0;
  await quotaCounters.of(db).settle(ids);
  return db.transaction(async (tx) => {
    const rows = await markRecorded(tx, ids, now);
    for (const row of rows) await emit(tx, UsageRecorded, recorded(row));
    return rows.length;
  }, CONFLICT_RETRIES);
}

function recorded(row: QuotaRow): RecordedUsage {
  const { id, kind, owner_id: owner, tenant_key: tenant, key_id: key, period, used, quota } = row;
  return {
    id,
    kind,
    of: kind === 'key' ? key : kind === 'owner' ? owner : tenant,
    owner,
    tenant,
    period,
    from: new Date(row.starts_at).toISOString(),
    until: new Date(row.ends_at).toISOString(),
    used: Number(used),
    quota: quota === null ? null : Number(quota),
  };
}
