import type { TenantUse } from '../../../app/declare/registry.ts';
import type { Db } from '../../../db/engine/db.ts';
import { requestLogs } from '../log/log.ts';

const DAY_MS = 86_400_000;
const DAYS = 30;

/** Requests of the last 30 days and the newest one in the log, of each of these tenants: a range of an index for each. */
export async function useOfTenants(db: Db, tenants: readonly string[]): Promise<ReadonlyMap<string, TenantUse>> {
  if (tenants.length === 0) return new Map();
  const since = new Date(requestLogs.of(db).clock.now().getTime() - (DAYS - 1) * DAY_MS).toISOString().slice(0, 10);
  const asked = JSON.stringify(tenants);
  const list = db.dialect === 'postgres' ? 'json_array_elements_text(cast($1 as json)) as a (value)' : 'json_each($1) as a';
  const newest = await db.query<{ tenant_key: string; finished_at: Date }>(
    `select l.tenant_key, l.finished_at from ${list} join request_log l
     on l.id = (select r.id from request_log r where r.tenant_key = a.value and r.tenant_key <> '' order by r.id desc limit 1)`,
    [asked],
  );
  const counted = await db.query<{ tenant_key: string; requests: number | bigint | string }>(
    `select u.tenant_key, cast(sum(u.requests) as bigint) as requests from ${list} join request_usage u
     on u.tenant_key = a.value and u.tenant_key <> '' and u.day >= $2 group by u.tenant_key`,
    [asked, since],
  );
  const [lastAt, requests] = [
    new Map(newest.map(({ tenant_key: tenant, finished_at: at }) => [tenant, at])),
    new Map(counted.map(({ tenant_key: tenant, requests: number }) => [tenant, Number(number)])),
  ];
  return new Map(tenants.map((tenant) => [tenant, { requests: requests.get(tenant) ?? 0, lastAt: lastAt.get(tenant) ?? null }]));
}
