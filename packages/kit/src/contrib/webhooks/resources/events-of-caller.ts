// Which published events customers see, and what became of them: those that their endpoints get, or would get.
import type { CrudCaller } from '../../../crud/declare/crud-caller.ts';
import { STAFF } from '../../../crud/declare/resource.ts';
import type { Db } from '../../../db/engine/db.ts';
import { inIndexWords } from '../../../db/sql/where/where-sql.ts';
import type { Where } from '../../../db/sql/where/where.ts';
import { endpointOwner } from '../endpoints/whose-endpoints.ts';
import type { webhookEvents } from '../models.ts';

type EventWhere = Where<(typeof webhookEvents)['columns']>;

/** `none`: to no endpoint of the caller. Else what the worst of its deliveries is. */
export const SENT_STATES = ['none', 'pending', 'failed', 'succeeded'] as const;
export type SentState = (typeof SENT_STATES)[number];

// The words of the two indexes that lists of events are read by.
const OF_TENANT = inIndexWords("this.tenant_key <> ''") as EventWhere;
const OF_OWNER = inIndexWords("this.tenant_key = '' and this.owner_id <> ''") as EventWhere;

/**
 * What `reaches()` says of the endpoints that the caller has or may make, without broadcasts: these are nobody's own. Nobody sees what is for another person of
 * their tenant, nor an event without an audience.
 */
export function eventsOf(caller: CrudCaller): EventWhere {
  const owner = endpointOwner(caller);
  const tenant = caller.tenant ?? '';
  if (owner === undefined) return { or: [] };
  if (tenant === '') return { and: [OF_OWNER, { owner_id: owner, audience: 'owner' }] };
  const forTenant = { audience: 'tenant' } as const;
  const forOwner = { audience: 'owner_in_tenant', owner_id: owner } as const;
  return { and: [OF_TENANT, { tenant_key: tenant, or: [forTenant, forOwner] }] };
}

/** Of the deliveries to endpoints of the caller: how many others got an event is not theirs to know. */
export async function sentStates(rows: readonly { readonly id: string }[], db: Db, caller: CrudCaller): Promise<readonly SentState[]> {
  const owner = caller.audience === STAFF ? undefined : endpointOwner(caller);
  if (owner === undefined || rows.length === 0) return rows.map(() => 'none');
  const count = (status: string) => `sum(case when d.status = '${status}' then 1 else 0 end)`;
  const found = await db.query<{ event_id: string; pending: number | bigint; failed: number | bigint }>(
    `select d.event_id, ${count('pending')} as pending, ${count('failed')} as failed
     from webhook_endpoints p join webhook_deliveries d on d.endpoint_id = p.id
     where p.owner_id = $1 and p.tenant_key = $2 and d.event_id in (${rows.map((_, index) => `$${index + 3}`).join(', ')})
     group by d.event_id`,
    [owner, caller.tenant ?? '', ...rows.map(({ id }) => id)],
  );
  const states = new Map(
    found.map(({ event_id: id, pending, failed }): [string, SentState] => [
      id,
      Number(failed) > 0 ? 'failed' : Number(pending) > 0 ? 'pending' : 'succeeded',
    ]),
  );
  return rows.map(({ id }) => states.get(id) ?? 'none');
}
