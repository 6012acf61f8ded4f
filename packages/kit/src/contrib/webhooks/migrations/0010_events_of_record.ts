import { migration } from '../../../db/migrations/migration.ts';
import { createIndex } from '../../../db/migrations/operation.ts';

/** Events of a record have an ordering key that names it (`order:<id>`): its page in the admin site lists them. */
export const eventsOfRecord = migration('0010_events_of_record', [
  createIndex('webhook_events', {
    columns: ['ordering_key', 'id'],
    where: 'ordering_key is not null',
    name: 'webhook_events_of_record',
  }),
]);
