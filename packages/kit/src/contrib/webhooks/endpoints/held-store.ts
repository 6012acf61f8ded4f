// SQL about deliveries that wait for an earlier one of their endpoint and ordering key.
import type { Db } from '../../../db/engine/db.ts';
import type { WebhookDelivery } from './store.ts';

/** SQL: the first pending delivery before `row` with its endpoint and ordering key. The words are those of the index `webhook_deliveries_ordered`. */
const firstBefore = (column: string, row = 'd'): string => `(select b.${column} from webhook_deliveries b
  where b.endpoint_id = ${row}.endpoint_id and b.ordering_key = ${row}.ordering_key and b.status = 'pending' and b.ordering_key is not null
    and b.id < ${row}.id
  order by b.id limit 1)`;

/** SQL: the pending delivery `row`, which has an ordering key, waits for an earlier one. */
export const waitsInOrder = (row: string): string => `exists ${firstBefore('id', row)}`;

/** By the id of a held delivery: the pending one it waits for. Deliveries that are not held are not in it. */
export async function heldBehind(
  db: Db,
  deliveries: readonly Pick<WebhookDelivery, 'id' | 'status' | 'ordering_key'>[],
): Promise<ReadonlyMap<string, Pick<WebhookDelivery, 'id' | 'event_type'>>> {
  const ids = deliveries.filter(({ status, ordering_key }) => status === 'pending' && ordering_key !== null).map(({ id }) => id);
  if (ids.length === 0) return new Map();
  const rows = await db.query<{ id: string; first: string | null; event_type: string | null }>(
    `select d.id, ${firstBefore('id')} as first, ${firstBefore('event_type')} as event_type from webhook_deliveries d
     where d.id in (${ids.map((_, index) => `$${index + 1}`).join(', ')})`,
    ids,
  );
  return new Map(rows.flatMap(({ id, first, event_type }) => (first === null ? [] : [[id, { id: first, event_type: event_type ?? '' }]])));
}
