import { t } from '../../../db/column.ts';
import { migration } from '../../../db/migrations/migration.ts';
import { addColumn, createIndex, dropIndex, sql } from '../../../db/migrations/operation.ts';

const BACKFILL = `update jobs set turn_key = case when owner_id = '' then tenant_key else owner_id end
  where status in ('queued', 'running') and (owner_id <> '' or tenant_key <> '')`;

/** Jobs without an owner take turns by tenant. Finished jobs get their turn when they are started again. */
export const turnsOfTenants = migration('0005_turns_of_tenants', [
  ...addColumn('jobs', 'turn_key', t.text(255).dbDefault('')),
  sql({ sqlite: [BACKFILL], postgres: [BACKFILL] }),
  createIndex('jobs', {
    columns: ['queue', 'priority', 'turn_key', 'run_at', 'id'],
    where: "status = 'queued' and is_ready",
    name: 'jobs_ready_in_turn',
  }),
  dropIndex('jobs', 'jobs_ready'),
]);
