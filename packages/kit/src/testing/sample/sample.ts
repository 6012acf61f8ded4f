import { Compile } from 'typebox/schema';
import type { Schema as StandardSchema } from '../../db/values/standard-schema.ts';
import type { Schema } from './json-schema.ts';
import { seededRandom } from './random.ts';
import { drawValue } from './value.ts';
import { readOptions, requireArguments } from '../../options/read-options.ts';
import { oneOf, wholeNumber, rule } from '../../options/value-rule.ts';

export interface SampleOptions {
  /** The same seed gives the same value; 1 unless told otherwise. */
  readonly seed?: number;
  /** Whether properties that may be left out are given: `all` (default), `none`, or `some`, chosen by the seed. */
  readonly optional?: 'all' | 'none' | 'some';
}

interface Validator {
  Check(value: unknown): boolean;
  Errors(value: unknown): readonly [isValid: boolean, faults: readonly { readonly instancePath: string; readonly message: string }[]];
}

/** Compiling costs milliseconds and property tests draw from one schema thousands of times. */
const validators = new WeakMap<object, Validator>();
function validatorOf(schema: Schema): Validator {
  if (typeof schema === 'boolean') return Compile(schema ? {} : { not: {} });
  const known = validators.get(schema);
  if (known !== undefined) return known;
  const compiled = Compile(schema as object);
  validators.set(schema, compiled);
  return compiled;
}

function jsonSchemaOf(schema: StandardSchema | Schema): Schema {
  if (typeof schema === 'boolean' || !('~standard' in schema)) return schema;
  const { jsonSchema } = (schema as StandardSchema)['~standard'];
  if (jsonSchema === undefined) throw new Error('sample() needs a schema that can describe itself as JSON Schema; Zod 4 and models can.');
  return jsonSchema.input({ target: 'draft-2020-12' });
}

const ATTEMPTS = 100;

const aSchema = rule('a schema, such as one of Zod', (value) => ['object', 'function', 'boolean'].includes(typeof value) && value !== null);

/**
 * A value that satisfies every constraint of the schema, the same one on every run.
 * What cannot be constructed directly (`not`, `if`, overlapping `oneOf`) is drawn again until the validator agrees;
 * when it never does, the error names the place, and no wrong value is handed out.
 */
export function sample<Input>(schema: StandardSchema<Input, unknown>, options?: SampleOptions): Input;
export function sample(schema: Schema, options?: SampleOptions): unknown;
export function sample(schema: StandardSchema | Schema, options: SampleOptions = {}): unknown {
  readOptions('sample()', options, { seed: wholeNumber(0), optional: oneOf('all', 'none', 'some') });
  requireArguments('sample()', { schema }, { schema: aSchema });
  const root = jsonSchemaOf(schema);
  const validator = validatorOf(root);
  const random = seededRandom((options.seed ?? 1) * 2_654_435_761);
  let reason = '';
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    try {
      const value = drawValue(root, { root, random, optional: options.optional ?? 'all' });
      if (validator.Check(value)) return value;
      reason = validator.Errors(value)[1].map((fault) => `${fault.instancePath === '' ? '/' : fault.instancePath} ${fault.message}`).join('; '); // prettier-ignore
    } catch (error) {
      reason = error instanceof Error ? error.message : String(error);
    }
  }
  throw new Error(`No sample was found for the schema: ${reason}`);
}
