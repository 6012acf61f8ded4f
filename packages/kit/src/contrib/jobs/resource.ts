import { visibleTo } from '../../crud/declare/field-rule.ts';
import { resource } from '../../crud/checks/declare-resource.ts';
import { jsonSchema } from '../../http/declare/json-schema.ts';
import { isStaff } from '../../permissions/built-ins.ts';
import { jobErrors } from './errors.ts';
import { changeRecorded } from './manage/change-recorded.ts';
import { jobRows } from './models.ts';
import { payloadOf } from './rows/masked-payload.ts';
import { jobsOf } from './rows/jobs.ts';

const textOrNull = jsonSchema<string | null>({ type: ['string', 'null'] });
const JobError = jsonSchema<{ readonly code: string; readonly message: string } | null>({
  type: ['object', 'null'],
  description: 'Error of the last failed attempt.',
  properties: { code: { type: 'string' }, message: { type: 'string' } },
  required: ['code', 'message'],
  additionalProperties: false,
});

/** Users have their own jobs in the tenant that they act for, staff has all. Workers write them: clients can only cancel and retry. */
export const jobResource = resource(jobRows, {
  changes: 'trigger',
  name: 'job',
  missing: jobErrors.job_not_found,
  owner: { column: 'owner_id', none: '', unless: isStaff },
  tenant: { column: 'tenant_key', none: '', unless: isStaff },
  hidden: [
    'version',
    'is_ready',
    'error_code',
    'error_message',
    'unique_lock',
    'unique_until_started',
    'turn_key',
    'claim_token',
    'claimed_until',
    'traceparent',
  ],
  fields: { worker: visibleTo(isStaff), request_id: visibleTo(isStaff) },
  audiences: { staff: { rows: true, tenant: 'all' } },
  shown: {
    input: {
      requires: ['name'],
      response: jsonSchema<unknown>({ description: 'The input; sensitive fields are masked.' }),
      load: (rows, { db }) => rows.map((row) => payloadOf(row, 'input', jobsOf(db).settings.catalog)),
      ofRow: true,
    },
    result: {
      requires: ['name'],
      response: jsonSchema<unknown>({ description: 'The result; null until the job has succeeded, and for jobs without a result.' }),
      load: (rows, { db }) => rows.map((row) => payloadOf(row, 'result', jobsOf(db).settings.catalog)),
      ofRow: true,
    },
    owner_id: { requires: [], response: textOrNull, value: ({ owner_id: owner }) => owner || null },
    tenant_key: { requires: [], response: textOrNull, value: ({ tenant_key: tenant }) => tenant || null },
  },
  computed: {
    error: {
      requires: ['error_code', 'error_message'],
      response: JobError,
      value: ({ error_code: code, error_message: message }) => (code === null ? null : { code, message: message ?? '' }),
    },
  },
  actions: {
    retry: {
      on: 'selection',
      summary: 'Retry a failed or cancelled job',
      raises: [jobErrors.job_not_retryable, jobErrors.job_still_running, jobErrors.unique_key_taken],
      run: (context) => changeRecorded(context, context.row, 'retry'),
    },
    cancel: {
      on: 'selection',
      summary: 'Cancel a job',
      run: (context) => changeRecorded(context, context.row, 'cancel'),
    },
  },
  // Who cancelled and retried is recorded by the actions: entries with whole rows would have inputs with their sensitive fields.
  audit: false,
});
