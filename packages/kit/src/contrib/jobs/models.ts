import { model } from '../../db/declare/model.ts';
import { t } from '../../db/declare/column.ts';
import { REQUEST_ID_LENGTH_MAX } from '../../http/exchange/acting-request.ts';

export const JOB_NAME_LENGTH_MAX = 100;
export const QUEUE_NAME_LENGTH_MAX = 100;
/** Of `uniqueKey`, `serialKey`, `owner` and `tenantKey`. */
export const KEY_LENGTH_MAX = 255;
export const MESSAGE_LENGTH_MAX = 500;
export const STEP_NAME_LENGTH_MAX = 200;
export const WORKER_NAME_LENGTH_MAX = 100;
export const CODE_LENGTH_MAX = 64;
/** Of the JSON text of an input, a result and the result of a step. */
export const PAYLOAD_BYTES_MAX = 256 * 1024;
export const PRIORITY_MAX = 1_000_000;

export const JOB_STATUSES = ['queued', 'running', 'succeeded', 'failed', 'cancelled'] as const;
export type JobStatus = (typeof JOB_STATUSES)[number];

export const ATTEMPT_OUTCOMES = ['failed', 'timed_out', 'cancelled', 'worker_lost'] as const;
export type AttemptOutcome = (typeof ATTEMPT_OUTCOMES)[number];

/**
 * One row per job. How it moves: `queued` (not ready: its time has not come, or another job of its serial key is first; then ready) →
 * `running` (claimed: token, lease, worker) → `succeeded`, `failed` or `cancelled`; after a failed attempt with retries left, `queued` again.
 */
export const jobRows = model(
  'jobs',
  {
    id: t.uuidv7().pk(),
    name: t.text(JOB_NAME_LENGTH_MAX),
    version: t.int(),
    queue: t.text(QUEUE_NAME_LENGTH_MAX),
    status: t.enum(JOB_STATUSES).dbDefault('queued'),
    /** Of a queued job: may be claimed now. */
    is_ready: t.bool(),
    /** JSON text, as it was given. */
    input: t.text(),
    progress: t.int().nullable(),
    progress_message: t.text(MESSAGE_LENGTH_MAX).nullable(),
    /** JSON text. */
    result: t.text().nullable(),
    error_code: t.text(CODE_LENGTH_MAX).nullable(),
    error_message: t.text(MESSAGE_LENGTH_MAX).nullable(),
    /** Attempts begun; a stop of the worker takes its own back. */
    attempts: t.int().dbDefault(0),
    attempts_max: t.int(),
    priority: t.int().dbDefault(0),
    run_at: t.timestamp(),
    unique_key: t.text(KEY_LENGTH_MAX).nullable(),
    /** The unique key while it is taken. */
    unique_lock: t.text(KEY_LENGTH_MAX).nullable(),
    unique_until_started: t.bool().dbDefault(false),
    serial_key: t.text(KEY_LENGTH_MAX).nullable(),
    /** Who may see it; empty for jobs of the application itself. Not whose authority it runs with. */
    owner_id: t.text(KEY_LENGTH_MAX).dbDefault('').person(),
    tenant_key: t.text(KEY_LENGTH_MAX).dbDefault('').tenant(),
    /** Workers serve these in turn: the owner, or the tenant of a job without an owner. */
    turn_key: t.text(KEY_LENGTH_MAX).dbDefault(''),
    created_at: t.timestamp(),
    /** The start of the last attempt. */
    started_at: t.timestamp().nullable(),
    finished_at: t.timestamp().nullable(),
    /** Of the run under way. Whatever a run writes needs the same token, so a run that lost its claim changes nothing. */
    claim_token: t.text(36).nullable(),
    /** The end of the lease. Kept when a running job is cancelled: until then its handler may still be at work. */
    claimed_until: t.timestamp().nullable(),
    worker: t.text(WORKER_NAME_LENGTH_MAX).nullable(),
    /** The trace of the request that started it. */
    traceparent: t.text(55).nullable(),
    /** The request that started it, or that started the job which did; null outside requests. */
    request_id: t.text(REQUEST_ID_LENGTH_MAX).nullable(),
  },
  {
    guarded: true,
    indexes: [
      {
        columns: ['name', 'tenant_key', 'owner_id', 'unique_lock'],
        unique: true,
        where: 'unique_lock is not null',
        name: 'jobs_unique_key',
      },
      // Only work that is left is in these, so a million finished jobs do not slow a claim down.
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
      // Of the jobs of one serial key at most one is ready or running, whatever happens.
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
      // Groups of failed jobs are found by skipping from one to the next, and their jobs in order.
      { columns: ['name', 'error_code', 'id'], where: "status = 'failed'", name: 'jobs_failed_by_error' },
      // Keys that name a record (`order:<id>`): its page in the admin site lists its jobs, also those that have ended.
      { columns: ['serial_key', 'id'], where: 'serial_key is not null', name: 'jobs_by_serial_key' },
      { columns: ['unique_key', 'id'], where: 'unique_key is not null', name: 'jobs_by_unique_key' },
      { columns: ['request_id', 'id'], where: 'request_id is not null', name: 'jobs_of_request' },
    ],
  },
);

/** Attempts that did not succeed. The one that did is the job itself: its start, end and worker. */
export const jobAttempts = model(
  'job_attempts',
  {
    /** No foreign key: the statement that writes an attempt holds its job, and a trigger removes attempts with it. */
    job_id: t
      .uuid()
      .refersTo(() => jobRows)
      .person()
      .tenant(),
    id: t.uuidv7(),
    attempt: t.int(),
    outcome: t.enum(ATTEMPT_OUTCOMES),
    started_at: t.timestamp().nullable(),
    finished_at: t.timestamp(),
    error_code: t.text(CODE_LENGTH_MAX).nullable(),
    error_message: t.text(MESSAGE_LENGTH_MAX).nullable(),
    worker: t.text(WORKER_NAME_LENGTH_MAX).nullable(),
  },
  { guarded: true, primaryKey: ['job_id', 'id'] },
);

/** Steps that were done: a retry does not repeat them. */
export const jobSteps = model(
  'job_steps',
  {
    job_id: t.ref(() => jobRows, { onDelete: 'cascade' }),
    name: t.text(STEP_NAME_LENGTH_MAX),
    /** JSON text; null when the step returned nothing. */
    result: t.text().nullable(),
    attempt: t.int(),
    finished_at: t.timestamp(),
  },
  { guarded: true, primaryKey: ['job_id', 'name'] },
);

/** The last tick of each recurring job that was started or skipped, and the schedule it belongs to. */
export const jobSchedules = model(
  'job_schedules',
  {
    name: t.text(JOB_NAME_LENGTH_MAX).pk(),
    last_tick: t.timestamp(),
    schedule: t.text().nullable(),
    /** Since when its ticks start no jobs; null: they do. */
    paused_at: t.timestamp().nullable(),
    /** The job that was started last, by a tick or manually. No foreign key: the job may be pruned. */
    last_job_id: t.uuid().nullable(),
  },
  { guarded: true },
);

export const jobModels = [jobRows, jobAttempts, jobSteps, jobSchedules] as const;
