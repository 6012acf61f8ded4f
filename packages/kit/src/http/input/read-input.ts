import { Readable } from 'node:stream';
import { isSensitiveAt, marksSensitive, maskedSentence } from '../../db/declare/sensitive-members.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import { FaultCollector, FAULTS_MAX } from '../../errors/fault-collector.ts';
import type { FieldError } from '../../errors/kit-error.ts';
import type { CompiledRoute, RouteSchema } from '../exchange/compiled-route.ts';
import type { Exchange } from '../exchange/exchange.ts';
import { Handling } from './handling.ts';
import type { Input } from '../declare/input.ts';
import { compileCoercions, type Coercion } from '../json/coerce.ts';
import { inexactNumberFaults } from '../json/inexact-numbers.ts';
import { compileUnknownFields, unknownField, type UnknownFieldCheck } from '../json/unknown-fields.ts';
import type { RawBody } from '../declare/raw.ts';
import { refuseMediaType } from './read-raw-body.ts';
import { readCookies } from './read-cookies.ts';
import { readQuery, type QueryValues } from './query-string.ts';
import type { RouteOptions } from '../declare/route.ts';
import { rememberInput } from '../compile/sensitive-inputs.ts';
import { isRawQuery, type JsonSchema, type SchemaIssue, type SchemaResult } from '../declare/schema.ts';
import { isMembers } from '../../options/value-rule.ts';
import { stepsOf } from '../../db/values/standard-schema.ts';

type Part = keyof Input;

/** Reads one part of the request as the schema wants it and notes members the schema does not know. */
interface PartReader {
  readonly part: Part;
  readonly read: (exchange: Exchange, faults: FieldError[]) => unknown;
  readonly validate: ((value: unknown) => SchemaResult<unknown> | Promise<SchemaResult<unknown>>) | undefined;
  /** The JSON Schema of a part that has sensitive members. */
  readonly sensitive?: JsonSchema | undefined;
}

const nothing = Object.freeze({});

/** Compiles how a route's input is read: every fault of every part at once (the first {@link FAULTS_MAX}), with its location. */
export function compileInput(route: CompiledRoute): (exchange: Exchange) => Input | Promise<Input> {
  const { params, query, headers, cookies } = route;
  const all = [paramsReader(params), queryReader(query), headersReader(headers), cookiesReader(cookies), bodyReader(route)];
  const readers = all.filter((reader) => reader !== null);
  const { validate } = route.route.options;
  const conclude: Conclusion =
    validate === undefined ? conclusion : (exchange, input, faults) => runRules(validate, exchange, input, faults);
  const none: Input = { params: nothing, query: nothing, headers: nothing, cookies: nothing, body: undefined };
  return (exchange) => readFrom({ readers, conclude }, 0, exchange, { ...none }, []);
}

type Conclusion = (exchange: Exchange, input: Input, faults: FieldError[]) => Input | Promise<Input>;

const conclusion: Conclusion = (_exchange, input, faults) => {
  if (faults.length > 0) throw coreErrors.validation_error({ errors: faults.slice(0, FAULTS_MAX) });
  return input;
};

function runRules(
  validate: NonNullable<RouteOptions['validate']>,
  exchange: Exchange,
  input: Input,
  faults: FieldError[],
): Input | Promise<Input> {
  const all = new FaultCollector();
  all.add(...faults);
  const conclude = (found: readonly FieldError[] | void) => {
    all.add(...(found ?? []));
    all.throwIfAny();
    return input;
  };
  const found = all.check(() => validate(acceptedMembers(exchange.request.body, faults), new Handling(exchange, input)));
  return found instanceof Promise ? found.then(conclude) : conclude(found);
}

/** The members of the body, as sent, that no fault is about. */
function acceptedMembers(body: unknown, faults: readonly FieldError[]): Record<string, unknown> {
  if (!isMembers(body)) return {};
  const refused = new Set(faults.filter(({ location }) => location[0] === 'body').map(({ location }) => location[1]));
  return refused.has(undefined) ? {} : Object.fromEntries(Object.entries(body).filter(([name]) => !refused.has(name)));
}

function readFrom(
  plan: { readonly readers: readonly PartReader[]; readonly conclude: Conclusion },
  from: number,
  exchange: Exchange,
  input: Input,
  faults: FieldError[],
): Input | Promise<Input> {
  const { readers } = plan;
  for (let index = from; index < readers.length; index += 1) {
    const reader = readers[index] as PartReader;
    const value = reader.read(exchange, faults);
    if (reader.validate === undefined) continue;
    const result = reader.validate(value);
    if (result instanceof Promise) {
      return result.then((settled) => {
        keep(reader, value, settled, input, faults);
        return readFrom(plan, index + 1, exchange, input, faults);
      });
    }
    keep(reader, value, result, input, faults);
  }
  return plan.conclude(exchange, input, faults);
}

