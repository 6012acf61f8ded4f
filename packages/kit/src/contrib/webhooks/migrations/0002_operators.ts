import { migration } from '../../../db/migrations/migration.ts';
import { createIndex } from '../../../db/migrations/operation.ts';

/** The few rows operators look for, so that finding them does not read the many. None of these is written when all goes well. */
export const operators = migration('0002_operators', [
  createIndex('webhook_endpoints', { columns: ['id'], where: 'failing_since is not null', name: 'webhook_endpoints_failing' }),
  createIndex('webhook_endpoints', { columns: ['id'], where: 'not is_active', name: 'webhook_endpoints_disabled' }),
  createIndex('webhook_deliveries', { columns: ['id'], where: "status = 'failed'", name: 'webhook_deliveries_failed' }),
]);
