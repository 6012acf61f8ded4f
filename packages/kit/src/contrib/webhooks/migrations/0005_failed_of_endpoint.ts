import { migration } from '../../../db/migrations/migration.ts';
import { createIndex } from '../../../db/migrations/operation.ts';

/** What failed at one endpoint, among the million deliveries that it got. Not written when all goes well. */
export const failedOfEndpoint = migration('0005_failed_of_endpoint', [
  createIndex('webhook_deliveries', {
    columns: ['endpoint_id', 'id'],
    where: "status <> 'pending' and status <> 'succeeded'",
    name: 'webhook_deliveries_failed_of_endpoint',
  }),
]);
