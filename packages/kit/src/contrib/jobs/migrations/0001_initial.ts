import { createTable, sql } from '../../../db/migrations/operation.ts';
import { migration } from '../../../db/migrations/migration.ts';
import { t } from '../../../db/declare/column.ts';

export const initial = migration('0001_initial', [
  createTable(
    'jobs',
    {
      id: t.uuidv7().pk(),
      name: t.text(100),
      version: t.int(),
      queue: t.text(100),
      status: t.enum(['queued', 'running', 'succeeded', 'failed', 'cancelled']).dbDefault('queued'),
      is_ready: t.bool(),
      input: t.text(),
      progress: t.int().nullable(),
      progress_message: t.text(500).nullable(),
      result: t.text().nullable(),
      error_code: t.text(64).nullable(),
      error_message: t.text(500).nullable(),
      attempts: t.int().dbDefault(0),
      attempts_max: t.int(),
      priority: t.int().dbDefault(0),
      run_at: t.timestamp(),
      unique_key: t.text(255).nullable(),
      unique_lock: t.text(255).nullable(),
      unique_until_started: t.bool().dbDefault(false),
      serial_key: t.text(255).nullable(),
      owner_id: t.text(255).dbDefault(''),
      tenant_key: t.text(255).dbDefault(''),
      created_at: t.timestamp(),
      started_at: t.timestamp().nullable(),
      finished_at: t.timestamp().nullable(),
      claim_token: t.text(36).nullable(),
      claimed_until: t.timestamp().nullable(),
      worker: t.text(100).nullable(),
      traceparent: t.text(55).nullable(),
      request_id: t.text(200).nullable(),
      turn_key: t.text(255).dbDefault(''),
    },
    {
      indexes: [
        {
          columns: ['name', 'tenant_key', 'owner_id', 'unique_lock'],
          unique: true,
          where: 'unique_lock is not null',
          name: 'jobs_unique_key',
        },
        // Jobs take turns by owner; those without one by tenant.
        {
          columns: ['queue', 'priority', 'turn_key', 'run_at', 'id'],
          where: "status = 'queued' and is_ready",
          name: 'jobs_ready_in_turn',
        },
        { columns: ['run_at'], where: "status = 'queued' and not is_ready and serial_key is null", name: 'jobs_waiting' },
        {
          columns: ['serial_key', 'id'],
          where: 'serial_key is not null and (finished_at is null or claimed_until is not null)',
          name: 'jobs_serial',
        },
        {
          columns: ['serial_key'],
          unique: true,
          where: "serial_key is not null and (status = 'running' or (status = 'queued' and is_ready))",
          name: 'jobs_serial_turn',
        },
        { columns: ['claimed_until'], where: 'claimed_until is not null', name: 'jobs_leases' },
        { columns: ['owner_id', 'id'], where: "owner_id <> ''", name: 'jobs_of_owner' },
        { columns: ['tenant_key', 'id'], where: "tenant_key <> ''", name: 'jobs_of_tenant' },
        { columns: ['id'], where: "status = 'failed'", name: 'jobs_failed' },
        { columns: ['name', 'error_code', 'id'], where: "status = 'failed'", name: 'jobs_failed_by_error' },
        // Jobs about a record have a serial or unique key that names it (`order:<id>`): its page in the admin site lists them, ended ones too.
        { columns: ['serial_key', 'id'], where: 'serial_key is not null', name: 'jobs_by_serial_key' },
        { columns: ['unique_key', 'id'], where: 'unique_key is not null', name: 'jobs_by_unique_key' },
        // The history of a record shows what else its requests did.
        { columns: ['request_id', 'id'], where: 'request_id is not null', name: 'jobs_of_request' },
      ],
    },
  ),
  createTable(
    'job_attempts',
    {
      job_id: t.uuid(),
      id: t.uuidv7(),
      attempt: t.int(),
      outcome: t.enum(['failed', 'timed_out', 'cancelled', 'worker_lost']),
      started_at: t.timestamp().nullable(),
      finished_at: t.timestamp(),
      error_code: t.text(64).nullable(),
      error_message: t.text(500).nullable(),
      worker: t.text(100).nullable(),
    },
    { primaryKey: ['job_id', 'id'] },
  ),
  createTable(
    'job_steps',
    {
      job_id: t.ref('jobs', { onDelete: 'cascade' }),
      name: t.text(200),
      result: t.text().nullable(),
      attempt: t.int(),
      finished_at: t.timestamp(),
    },
    { primaryKey: ['job_id', 'name'] },
  ),
  // The schedule that the last tick belongs to: a changed one starts no jobs for ticks that it never had.
  createTable('job_schedules', {
    name: t.text(100).pk(),
    last_tick: t.timestamp(),
    schedule: t.text().nullable(),
    paused_at: t.timestamp().nullable(),
    last_job_id: t.uuid().nullable(),
  }),
  // Attempts are deleted with their job by a trigger; a foreign key would look the job up again for every attempt that is written.
  sql({
    sqlite: [
      `create trigger job_attempts_of_deleted after delete on jobs begin
        delete from job_attempts where job_id = old.id;
      end`,
    ],
    postgres: [
      `create function job_attempts_of_deleted() returns trigger language plpgsql as $$ begin
        delete from job_attempts a using deleted d where a.job_id = d.id;
        return null;
      end $$`,
      `create trigger job_attempts_of_deleted after delete on jobs
       referencing old table as deleted for each statement execute function job_attempts_of_deleted()`,
      // A job is written three times within moments: started, claimed, finished. Room on its page keeps the versions together, and the
      // default of "a fifth of the table" would vacuum a growing table too rarely.
      'alter table jobs set (fillfactor = 40, autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02)',
    ],
  }),
]);
