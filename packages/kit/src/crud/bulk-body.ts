import { columnJsonSchema } from '../db/column-json.ts';
import { resolveReference } from '../db/column.ts';
import { inputSchema, patchSchema } from '../db/model-schema.ts';
import type { ModelColumn } from '../db/model-statements.ts';
import type { Columns } from '../db/rows.ts';
import type { FieldError } from '../errors/kit-error.ts';
import { compileUnknownFields, type UnknownFieldCheck } from '../http/json/unknown-fields.ts';
import { fieldError } from '../http/read-input.ts';
import { type JsonSchema, jsonSchemaOf, type Schema, type SchemaIssue, type SchemaResult } from '../http/schema.ts';
import { pascal } from './names.ts';
import type { Policy } from './policy.ts';
import type { Item } from './select-unit.ts';

/** One item of a body, validated: its values, or what is wrong with it. */
export interface ReadItem {
  readonly values: Item;
  /** Names of the members the client sent. */
  readonly sent: readonly string[];
  readonly at: FieldError['location'];
  /** The value of the lookup column, as text; absent on create. */
  readonly key?: string;
  readonly version?: number;
  /** Only where items are judged one by one. */
  readonly faults?: readonly FieldError[];
}

/** A body of a bulk operation, validated. */
export interface BulkBody {
  readonly items: readonly ReadItem[];
  /** Every row gets the same values: `{ ids, changes }`. */
  readonly isSame: boolean;
}

export interface BulkBodyOptions {
  readonly policy: Policy;
  /** Columns a client may send. */
  readonly input: readonly string[];
  /** The column that names rows. */
  readonly lookup: ModelColumn;
  readonly max: number;
  /** Faults of an item are reported with it, and do not refuse the request. */
  readonly isPartial: boolean;
}

type BodySchema = Schema<unknown, BulkBody>;

/** Reads the items of a bulk body. Faults of the schema have their places: `['body', 'items', 37, 'quantity']`. */
class ItemReader {
  readonly json: JsonSchema;
  readonly #schema: Schema;
  readonly #findUnknown: UnknownFieldCheck | null;
  readonly #options: BulkBodyOptions;
  readonly #kind: 'create' | 'keyed';

  constructor(options: BulkBodyOptions, kind: 'create' | 'keyed', columns: readonly string[]) {
    const { policy, lookup } = options;
    const chosen = Object.fromEntries(columns.map((name) => [name, policy.model.columns[name]])) as Columns;
    this.#options = options;
    this.#kind = kind;
    this.#schema = kind === 'create' ? inputSchema(chosen) : patchSchema(chosen);
    const values = jsonSchemaOf(this.#schema, 'input') as JsonSchema & { readonly properties?: JsonSchema };
    const version = policy.options.version as string | undefined;
    this.json =
      kind === 'create'
        ? values
        : {
            type: 'object',
            properties: {
              [lookup.name]: keyJson(policy, lookup),
              ...(version === undefined
                ? {}
                : { [version]: { type: 'integer', description: 'The version you read: another one is a 412.' } }),
              ...values.properties,
            },
            required: [lookup.name],
          };
    this.#findUnknown = compileUnknownFields(this.json);
  }

  async read(given: unknown, at: FieldError['location']): Promise<ReadItem> {
    if (typeof given !== 'object' || given === null || Array.isArray(given))
      return { values: {}, sent: [], at, faults: [{ location: at, code: 'invalid_type', message: 'must be an object' }] };
    const faults: FieldError[] = [];
    this.#findUnknown?.(given, [...at], faults);
    const members: Item = { ...given };
    const keyed = this.#kind === 'create' ? {} : this.#takeKey(members, at, faults);
    const result = await this.#schema['~standard'].validate(members);
    const isKnown = faults.some(({ code }) => code === 'unknown_field');
    for (const issue of result.issues ?? []) if (!(isKnown && issue.code === 'unknown_field')) faults.push(fieldError(at, members, issue));
    const values = result.issues === undefined ? (result.value as Item) : {};
    return { values, sent: Object.keys(members), at, ...keyed, ...(faults.length > 0 ? { faults } : {}) };
  }

  #takeKey(members: Item, at: FieldError['location'], faults: FieldError[]): { readonly key?: string; readonly version?: number } {
    const { lookup, policy } = this.#options;
    const name = policy.options.version as string | undefined;
    const { [lookup.name]: key, ...rest } = members;
    for (const each of Object.keys(members)) if (!(each in rest)) delete members[each];
    const taken: { key?: string; version?: number } = {};
    if (typeof key === 'string' || typeof key === 'number') taken.key = String(key);
    else if (key === undefined) faults.push({ location: [...at, lookup.name], code: 'required', message: 'Required.' });
    else faults.push({ location: [...at, lookup.name], code: 'invalid_type', message: 'must be the key of a row' });
    if (name !== undefined && members[name] !== undefined) {
      const version = members[name];
      delete members[name];
      if (typeof version === 'number' && Number.isInteger(version)) taken.version = version;
      else faults.push({ location: [...at, name], code: 'invalid_type', message: 'must be a whole number' });
    }
    return taken;
  }
}

