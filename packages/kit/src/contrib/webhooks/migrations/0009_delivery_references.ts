import { alterColumn, sql } from '../../../db/migrations/operation.ts';
import { migration } from '../../../db/migrations/migration.ts';
import { t } from '../../../db/column.ts';

/** The ids as an array: a plan that is made once then reads the index, however few or many rows were deleted when it was made. */
const ofDeleted = (table: string, column: string): readonly string[] => [
  `create function webhook_deliveries_of_deleted_${table}() returns trigger language plpgsql as $$ begin
    delete from webhook_deliveries where ${column} = any(array(select id from deleted));
    return null;
  end $$`,
  `create trigger webhook_deliveries_of_deleted after delete on webhook_${table}
   referencing old table as deleted for each statement execute function webhook_deliveries_of_deleted_${table}()`,
  `create trigger webhook_deliveries_of_truncated after truncate on webhook_${table}
   for each statement execute function webhook_deliveries_of_truncated()`,
];

/**
 * An event's deliveries are inserted by the statement that inserts the event and reads the endpoints. Looking both rows up again for two foreign
 * keys, delivery by delivery, was more than half of the cost of an event to 100 endpoints. What the keys did beyond that is done otherwise: the
 * statements that insert a delivery lock its endpoint (and its event where that is an older one) `for key share`, as a foreign key does, and
 * triggers remove deliveries with their event and their endpoint, however they are deleted.
 */
export const deliveryReferences = migration('0009_delivery_references', [
  alterColumn('webhook_deliveries', 'event_id', t.uuid()),
  alterColumn('webhook_deliveries', 'endpoint_id', t.uuid()),
  sql({
    sqlite: [
      `create trigger webhook_deliveries_of_deleted_event after delete on webhook_events begin
        delete from webhook_deliveries where event_id = old.id;
      end`,
      `create trigger webhook_deliveries_of_deleted_endpoint after delete on webhook_endpoints begin
        delete from webhook_deliveries where endpoint_id = old.id;
      end`,
    ],
    postgres: [
      `create function webhook_deliveries_of_truncated() returns trigger language plpgsql as $$ begin
        delete from webhook_deliveries;
        return null;
      end $$`,
      ...ofDeleted('events', 'event_id'),
      ...ofDeleted('endpoints', 'endpoint_id'),
    ],
  }),
]);
