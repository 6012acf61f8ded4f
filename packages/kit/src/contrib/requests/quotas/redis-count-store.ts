// The rows of counts that Redis counts. `used` is what Redis counted, as far as it was written here (`counted_in_redis`), and what was counted here while Redis
// did not answer. Redis tells its own as a total that only grows: writing it twice, late or in another order changes nothing.
import { CONFLICT_RETRIES } from '../../../db/engine/conflict-retries.ts';
import type { Db } from '../../../db/engine/db.ts';
import { countValues, type QuotaCount } from './quota-store.ts';

/** What Redis counted in the period so far, and the quota it was counted against. */
export interface RedisCount {
  readonly id: string;
  readonly counted: number;
  /** Undefined: as it is. */
  readonly quota?: number | null;
}

/** A row, in the parts that Redis needs. */
export interface CountParts {
  readonly id: string;
  readonly counted: number;
  /** Counted in the database while Redis did not answer. */
  readonly direct: number;
}

interface PartsRow {
  readonly id: string;
  readonly used: number | bigint | string;
  readonly counted_in_redis: number | bigint | string;
}

const PARTS = 'cast(id as text) as id, used, counted_in_redis';

const partsOf = ({ id, used, counted_in_redis: inRedis }: PartsRow): CountParts => ({
  id,
  counted: Number(inRedis),
  direct: Number(used) - Number(inRedis),
});

const larger = (value: string) =>
  `case when ${value} > request_quotas.counted_in_redis then ${value} else request_quotas.counted_in_redis end`;

const BEGIN = `
insert into request_quotas (id, kind, owner_id, tenant_key, key_id, period, starts_at, ends_at, quota, used, counted_in_redis)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $10)
on conflict (id) do update set
  used = request_quotas.used - request_quotas.counted_in_redis + ${larger('excluded.counted_in_redis')},
  counted_in_redis = ${larger('excluded.counted_in_redis')}, quota = excluded.quota
returning ${PARTS}`;

/** The row of a count that Redis does not know. There is always one before Redis counts: a period without a row would never be recorded. */
export async function beginCount(db: Db, count: QuotaCount, counted: number): Promise<CountParts> {
  const [row] = await db.query<PartsRow>(BEGIN, [...countValues(count), counted]);
  return partsOf(row as PartsRow);
}

const id = { postgres: 'cast(m.value ->> 0 as uuid)', sqlite: 'm.value ->> 0' } as const;
const list = { postgres: 'json_array_elements(cast($1 as json)) as m (value)', sqlite: 'json_each($1) as m' } as const;
const counted = larger('cast(m.value ->> 1 as bigint)');

const add = (dialect: 'postgres' | 'sqlite') => `
update request_quotas set
  used = request_quotas.used - request_quotas.counted_in_redis + ${counted},
  counted_in_redis = ${counted},
  quota = case when m.value ->> 2 = 'as it is' then request_quotas.quota else cast(m.value ->> 2 as bigint) end
from ${list[dialect]} where request_quotas.id = ${id[dialect]}
returning cast(request_quotas.id as text) as id, used, counted_in_redis`;

const ADD = { postgres: add('postgres'), sqlite: add('sqlite') } as const;
const LOCK = `select id from request_quotas where id in (select ${id.postgres} from ${list.postgres}) order by id for update`;

/** Rows of one transaction. */
const BATCH = 500;

/** Writes what Redis counted; returns the rows that there are. None is created: one that was erased stays erased. */
export async function addCounted(db: Db, counts: readonly RedisCount[]): Promise<readonly CountParts[]> {
  const found: CountParts[] = [];
  for (let start = 0; start < counts.length; start += BATCH) {
    const batch = counts
      .slice(start, start + BATCH)
      .map((each) => [each.id, each.counted, each.quota === undefined ? 'as it is' : each.quota]);
    const write = async (tx: Db): Promise<PartsRow[]> => {
      // In the order of their keys, so that two processes wait for one another instead of failing.
      if (tx.dialect === 'postgres') await tx.query(LOCK, [JSON.stringify(batch)]);
      return tx.query<PartsRow>(ADD[tx.dialect], [JSON.stringify(batch)]);
    };
    found.push(...(await db.transaction(write, CONFLICT_RETRIES)).map(partsOf));
  }
  return found;
}

/** A request that Redis counted after all, when the database had counted it. */
export async function takeBack(db: Db, counts: readonly QuotaCount[]): Promise<void> {
  for (const count of counts) await db.query('update request_quotas set used = used - 1 where id = $1', [count.id]);
}