function keep({ part, sensitive }: PartReader, value: unknown, result: SchemaResult<unknown>, input: Input, faults: FieldError[]): void {
  if (result.issues === undefined) {
    input[part] = result.value;
    if (sensitive !== undefined) for (const each of [value, result.value]) rememberInput(each, sensitive);
  } else {
    const known = faults.some(({ code }) => code === 'unknown_field');
    for (const issue of result.issues) {
      if (faults.length >= FAULTS_MAX) return;
      // A strict schema complains once more about what was already found, without saying where.
      const isRepeated = known && (issue.code === 'unrecognized_keys' || issue.code === 'unknown_field');
      if (!isRepeated) faults.push(fieldError([part], value, issue, sensitive));
    }
  }
  if (part === 'body') faults.push(...inexactNumberFaults(value, ['body'], faults));
}

/** What is wrong with a value, below the place where it was sent. `sensitive`: the value's schema, if it marks members as sensitive. */
export function fieldError(at: FieldError['location'], value: unknown, issue: SchemaIssue, sensitive?: JsonSchema): FieldError {
  const keys = stepsOf(issue);
  const path = keys.map((key, index) => (typeof key === 'number' ? key : placeOf(key, valueAt(value, keys.slice(0, index)))));
  const location = [...at, ...path];
  if (isMissing(value, path)) return { location, code: 'required', message: 'Required.' };
  const message = sensitive === undefined ? issue.message : messageWithoutValues(sensitive, value, path, issue.message);
  return { location, code: fieldCode(issue.code), message };
}

/** Items of a list are numbered, whether the schema says so by a number or by the text of a JSON pointer. */
function placeOf(key: string, within: unknown): string | number {
  return Array.isArray(within) && /^\d{1,15}$/.test(key) ? Number(key) : key;
}

/** A message of a schema may quote what it is about. */
function messageWithoutValues(schema: JsonSchema, value: unknown, path: readonly (string | number)[], message: string): string {
  const about = isSensitiveAt(schema, path) ? valueAt(value, path) : undefined;
  const isQuoted = (typeof about === 'string' || typeof about === 'number') && message.includes(String(about));
  return isQuoted ? 'Not valid.' : maskedSentence(schema, value, message, '[masked]');
}

/** Codes of another dialect than docs/reference/errors.md. A code of the schema's own, such as `not_a_vat_number`, is passed on. */
function fieldCode(code: string | undefined): string {
  if (code === 'unrecognized_keys') return 'unknown_field';
  return code === undefined || code === 'custom' || !/^[a-z][a-z0-9_]{0,63}$/.test(code) ? 'invalid' : code;
}

function isMissing(value: unknown, path: readonly (string | number)[]): boolean {
  return valueAt(value, path) === undefined;
}

/** Null where the path leads through something that has no members. */
function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  let current = value;
  for (const key of path) {
    if (typeof current !== 'object' || current === null) return null;
    current = (current as Record<PropertyKey, unknown>)[key];
  }
  return current;
}

function paramsReader(declared: RouteSchema | undefined): PartReader | null {
  if (declared === undefined) return null;
  // The schema reads the text itself, and knows what no key can be.
  if (isRawQuery(declared.schema)) return { part: 'params', read: ({ request }) => request.params, validate: validatorOf(declared) };
  const coercions = compileCoercions(declared.json);
  const isPlain = [...coercions.values()].every((coercion) => coercion === null);
  const read = (exchange: Exchange) => {
    // find-my-way decoded them; U+0000 is the one character it lets through that no database can hold.
    if (exchange.url.includes('%00')) throw coreErrors.malformed_url({ detail: 'The URL contains U+0000.' });
    const params = exchange.request.params as QueryValues;
    return isPlain ? params : coerced(params, coercions);
  };
  return { part: 'params', read, validate: validatorOf(declared), sensitive: sensitiveOf(declared) };
}

function queryReader(declared: RouteSchema | undefined): PartReader | null {
  if (declared !== undefined && isRawQuery(declared.schema)) return { part: 'query', read: rawQuery, validate: (value) => ({ value }) };
  const coercions = declared === undefined ? new Map<string, Coercion | null>() : compileCoercions(declared.json);
  const names = [...coercions.keys()];
  const isLoose =
    declared !== undefined && declared.json['additionalProperties'] !== undefined && declared.json['additionalProperties'] !== false;
  const read = (exchange: Exchange, faults: FieldError[]) => {
    const given = readQuery(exchange.url);
    for (const name of Object.keys(given)) {
      if (!isLoose && !coercions.has(name) && faults.length < FAULTS_MAX) faults.push(unknownField(['query'], name, names));
    }
    if (exchange.url.includes('%00')) refuseNul(given);
    return coerced(given, coercions);
  };
  if (declared === undefined) return { part: 'query', read, validate: undefined };
  return { part: 'query', read, validate: validatorOf(declared), sensitive: sensitiveOf(declared) };
}

