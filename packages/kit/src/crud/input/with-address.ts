import type { Schema, SchemaResult } from '../../http/declare/schema.ts';
import type { Policy } from '../policy/policy.ts';

/** What a URL means otherwise, however it is encoded: the list itself, and the steps of a relative path. */
const NO_ADDRESS: ReadonlySet<unknown> = new Set(['', '.', '..']);
const SEGMENT = 'The value is the last segment of the URL of the record:';

/** How the address of a row is made. */
export interface Address {
  /** The column whose value is the last segment. */
  readonly column: string;
  /** Segments that are addresses of other operations, such as `meta`. */
  readonly taken: ReadonlySet<string>;
}

/** The address of a row that no controller says more about. */
export function keyAddress({ key }: Policy): Address {
  return { column: key.name, taken: new Set() };
}

/** The schema of a row whose key can stand in an address. Another row would be there, and could not be read, changed or deleted. */
export function withAddress<I, O>(schema: Schema<I, O>, { model }: Policy, { column: key, taken }: Address): Schema<I, O> {
  if (model.columns[key]?.settings.kind !== 'text') return schema;
  const { validate } = schema['~standard'];
  const checked = (value: unknown): SchemaResult<O> | Promise<SchemaResult<O>> => {
    const result = validate(value);
    const given = typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>)[key] : undefined;
    const message = faultOf(given, taken);
    if (message === undefined) return result;
    const fault = { path: [key], code: 'invalid', message };
    const withFault = ({ issues = [] }: SchemaResult<O>) => ({ issues: [...issues, fault] });
    return result instanceof Promise ? result.then(withFault) : withFault(result);
  };
  return { ...schema, '~standard': { ...schema['~standard'], validate: checked } };
}

function faultOf(given: unknown, taken: ReadonlySet<string>): string | undefined {
  if (NO_ADDRESS.has(given)) return `${SEGMENT} it cannot be empty, "." or "..".`;
  return typeof given === 'string' && taken.has(given) ? `${SEGMENT} "${given}" is the URL of another operation.` : undefined;
}
