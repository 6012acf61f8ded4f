// What is left to do, and what is in trouble: counted for the overview from partial indexes, to an end.
import type { Db } from '../../../db/engine/db.ts';

/** Counted to here and no further. */
const BACKLOG_MAX = 10_000;

export interface Backlog {
  readonly pending: number;
  readonly retrying: number;
  /** Behind an earlier delivery with the same ordering key. */
  readonly held: number;
  /** False: there are more. */
  readonly complete: boolean;
  readonly oldest: Date | null;
}

/** What is left to send, those due first. Reads the partial indexes of pending work and nothing else. */
export async function readBacklog(db: Db): Promise<Backlog> {
  const read = (condition: string, order: string, place: string) =>
    db.query<{ pending: number | bigint; held: number | bigint | null; retrying: number | bigint | null; oldest: string | Date | null }>(
      `select count(*) as pending, sum(case when place > 1 then 1 else 0 end) as held,
         sum(case when attempts > 0 and place = 1 then 1 else 0 end) as retrying, min(created_at) as oldest
       from (select attempts, created_at, ${place} as place from webhook_deliveries
         where status = 'pending' and next_attempt_at is not null and ${condition} order by ${order} limit ${BACKLOG_MAX + 1}) d`,
    );
  const parts = [
    ...(await read('ordering_key is null', 'next_attempt_at', '1')),
    // Only the first of an endpoint and ordering key may be sent.
    ...(await read(
      'ordering_key is not null',
      'endpoint_id, ordering_key, id',
      'row_number() over (partition by endpoint_id, ordering_key order by id)',
    )),
  ];
  const pending = parts.map((part) => Number(part.pending));
  const oldest = parts.flatMap((part) => (part.oldest === null ? [] : [new Date(part.oldest).getTime()]));
  return {
    pending: sum(pending),
    held: sum(parts.map((part) => Number(part.held ?? 0))),
    retrying: sum(parts.map((part) => Number(part.retrying ?? 0))),
    complete: pending.every((count) => count <= BACKLOG_MAX),
    oldest: oldest.length === 0 ? null : new Date(Math.min(...oldest)),
  };
}

export interface TroubleCounts {
  readonly failing: number;
  readonly disabled: number;
  readonly withoutAudience: number;
}

export async function countTrouble(db: Db): Promise<TroubleCounts> {
  const count = async (from: string): Promise<number> => {
    const [row] = await db.query<{ count: number | bigint }>(
      `select count(*) as count from (select 1 as one from ${from} limit ${BACKLOG_MAX + 1}) counted`,
    );
    return Number(row?.count ?? 0);
  };
  return {
    failing: await count('webhook_endpoints where is_active and failing_since is not null'),
    disabled: await count('webhook_endpoints where not is_active'),
    withoutAudience: await count('webhook_events where audience is null'),
  };
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
