import { t } from '../../../db/column.ts';
import { migration } from '../../../db/migrations/migration.ts';
import { addColumn } from '../../../db/migrations/operation.ts';

/** Whether an endpoint asks for the trace of the requests that cause its deliveries. */
export const sendTraceparent = migration('0013_send_traceparent', [
  ...addColumn('webhook_endpoints', 'send_traceparent', t.bool().dbDefault(false)),
]);
