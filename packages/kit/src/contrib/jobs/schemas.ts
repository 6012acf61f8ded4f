import { idParams, jsonSchema } from '../../http/declare/json-schema.ts';
import { page } from '../../http/declare/page.ts';
import { jobErrors } from './errors.ts';
import type { JobRecord } from './rows/job-record.ts';
import { JOB_NAME_LENGTH_MAX, JOB_STATUSES, QUEUE_NAME_LENGTH_MAX, type JobStatus } from './models.ts';

const text = { type: 'string' };
const orNull = (schema: { readonly type: string } & Readonly<Record<string, unknown>>) => ({ ...schema, type: [schema.type, 'null'] });
const time = { type: 'string', format: 'date-time' };
const status = { type: 'string', enum: [...JOB_STATUSES] };
const id = { type: 'string', format: 'uuid' };

const properties = {
  id,
  name: text,
  queue: text,
  status,
  input: { description: 'The input; sensitive fields are masked.' },
  progress: { ...orNull({ type: 'integer' }), description: 'Progress in percent; null until the job reports it.' },
  progress_message: orNull(text),
  result: { description: 'The result; null until the job has succeeded, and for jobs without a result.' },
  error: {
    type: ['object', 'null'],
    description: 'Error of the last failed attempt.',
    properties: { code: text, message: text },
    required: ['code', 'message'],
    additionalProperties: false,
  },
  attempts: { type: 'integer' },
  attempts_max: { type: 'integer' },
  priority: { type: 'integer' },
  run_at: time,
  unique_key: orNull(text),
  serial_key: orNull(text),
  owner_id: orNull(text),
  tenant_key: orNull(text),
  created_at: time,
  started_at: orNull(time),
  finished_at: orNull(time),
};

export const JobOut = jsonSchema<JobRecord>(
  {
    type: 'object',
    properties,
    required: Object.keys(properties),
    additionalProperties: false,
  },
  { name: 'Job' },
);
export const JobPage = page(JobOut);
export const JobId = idParams<{ readonly id: string }>({ id }, () => jobErrors.job_not_found());

export interface JobQueryFields {
  readonly limit?: number;
  readonly cursor?: string;
  readonly status?: JobStatus;
  readonly name?: string;
  readonly queue?: string;
}

export const LIMIT_MAX = 100;

export const JobQuery = jsonSchema<JobQueryFields>({
  type: 'object',
  properties: {
    limit: { type: 'integer', minimum: 1, maximum: LIMIT_MAX, default: 20 },
    cursor: { type: 'string', maxLength: 1000, description: '`next` or `previous` of another page.' },
    status,
    name: { type: 'string', maxLength: JOB_NAME_LENGTH_MAX },
    queue: { type: 'string', maxLength: QUEUE_NAME_LENGTH_MAX },
  },
  additionalProperties: false,
});

export interface AcceptedJob {
  readonly id: string;
  readonly status: JobStatus;
  readonly url: string | null;
}

/** The response schema of a route that starts a job: its id, status and URL. */
export const JobAccepted = jsonSchema<AcceptedJob>(
  {
    type: 'object',
    properties: { id, status, url: { ...orNull(text), description: 'URL of the job.' } },
    required: ['id', 'status', 'url'],
    additionalProperties: false,
  },
  { name: 'AcceptedJob' },
);
