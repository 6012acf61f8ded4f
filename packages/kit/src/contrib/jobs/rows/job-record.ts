import { jsonValue } from '../../../db/values/json-value.ts';
import { marksSensitive, sensitiveNames, withoutSensitive } from '../../../db/declare/sensitive-members.ts';
import { jsonSchemaOf, type JsonSchema, type Schema } from '../../../http/declare/schema.ts';
import type { JobDefinition } from '../declare/job.ts';
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
  const sensitive = sensitiveOf(job, catalog);
  return {
    id,
    name,
    queue,
    status,
    input: masked(job.input, sensitive, sensitive?.input),
    progress,
    progress_message,
    result: masked(job.result, sensitive, sensitive?.result),
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

/** What is masked of a job: where its schemas mark it, and what has one of the names wherever it stands. */
export interface SensitiveParts {
  /** Undefined: JSON Schema cannot describe the schema, or it marks nothing. */
  readonly input: JsonSchema | undefined;
  readonly result: JsonSchema | undefined;
  readonly names: ReadonlySet<string>;
  /** Of results of steps, which have no schema: also the names that the schemas mark. */
  readonly stepNames: ReadonlySet<string>;
}

const known = new WeakMap<JobDefinition, SensitiveParts>();

/** Null: the job is unknown to this code, so its members are unknown. */
export function sensitiveOf({ name }: Pick<Job, 'name'>, catalog: JobCatalog): SensitiveParts | null {
  const definition = catalog.find(name);
  if (definition === undefined) return null;
  let parts = known.get(definition);
  if (parts === undefined) known.set(definition, (parts = partsOf(definition)));
  return parts;
}

function partsOf({ input, result, sensitive: names }: JobDefinition): SensitiveParts {
  const schemas = { input: markingSchema(input), result: markingSchema(result) };
  const marked = [schemas.input, schemas.result].flatMap((schema) => (schema === undefined ? [] : sensitiveNames(schema)));
  return { ...schemas, names, stepNames: new Set([...names, ...marked]) };
}

function markingSchema(schema: Schema | undefined): JsonSchema | undefined {
  try {
    const json = schema === undefined ? undefined : jsonSchemaOf(schema, 'input');
    return json !== undefined && marksSensitive(json) ? json : undefined;
  } catch {
    return undefined; // a schema that JSON Schema cannot describe marks nothing
  }
}

/** JSON text as a value, sensitive members masked. */
export function masked(text: string | null, sensitive: Pick<SensitiveParts, 'names'> | null, schema?: JsonSchema): unknown {
  // The empty text is an input that was undefined.
  if (text === null || text === '') return null;
  if (sensitive === null) return MASK;
  const value = jsonValue(text);
  return maskMembers(schema === undefined ? value : withoutSensitive(schema, value, MASK), sensitive.names);
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
