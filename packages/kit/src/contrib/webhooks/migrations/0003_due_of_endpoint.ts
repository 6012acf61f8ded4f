import { migration } from '../../../db/migrations/migration.ts';
import { createIndex, dropIndex } from '../../../db/migrations/operation.ts';

/**
 * The same rows, described in words that `webhook_deliveries_due` does not share: a query that goes from endpoint to endpoint says them too,
 * and PostgreSQL can no longer answer it from the queue of all endpoints, which the backlog of one may fill.
 */
export const dueOfEndpoint = migration('0003_due_of_endpoint', [
  dropIndex('webhook_deliveries', 'webhook_deliveries_due_of_endpoint'),
  createIndex('webhook_deliveries', {
    columns: ['endpoint_id', 'next_attempt_at'],
    where: "status <> 'succeeded' and status <> 'failed' and ordering_key is null",
    name: 'webhook_deliveries_due_of_endpoint',
  }),
]);
