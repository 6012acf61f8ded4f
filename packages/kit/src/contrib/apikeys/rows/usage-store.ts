import { exceptHeld, heldSubjects } from '../../../app/data/legal-holds.ts';
import type { Db } from '../../../db/engine/db.ts';
import { apiKeyUsage } from '../models.ts';

/** Requests of a key within an hour. */
export interface UsedHour {
  readonly keyId: string;
  readonly hourMs: number;
  requests: number;
}

/** Adds to what is counted already, in one statement. In the order of the keys, so that two processes wait for one another instead of failing. */
export async function addUsage(db: Db, hours: readonly UsedHour[]): Promise<void> {
  const sums = new Map<string, UsedHour>();
  for (const { keyId, hourMs, requests } of hours) {
    const slot = `${keyId} ${hourMs}`;
    const sum = sums.get(slot);
    if (sum === undefined) sums.set(slot, { keyId, hourMs, requests });
    else sum.requests += requests;
  }
  const rows = [...sums].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, each]) => each);
  const at = (hourMs: number) => new Date(hourMs).toISOString();
  const parameters =
    db.dialect === 'postgres'
      ? [rows.map(({ keyId }) => keyId), rows.map(({ hourMs }) => at(hourMs)), rows.map(({ requests }) => requests)]
      : [JSON.stringify(rows.map(({ keyId, hourMs, requests }) => [keyId, at(hourMs), requests]))];
  await db.query(ADD_USAGE[db.dialect], parameters);
}

const ADD = 'on conflict (key_id, hour) do update set requests = api_key_usage.requests + excluded.requests';
const ADD_USAGE = {
  postgres: `insert into api_key_usage (key_id, hour, requests)
    select * from unnest(cast($1 as uuid[]), cast($2 as timestamptz[]), cast($3 as bigint[])) ${ADD}`,
  sqlite: `insert into api_key_usage (key_id, hour, requests)
    select value ->> 0, value ->> 1, value ->> 2 from json_each($1) where true ${ADD}`,
} as const;

export async function deleteUsageBefore(db: Db, before: Date): Promise<void> {
  const values: unknown[] = [before];
  const kept = exceptHeld(await heldSubjects(db), apiKeyUsage, 'api_key_usage', values);
  await db.query(`delete from api_key_usage where hour < $1${kept}`, values);
}

/** Requests of a key by the hour, oldest first; hours without one are not in it. */
export async function usageOf(
  db: Db,
  keyId: string,
  since: Date,
  until: Date,
): Promise<readonly { readonly hour: Date; readonly requests: number }[]> {
  const rows = await db.query<{ hour: Date | string; requests: number | bigint | string }>(
    'select hour, requests from api_key_usage where key_id = $1 and hour >= $2 and hour < $3 order by hour',
    [keyId, since, until],
  );
  return rows.map(({ hour, requests }) => ({ hour: new Date(hour), requests: Number(requests) }));
}
