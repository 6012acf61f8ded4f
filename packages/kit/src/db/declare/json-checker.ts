// Not `typebox/compile`: it loads 446 modules more, for types that are not used here (a third of a second of a start on a busy machine).
import { Compile } from 'typebox/schema';
import { patternSentence } from '../values/pattern-sentence.ts';
import type { SchemaIssue } from '../values/standard-schema.ts';

/** The part of a compiled schema that is used; TypeBox's own types stay out of every signature (they cost the compiler dearly). */
interface Compiled {
  Check(value: unknown): boolean;
  Errors(value: unknown): readonly [isValid: boolean, faults: readonly Fault[]];
}

interface Fault {
  readonly keyword: string;
  readonly instancePath: string;
  readonly message: string;
  readonly params: Readonly<Record<string, unknown>>;
}

const compileSchema = Compile as unknown as (schema: object) => Compiled;

/** Compiles a JSON Schema to a function that lists every fault of a value. */
export function jsonChecker(schema: object): (value: unknown) => SchemaIssue[] {
  const compiled = compileSchema(schema);
  return (value) => (compiled.Check(value) ? [] : withoutEchoes(compiled.Errors(value)[1]).flatMap(toIssues));
}

/** A value of the wrong format breaks the pattern that spells the format out as well: once is enough. */
function withoutEchoes(faults: readonly Fault[]): readonly Fault[] {
  const misformed = new Set(faults.filter(({ keyword }) => keyword === 'format').map(({ instancePath }) => instancePath));
  return faults.filter(({ keyword, instancePath }) => keyword !== 'pattern' || !misformed.has(instancePath));
}

function toIssues({ keyword, instancePath, message, params }: Fault): SchemaIssue[] {
  const path = instancePath.split('/').slice(1).map(unescapePointer);
  if (keyword === 'boolean') return []; // `additionalProperties` says the same with the names
  if (keyword === 'required')
    return names(params['requiredProperties']).map((name) => ({ message: 'is required', code: 'required', path: [...path, name] }));
  if (keyword === 'additionalProperties') {
    return names(params['additionalProperties']).map((name) => ({
      message: 'is not a known field',
      code: 'unknown_field',
      path: [...path, name],
    }));
  }
  const sentence = keyword === 'pattern' ? patternSentence(params['pattern']) : sentenceOf(keyword, params);
  return [{ message: sentence ?? `${message}${allowedOf(params)}`, code: CODES[keyword] ?? 'invalid', path }];
}

/** People read these in forms: no operators, and a noun with its article. */
const TYPES: Readonly<Record<string, string>> = {
  integer: 'an integer',
  number: 'a number',
  string: 'a string',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
};

function sentenceOf(keyword: string, params: Fault['params']): string | undefined {
  const limit = String(params['limit']);
  const counted = (noun: string): string => `${limit} ${noun}${limit === '1' ? '' : 's'}`;
  switch (keyword) {
    case 'type':
      return `must be ${[params['type']]
        .flat()
        .map((type) => TYPES[String(type)] ?? String(type))
        .join(' or ')}`;
    case 'minimum':
      return `must be at least ${limit}`;
    case 'maximum':
      return `must be at most ${limit}`;
    case 'exclusiveMinimum':
      return `must be greater than ${limit}`;
    case 'exclusiveMaximum':
      return `must be less than ${limit}`;
    case 'minLength':
      return `must have at least ${counted('character')}`;
    case 'maxLength':
      return `must have at most ${counted('character')}`;
    case 'minItems':
      return `must have at least ${counted('value')}`;
    case 'maxItems':
      return `must have at most ${counted('value')}`;
    case 'multipleOf':
      return `must be a multiple of ${String(params['multipleOf'])}`;
    default:
      return undefined;
  }
}

/** Keywords of JSON Schema in the words of docs/reference/errors.md, which are those of Zod: one dialect for every schema. */
const CODES: Readonly<Record<string, string>> = {
  type: 'invalid_type',
  enum: 'invalid_value',
  const: 'invalid_value',
  pattern: 'invalid_format',
  format: 'invalid_format',
  minimum: 'too_small',
  exclusiveMinimum: 'too_small',
  minLength: 'too_small',
  minItems: 'too_small',
  minProperties: 'too_small',
  maximum: 'too_big',
  exclusiveMaximum: 'too_big',
  maxLength: 'too_big',
  maxItems: 'too_big',
  maxProperties: 'too_big',
  multipleOf: 'not_multiple_of',
  uniqueItems: 'duplicate',
  anyOf: 'invalid_union',
  oneOf: 'invalid_union',
};

const ALLOWED_MAX = 50;

/** The values of an enum or const: the caller cannot know them otherwise. */
function allowedOf({ allowedValues, allowedValue }: Readonly<Record<string, unknown>>): string {
  const values: readonly unknown[] = Array.isArray(allowedValues) ? allowedValues : allowedValue === undefined ? [] : [allowedValue];
  if (values.length === 0) return '';
  const shown = values.slice(0, ALLOWED_MAX).map((value) => JSON.stringify(value));
  return `: ${shown.join(', ')}${values.length > ALLOWED_MAX ? ', …' : ''}`;
}

function names(value: unknown): string[] {
  return Array.isArray(value) ? value.map(String) : [];
}

function unescapePointer(segment: string): string {
  return segment.replaceAll('~1', '/').replaceAll('~0', '~');
}
