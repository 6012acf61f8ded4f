import type { Db } from '../../../db/engine/db.ts';

export interface WaitingDeliveries {
  readonly pending: number;
  /** When the oldest of them was published. */
  readonly oldest: Date | null;
  /** When the one that is due first is due: in the past, it waits for a worker. */
  readonly firstDue: Date | null;
  readonly disabledEndpoints: number;
  readonly failingEndpoints: number;
}

/** A scrape comes every few seconds: a backlog of millions is not counted to its end. */
const COUNTED_MAX = 100_000;
/** Nor searched for its oldest: among the first due ones there is one that is old enough to be worth an alarm. */
const SEARCHED_MAX = 10_000;

// Two conditions, because pending deliveries are in two partial indexes: both together are the work that is left, whatever is finished. Without an
// audience nothing makes a delivery due, so it has no next attempt and is no reason for an alarm.
const DUE_SOMETIME = `status = 'pending' and next_attempt_at is not null`;
const UNORDERED = { where: `${DUE_SOMETIME} and ordering_key is null`, order: 'next_attempt_at' };
const ORDERED = { where: `${DUE_SOMETIME} and ordering_key is not null`, order: 'endpoint_id, ordering_key, id' };

const COUNT = `select count(*) as pending from (
  select id from (select id from webhook_deliveries where ${UNORDERED.where} union all select id from webhook_deliveries where ${ORDERED.where}) p
  limit ${COUNTED_MAX}
) c`;
const oldestOf = ({ where, order }: typeof UNORDERED): string =>
  `select created_at from (select created_at from webhook_deliveries where ${where} order by ${order} limit ${SEARCHED_MAX}) p
  order by created_at limit 1`;

const FIRST_DUE = `select next_attempt_at from webhook_deliveries where ${UNORDERED.where} order by next_attempt_at limit 1`;
/** Those behind the first of an ordering key wait for it, whatever their own time says. */
const FIRST_DUE_ORDERED = `select next_attempt_at from (
  select next_attempt_at, row_number() over (partition by endpoint_id, ordering_key order by id) as place from (
    select id, endpoint_id, ordering_key, next_attempt_at from webhook_deliveries where ${ORDERED.where} order by ${ORDERED.order} limit ${SEARCHED_MAX}
  ) p
) h where place = 1 order by next_attempt_at limit 1`;

/** When the delivery is due that is due first: in the past, it waits for a worker. */
export async function firstDue(db: Db): Promise<Date | null> {
  const due: Date[] = [];
  for (const text of [FIRST_DUE, FIRST_DUE_ORDERED]) {
    const [row] = await db.query<{ next_attempt_at: Date }>(text);
    if (row !== undefined) due.push(row.next_attempt_at);
  }
  return earliest(due);
}

/** How much work is left. */
export async function readWaiting(db: Db): Promise<WaitingDeliveries> {
  const [count] = await db.query<{ pending: number }>(COUNT);
  const oldest: Date[] = [];
  for (const kind of [UNORDERED, ORDERED]) {
    const [row] = await db.query<{ created_at: Date }>(oldestOf(kind));
    if (row !== undefined) oldest.push(row.created_at);
  }
  const [endpoints] = await db.query<{ disabled: number; failing: number }>(
    `select coalesce(sum(case when is_active then 0 else 1 end), 0) as disabled,
       coalesce(sum(case when is_active and failing_since is not null then 1 else 0 end), 0) as failing from webhook_endpoints`,
  );
  return {
    pending: count?.pending ?? 0,
    oldest: earliest(oldest),
    firstDue: await firstDue(db),
    disabledEndpoints: endpoints?.disabled ?? 0,
    failingEndpoints: endpoints?.failing ?? 0,
  };
}

function earliest(moments: readonly Date[]): Date | null {
  return moments.toSorted((a, b) => a.getTime() - b.getTime())[0] ?? null;
}
