import { alterColumn, sql } from '../../../db/migrations/operation.ts';
import { migration } from '../../../db/migrations/migration.ts';
import { t } from '../../../db/column.ts';

/**
 * An attempt is inserted by the statement that finishes its delivery, and only if that row is there and ours: looking the row up again for
 * a foreign key, attempt by attempt, was a tenth of the database's work for a delivery. What the key did beyond that, a trigger does: attempts go
 * with their delivery, however it is deleted.
 */
export const attempts = migration('0004_attempts', [
  alterColumn('webhook_attempts', 'delivery_id', t.uuid()),
  sql({
    sqlite: [
      `create trigger webhook_attempts_of_deleted after delete on webhook_deliveries begin
        delete from webhook_attempts where delivery_id = old.id;
      end`,
    ],
    postgres: [
      `create function webhook_attempts_of_deleted() returns trigger language plpgsql as $$ begin
        delete from webhook_attempts a using deleted d where a.delivery_id = d.id;
        return null;
      end $$`,
      `create trigger webhook_attempts_of_deleted after delete on webhook_deliveries
       referencing old table as deleted for each statement execute function webhook_attempts_of_deleted()`,
    ],
  }),
  // A delivery is written once more when it is claimed and once when it is finished, longer than it was: with this much room on its page the
  // first touches no index. The second is an entry in three of them, next to the one that was there: with room for it no page is split.
  sql({
    sqlite: [],
    postgres: [
      'alter table webhook_deliveries set (fillfactor = 40)',
      ...['webhook_deliveries_pkey', 'webhook_deliveries_event_id_endpoint_id_unique', 'webhook_deliveries_endpoint_id_id_index'].map(
        (index) => `alter index ${index} set (fillfactor = 45)`,
      ),
    ],
  }),
]);
