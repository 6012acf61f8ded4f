import { migration } from '../../../db/migrations/migration.ts';
import { sql } from '../../../db/migrations/operation.ts';

/** The first of the two numbers of advisory locks on the endpoints of an owner. */
const ENDPOINTS_OF_OWNER = 20_016;
/**
 * How many locks the owners share. A transaction that publishes for every owner takes this many at most, where PostgreSQL has room for 6,400 with
 * its defaults. Owners that share one only wait for one another's deletions of endpoints.
 */
const LOCKS = 1024;
const lockOf = (owner: string): string => `${ENDPOINTS_OF_OWNER}, hashtext(${owner}) & ${LOCKS - 1}`;

// As in 0014_lighter_publish.ts.
const DELIVERY_ID = `cast(v_head || to_hex(uuid_hash_extended(e.id, v_seed) & 1152921504606846975 | 576460752303423488) as uuid)`;
const DELIVERIES = `insert into webhook_deliveries (id, event_id, endpoint_id, event_type, status, attempts, next_attempt_at, ordering_key, created_at)
    select ${DELIVERY_ID}, p_id, e.id, p_type, 'pending', 0, p_timestamp, p_ordering_key, p_timestamp
    from webhook_endpoints e where e.id = any(p_endpoints) and e.is_active`;

/**
 * The function of 0015_deliver_function.ts. For events of one owner it takes one shared lock that deletions of the owner's endpoints wait for, instead
 * of a lock on each endpoint. Ten row locks were a fifth of the cost of an event to ten endpoints, and more where several transactions publish to
 * the same ones: each then writes a list of the transactions that hold the row. The statement after the lock sees what a deletion that it waited for
 * has left, which is so in READ COMMITTED only.
 */
const DELIVER = `create or replace function webhook_deliver(
  p_id uuid, p_type text, p_timestamp timestamptz, p_audience text, p_owner text, p_tenant text, p_ordering_key text, p_endpoints uuid[]
) returns integer language plpgsql set enable_seqscan = off as $deliver$
declare
  v_head text := left(cast(p_id as text), 18) || '8';
  v_seed bigint := uuid_hash_extended(p_id, 0);
  v_deliveries integer;
begin
  if p_audience in ('owner', 'owner_in_tenant') and current_setting('transaction_isolation') = 'read committed' then
    perform pg_advisory_xact_lock_shared(${lockOf('p_owner')});
    ${DELIVERIES} and e.tenant_key = p_tenant and e.owner_id = p_owner;
  else
    ${DELIVERIES}
      and (p_audience = 'broadcast' or (e.tenant_key = p_tenant and (p_audience = 'tenant' or e.owner_id = p_owner)))
    for key share of e;
  end if;
  get diagnostics v_deliveries = row_count;
  return v_deliveries;
end $deliver$`;

const EVENT = `insert into webhook_events (id, type, data, timestamp, audience, owner_id, tenant_key, ordering_key, idempotency_key, traceparent)
    values (p_id, p_type, p_data, p_timestamp, p_audience, p_owner, p_tenant, p_ordering_key, p_idempotency_key, p_traceparent)`;

const subscribed = (members: string): string => `
      v_endpoints := array(select s.endpoint_id from webhook_subscriptions s
        where s.pattern = any(array(select unnest(p_patterns)))${members});`;

/** The function of 0014_lighter_publish.ts, which leaves the deliveries to the other. */
const PUBLISH = `create or replace function webhook_publish(
  p_id uuid, p_type text, p_data text, p_timestamp timestamptz, p_audience text, p_owner text, p_tenant text,
  p_ordering_key text, p_idempotency_key text, p_traceparent text, p_patterns text[]
) returns integer language plpgsql set enable_seqscan = off as $publish$
declare
  v_endpoints uuid[];
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
    when 'owner', 'owner_in_tenant' then${subscribed(' and s.tenant_key = p_tenant and s.owner_id = p_owner')}
    when 'tenant' then${subscribed(' and s.tenant_key = p_tenant')}
    when 'broadcast' then${subscribed('')}
  end case;
  if v_endpoints = '{}' then
    return 0;
  end if;
  return webhook_deliver(p_id, p_type, p_timestamp, p_audience, p_owner, p_tenant, p_ordering_key, v_endpoints);
end $publish$`;

/** However an endpoint is deleted or given to another owner, events to it that are being published are waited for. */
const WAIT_FOR_PUBLISHERS = [
  `create function webhook_wait_for_publishers() returns trigger language plpgsql as $wait$ begin
    perform pg_advisory_xact_lock(${lockOf('old.owner_id')});
    return case tg_op when 'DELETE' then old else new end;
  end $wait$`,
  `create trigger webhook_deletion_waits before delete on webhook_endpoints
   for each row execute function webhook_wait_for_publishers()`,
  `create trigger webhook_new_owner_waits before update of owner_id on webhook_endpoints
   for each row when (old.owner_id is distinct from new.owner_id) execute function webhook_wait_for_publishers()`,
];

/**
 * PostgreSQL only. The triggers first: from then on a deletion waits for both kinds of publishers. Processes of the release before call the same
 * functions, and so take the new lock at once.
 */
export const lockOfOwner = migration('0016_lock_of_owner', [sql({ sqlite: [], postgres: [...WAIT_FOR_PUBLISHERS, DELIVER, PUBLISH] })]);