/** `{ items: [{ sku, amount }, …] }`. */
export function bulkCreateBody(options: BulkBodyOptions): BodySchema {
  const reader = new ItemReader(options, 'create', options.input);
  const json = () => bodyJson(options, 'BulkInput', { items: listJson(options, itemJson(options, reader.json)) }, ['items']);
  return bodySchema(json, (body) => readItems(options, reader, body));
}

/** `{ items: [{ id, amount }, …] }`, or `{ ids, changes }` for the same values. */
export function bulkUpdateBody(options: BulkBodyOptions): BodySchema {
  const { policy, lookup } = options;
  const changed = options.input.filter((name) => name !== lookup.name);
  const reader = new ItemReader(options, 'keyed', changed);
  const columns = Object.fromEntries(changed.map((name) => [name, policy.model.columns[name]])) as Columns;
  const patch = patchSchema(columns) as unknown as Schema;
  const ids = listJson(options, keyJson(policy, lookup));
  const json = () => ({
    anyOf: [
      bodyJson(options, 'BulkPatch', { items: listJson(options, itemJson(options, reader.json)) }, ['items']),
      bodyJson(options, 'BulkChange', { ids, changes: jsonSchemaOf(patch, 'input') }, ['ids', 'changes']),
    ],
  });
  return bodySchema(json, async (body) => {
    if (body['ids'] === undefined && body['changes'] === undefined) return readItems(options, reader, body);
    const result = await patch['~standard'].validate(body['changes']);
    const issues: SchemaIssue[] = (result.issues ?? []).map(({ message, code, path = [] }) => ({
      message,
      code,
      path: ['changes', path].flat(),
    }));
    const keys = readKeys(options, body['ids'], 'ids');
    if ('issues' in keys) issues.push(...keys.issues);
    if (issues.length > 0 || 'issues' in keys || result.issues !== undefined) return { issues };
    const sent = Object.keys(body['changes'] as object);
    const values = result.value as Item;
    const items = keys.items.map(({ key, at }) => ({ key, at, values, sent }));
    return { value: { items, isSame: true } };
  });
}

/** `{ ids }`, or `{ items: [{ id, version }] }` where versions are compared. */
export function bulkDestroyBody(options: BulkBodyOptions): BodySchema {
  const reader = new ItemReader(options, 'keyed', []);
  const ids = listJson(options, keyJson(options.policy, options.lookup));
  const json = () => ({
    anyOf: [
      bodyJson(options, 'BulkKeys', { ids }, ['ids']),
      bodyJson(options, 'BulkVersions', { items: listJson(options, itemJson(options, reader.json)) }, ['items']),
    ],
  });
  return bodySchema(json, async (body) => {
    if (body['ids'] === undefined && body['items'] !== undefined) return readItems(options, reader, body);
    const keys = readKeys(options, body['ids'], 'ids');
    return 'issues' in keys ? keys : { value: { items: keys.items, isSame: false } };
  });
}

