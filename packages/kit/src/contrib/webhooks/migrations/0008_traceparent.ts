import { t } from '../../../db/column.ts';
import { migration } from '../../../db/migrations/migration.ts';
import { addColumn } from '../../../db/migrations/operation.ts';

/** The trace of the request that published an event, so that its deliveries belong to it hours later. */
export const traceparent = migration('0008_traceparent', [...addColumn('webhook_events', 'traceparent', t.text(55).nullable())]);
