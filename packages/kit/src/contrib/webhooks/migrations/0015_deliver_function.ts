import { migration } from '../../../db/migrations/migration.ts';
import { sql } from '../../../db/migrations/operation.ts';

// As in 0014_lighter_publish.ts.
const DELIVERY_ID = `cast(v_head || to_hex(uuid_hash_extended(e.id, v_seed) & 1152921504606846975 | 576460752303423488) as uuid)`;

/**
 * The part of `webhook_publish` that writes deliveries: for statements that insert the event and look for subscribers themselves, and call this only
 * when there are some. It asks the endpoints once more whether they belong to the audience and are active, and locks them as a foreign key would.
 */
const DELIVER = `create function webhook_deliver(
  p_id uuid, p_type text, p_timestamp timestamptz, p_audience text, p_owner text, p_tenant text, p_ordering_key text, p_endpoints uuid[]
) returns integer language plpgsql set enable_seqscan = off as $deliver$
declare
  v_head text := left(cast(p_id as text), 18) || '8';
  v_seed bigint := uuid_hash_extended(p_id, 0);
  v_deliveries integer;
begin
  insert into webhook_deliveries (id, event_id, endpoint_id, event_type, status, attempts, next_attempt_at, ordering_key, created_at)
  select ${DELIVERY_ID}, p_id, e.id, p_type, 'pending', 0, p_timestamp, p_ordering_key, p_timestamp
  from webhook_endpoints e
  where e.id = any(p_endpoints) and e.is_active
    and (p_audience = 'broadcast' or (e.tenant_key = p_tenant and (p_audience = 'tenant' or e.owner_id = p_owner)))
  for key share of e;
  get diagnostics v_deliveries = row_count;
  return v_deliveries;
end $deliver$`;

/** PostgreSQL only. `webhook_publish` stays: other libraries, poolers without prepared statements and the release before call it. */
export const deliverFunction = migration('0015_deliver_function', [sql({ sqlite: [], postgres: [DELIVER] })]);