async function readItems(options: BulkBodyOptions, reader: ItemReader, body: Item): Promise<SchemaResult<BulkBody>> {
  const fault = countFault(options, body['items'], 'items');
  if (fault !== undefined) return { issues: [fault] };
  const given = body['items'] as readonly unknown[];
  const items = await Promise.all(given.map((item, index) => reader.read(item, ['body', 'items', index])));
  const repeated = repeatedKeys(
    options,
    items.map(({ key }) => key),
  );
  if (repeated.length > 0) return { issues: repeated.map((index) => duplicate(['items', index, options.lookup.name])) };
  if (options.isPartial) return { value: { items, isSame: false } };
  const faults = items.flatMap((item) => item.faults ?? []);
  if (faults.length === 0) return { value: { items, isSame: false } };
  return { issues: faults.map(({ location, code, message }) => ({ message, code, path: location.slice(1) })) };
}

function readKeys(
  options: BulkBodyOptions,
  given: unknown,
  member: string,
): { readonly items: (ReadItem & { readonly key: string })[] } | { readonly issues: SchemaIssue[] } {
  const fault = countFault(options, given, member);
  if (fault !== undefined) return { issues: [fault] };
  const keys = given as readonly unknown[];
  const wrong = keys.flatMap((key, index) => (typeof key === 'string' || typeof key === 'number' ? [] : [index]));
  if (wrong.length > 0)
    return { issues: wrong.map((index) => ({ message: 'must be the key of a row', code: 'invalid_type', path: [member, index] })) };
  const texts = keys.map(String);
  const repeated = repeatedKeys(options, texts);
  if (repeated.length > 0) return { issues: repeated.map((index) => duplicate([member, index])) };
  return { items: texts.map((key, index) => ({ key, values: {}, sent: [], at: ['body', member, index] })) };
}

function duplicate(path: readonly (string | number)[]): SchemaIssue {
  return { message: 'The same row is named more than once.', code: 'duplicate', path };
}

/** Every place of a key that is there more than once, however it is written. */
function repeatedKeys({ lookup }: BulkBodyOptions, keys: readonly (string | undefined)[]): number[] {
  const isUuid = resolveReference(lookup.settings).kind === 'uuid';
  const texts = keys.map((key) => (isUuid ? key?.toLowerCase() : key));
  const counts = new Map<string, number>();
  for (const text of texts) if (text !== undefined) counts.set(text, (counts.get(text) ?? 0) + 1);
  return texts.flatMap((text, index) => (text !== undefined && (counts.get(text) as number) > 1 ? [index] : []));
}

function countFault({ max }: BulkBodyOptions, given: unknown, member: string): SchemaIssue | undefined {
  const path = [member];
  if (given === undefined) return { message: 'Required.', code: 'required', path };
  if (!Array.isArray(given)) return { message: 'must be a list', code: 'invalid_type', path };
  if (given.length === 0) return { message: 'must have at least one item', code: 'too_small', path };
  return given.length > max ? { message: `must have at most ${max} items`, code: 'too_big', path } : undefined;
}

function bodySchema(json: () => JsonSchema, read: (body: Item) => Promise<SchemaResult<BulkBody>>): BodySchema {
  const validate = (value: unknown) =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? read(value as Item)
      : { issues: [{ message: 'must be an object', code: 'invalid_type', path: [] }] };
  return { '~standard': { version: 1, vendor: 'kit', validate, jsonSchema: { input: json, output: json } } };
}

function bodyJson({ policy }: BulkBodyOptions, suffix: string, properties: JsonSchema, required: readonly string[]): JsonSchema {
  return { title: `${pascal(policy.name)}${suffix}`, type: 'object', properties, required, additionalProperties: false };
}

function listJson({ max }: BulkBodyOptions, items: JsonSchema): JsonSchema {
  return { type: 'array', minItems: 1, maxItems: max, items };
}

/** Where items are judged one by one, a member nobody knows must not refuse the whole body before they are. */
function itemJson({ isPartial }: BulkBodyOptions, json: JsonSchema): JsonSchema {
  return isPartial
    ? { anyOf: [json, { type: 'object', additionalProperties: true, description: 'Its faults are reported with it.' }] }
    : json;
}

function keyJson(policy: Policy, lookup: ModelColumn): JsonSchema {
  const settings = policy.shown.get(lookup.name)?.settings ?? resolveReference(lookup.settings);
  return { ...columnJsonSchema({ ...settings, nullable: false, readOnly: false }, 'input'), pattern: undefined, default: undefined };
}
