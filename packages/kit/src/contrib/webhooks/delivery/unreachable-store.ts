// SQL for operators: events that no endpoint can receive.
import { operatorsSql } from '../publishing/audience.ts';
import type { Db } from '../../../db/engine/db.ts';

/** A scrape comes every few seconds: no more than these are looked at. */
const RECENT_MAX = 10_000;
const missing = (endpoints: string): string => `not exists (select 1 from webhook_endpoints p where ${endpoints})`;
// One look-up for each kind of audience, so that each is served by an index of the endpoints.
const UNREACHABLE = `e.audience is not null
  and ${missing(operatorsSql('p'))}
  and ${missing(`e.audience = 'broadcast'`)}
  and ${missing(`e.audience = 'tenant' and p.tenant_key = e.tenant_key`)}
  and ${missing(`e.audience in ('owner', 'owner_in_tenant') and p.tenant_key = e.tenant_key and p.owner_id = e.owner_id`)}`;

/** Of the newest events, those whose audience has no endpoint; from an id on where it is given. */
export async function countUnreachable(db: Db, from?: string): Promise<number> {
  const [row] = await db.query<{ count: number | bigint }>(
    `select count(*) as count from (
       select * from webhook_events${from === undefined ? '' : ' where id >= $1'} order by id desc limit ${RECENT_MAX}
     ) e where ${UNREACHABLE}`,
    from === undefined ? [] : [from],
  );
  return Number(row?.count ?? 0);
}