function rawQuery(exchange: Exchange): QueryValues {
  const given = readQuery(exchange.url);
  if (exchange.url.includes('%00')) refuseNul(given);
  return given;
}

/** No database can hold U+0000 in a text, so no row has it. */
function refuseNul(given: QueryValues): void {
  const errors = Object.entries(given)
    .filter(([name, value]) => name.includes('\0') || String(value).includes('\0'))
    .map(([name]) => ({ location: ['query', name.slice(0, 100)], code: 'invalid', message: 'A text cannot contain U+0000.' }));
  if (errors.length > 0) throw coreErrors.validation_error({ errors: errors.slice(0, FAULTS_MAX) });
}

/** Header names are case-insensitive: declare them in lower case. Undeclared headers are not passed on and not refused. */
function headersReader(declared: RouteSchema | undefined): PartReader | null {
  if (declared === undefined) return null;
  const coercions = compileCoercions(declared.json);
  const read = (exchange: Exchange) => {
    const picked: QueryValues = {};
    for (const name of coercions.keys()) {
      const value = exchange.headers[name.toLowerCase()];
      if (value !== undefined) picked[name] = value;
    }
    return coerced(picked, coercions);
  };
  return { part: 'headers', read, validate: validatorOf(declared), sensitive: sensitiveOf(declared) };
}

/** Others than the declared cookies are not passed on and not refused: a browser sends all that it has. */
function cookiesReader(declared: RouteSchema | undefined): PartReader | null {
  if (declared === undefined) return null;
  const coercions = compileCoercions(declared.json);
  const read = ({ headers }: Exchange, faults: FieldError[]) =>
    coerced(readCookies(headers['cookie'], coercions.keys(), faults), coercions);
  return { part: 'cookies', read, validate: validatorOf(declared), sensitive: sensitiveOf(declared) };
}

function coerced(given: QueryValues, coercions: ReadonlyMap<string, Coercion | null>): Record<string, unknown> {
  const values: Record<string, unknown> = {};
  for (const name of Object.keys(given)) {
    const coercion = coercions.get(name);
    values[name] = coercion === undefined || coercion === null ? given[name] : coercion(given[name] as string | string[]);
  }
  return values;
}

function bodyReader(route: CompiledRoute): PartReader | null {
  const declared = route.body;
  if (route.rawBody !== undefined) return rawBodyReader(route.rawBody);
  if (declared !== undefined) {
    // A hint of ours would name members that this caller may not know of.
    const findUnknown = isRawQuery(declared.schema) ? null : compileUnknownFields(declared.json);
    const read = (exchange: Exchange, faults: FieldError[]) => {
      const { body } = exchange.request;
      findUnknown?.(body, ['body'], faults);
      return body;
    };
    return { part: 'body', read, validate: validatorOf(declared), sensitive: sensitiveOf(declared) };
  }
  // Fastify reads no body for GET; the admission has refused one already.
  return route.method === 'GET' ? null : { part: 'body', read: refuseBody, validate: undefined };
}

/** Fastify runs no parser for a request without content. */
function rawBodyReader(rawBody: RawBody): PartReader {
  const read = ({ request }: Exchange) => {
    const { body } = request;
    if (body !== undefined) return rawBody.stream && Buffer.isBuffer(body) ? Readable.from([body]) : body;
    refuseMediaType(rawBody, request.headers['content-type']);
    return rawBody.stream ? Readable.from([]) : Buffer.alloc(0);
  };
  const { read: readStream } = rawBody;
  if (readStream === undefined) return { part: 'body', read, validate: (value) => ({ value }) };
  return {
    part: 'body',
    read: (exchange) => () => readStream(read(exchange) as Readable, exchange.request.headers['content-type'] ?? ''),
    validate: (value) => (value as () => Promise<SchemaResult<unknown>>)(),
  };
}

/** Without a body schema only an empty body or an empty object passes: a misplaced field must not be ignored. */
const refuseBody: (exchange: Exchange, faults: FieldError[]) => void = (exchange, faults) => {
  const { body } = exchange.request;
  if (body === undefined || body === null) return;
  if (typeof body !== 'object' || Array.isArray(body)) throw coreErrors.unexpected_body();
  emptyBody?.(body, ['body'], faults);
};

const emptyBody: UnknownFieldCheck | null = compileUnknownFields({ type: 'object', properties: {} });

function validatorOf(declared: RouteSchema): PartReader['validate'] {
  const standard = declared.schema['~standard'];
  return (value) => standard.validate(value);
}

function sensitiveOf({ json }: RouteSchema): JsonSchema | undefined {
  return marksSensitive(json) ? json : undefined;
}
