import { jsonValue } from '../../../db/values/json-value.ts';
import { marksSensitive, sensitiveNames, withoutSensitive } from '../../../db/declare/sensitive-members.ts';
import { jsonSchemaOf, type JsonSchema, type Schema } from '../../../http/declare/schema.ts';
import type { JobDefinition } from '../declare/job.ts';
import type { JobCatalog } from '../declare/job-catalog.ts';
import type { Job } from './store.ts';

const MASK = '***';

/** The masked parts of a job: where its schemas mark them, and members with one of the names wherever they are. */
interface SensitiveParts {
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

/** The input or the result of a job, its sensitive members masked. */
export function payloadOf<P extends 'input' | 'result'>(job: Pick<Job, 'name' | P>, part: P, catalog: JobCatalog): unknown {
  const sensitive = sensitiveOf(job, catalog);
  return masked(job[part], sensitive, sensitive?.[part]);
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
