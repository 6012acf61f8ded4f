import { migration } from '../../../db/migrations/migration.ts';
import { createIndex } from '../../../db/migrations/operation.ts';

/** Events of one type are listed, and the types that exist are found, without reading every event. */
export const eventsOfType = migration('0011_events_of_type', [createIndex('webhook_events', { columns: ['type', 'id'] })]);
