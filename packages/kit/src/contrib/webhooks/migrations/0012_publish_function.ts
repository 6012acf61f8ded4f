import { migration } from '../../../db/migrations/migration.ts';
import { sql } from '../../../db/migrations/operation.ts';

const EVENT = `insert into webhook_events (id, type, data, timestamp, audience, owner_id, tenant_key, ordering_key, idempotency_key, traceparent)
    values (p_id, p_type, p_data, p_timestamp, p_audience, p_owner, p_tenant, p_ordering_key, p_idempotency_key, p_traceparent)`;

/** What makes a row of an audience one of its members: asked of subscriptions (`s`) and of endpoints (`e`). */
const MEMBERS = {
  owner: (row: string) => ` and ${row}.tenant_key = p_tenant and ${row}.owner_id = p_owner`,
  tenant: (row: string) => ` and ${row}.tenant_key = p_tenant`,
  broadcast: () => '',
};

// The patterns and the endpoints as queries and arrays: a plan that is made once is then as good as one for the values of this event, so PostgreSQL
// makes none again.
const deliver = (member: (row: string) => string): string => `
      v_endpoints := array(select s.endpoint_id from webhook_subscriptions s
        where s.pattern = any(array(select unnest(p_patterns)))${member('s')});
      if v_endpoints = '{}' then
        return 0;
      end if;
      insert into webhook_deliveries (id, event_id, endpoint_id, event_type, status, attempts, next_attempt_at, ordering_key, created_at)
      select cast(v_time || right(cast(gen_random_uuid() as text), 18) as uuid), p_id, e.id, p_type, 'pending', 0,
        p_timestamp, p_ordering_key, p_timestamp
      from webhook_endpoints e where e.id = any(v_endpoints) and e.is_active${member('e')}
      for key share of e;
      get diagnostics v_deliveries = row_count;
      return v_deliveries;`;

/**
 * One call writes an event and its deliveries, and returns how many; -1: the idempotency key was used before, and nothing was written.
 *
 * A function, because a statement prepares everything that it may write before it reads: the insert of deliveries with its eight indexes was most
 * of the cost of an event that no endpoint subscribes to. The statements here run only when they are needed and are planned once.
 *
 * Membership is asked of the endpoint as well as of its subscription: a row that is out of step may miss an event, never leak one. An endpoint is
 * locked as a foreign key would lock it: it cannot be deleted before the transaction ends, and one that was deleted while the statement waited
 * for the lock is left out. A delivery's key shares the first half (time and counter) of its event's, so that deliveries sort as their events do.
 */
const PUBLISH = `create function webhook_publish(
  p_id uuid, p_type text, p_data text, p_timestamp timestamptz, p_audience text, p_owner text, p_tenant text,
  p_ordering_key text, p_idempotency_key text, p_traceparent text, p_patterns text[]
) returns integer language plpgsql as $publish$
declare
  v_endpoints uuid[];
  v_time text := left(cast(p_id as text), 18);
  v_deliveries integer;
begin
  if p_idempotency_key is null then
    ${EVENT};
  else
    ${EVENT}
    on conflict (idempotency_key, type, owner_id, tenant_key) where idempotency_key is not null do nothing;
    if not found then
      return -1;
    end if;
  end if;
  case p_audience
    when 'owner', 'owner_in_tenant' then${deliver(MEMBERS.owner)}
    when 'tenant' then${deliver(MEMBERS.tenant)}
    when 'broadcast' then${deliver(MEMBERS.broadcast)}
  end case;
end $publish$`;

/** PostgreSQL only: SQLite is in the process, and its two statements cost no round trips. */
export const publishFunction = migration('0012_publish_function', [sql({ sqlite: [], postgres: [PUBLISH] })]);
