import { jsonValue } from '../../../db/values/json-value.ts';
import type { JobCatalog } from '../declare/job-catalog.ts';
import type { JobStatus } from '../models.ts';
import type { Job } from './store.ts';

/** A job as the API shows it. */
export interface JobRecord {
  readonly id: string;
  readonly name: string;
  readonly queue: string;
  readonly status: JobStatus;
  readonly input: unknown;
  readonly progress: number | null;
  readonly progress_message: string | null;
  readonly result: unknown;
  readonly error: { readonly code: string; readonly message: string } | null;
  readonly attempts: number;
  readonly attempts_max: number;
  readonly priority: number;
  readonly run_at: Date;
  readonly unique_key: string | null;
  readonly serial_key: string | null;
  readonly owner_id: string | null;
  readonly tenant_key: string | null;
  readonly created_at: Date;
  readonly started_at: Date | null;
  readonly finished_at: Date | null;
}

export const MASK = '***';

export function jobRecord(job: Job, catalog: JobCatalog): JobRecord {
  const { id, name, queue, status, progress, progress_message, attempts, attempts_max, priority, run_at, unique_key, serial_key } = job;
  const shown = (text: string | null): unknown => masked(text, sensitiveOf(job, catalog));
  return {
    id,
    name,
    queue,
    status,
    input: shown(job.input),
    progress,
    progress_message,
    result: shown(job.result),
    error: job.error_code === null ? null : { code: job.error_code, message: job.error_message ?? '' },
    attempts,
    attempts_max,
    priority,
    run_at,
    unique_key,
    serial_key,
    owner_id: job.owner_id === '' ? null : job.owner_id,
    tenant_key: job.tenant_key === '' ? null : job.tenant_key,
    created_at: job.created_at,
    started_at: job.started_at,
    finished_at: job.finished_at,
  };
}

/** The fields to mask; null: the job is unknown to this code, so its members are unknown. */
export function sensitiveOf({ name }: Pick<Job, 'name'>, catalog: JobCatalog): ReadonlySet<string> | null {
  return catalog.find(name)?.sensitive ?? null;
}

/** JSON text as a value, sensitive members masked at any depth. */
export function masked(text: string | null, sensitive: ReadonlySet<string> | null): unknown {
  // The empty text is an input that was undefined.
  if (text === null || text === '') return null;
  if (sensitive === null) return MASK;
  return maskMembers(jsonValue(text), sensitive);
}

/** Masks sensitive members in the value itself, which was just read. Null is no secret. */
function maskMembers(value: unknown, sensitive: ReadonlySet<string>): unknown {
  if (typeof value !== 'object' || value === null || sensitive.size === 0) return value;
  for (const [key, member] of Object.entries(value)) {
    const isMasked = member !== null && !Array.isArray(value) && sensitive.has(key);
    Object.defineProperty(value, key, { value: isMasked ? MASK : maskMembers(member, sensitive) });
  }
  return value;
}
