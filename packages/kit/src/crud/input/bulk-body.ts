import { resolveReference } from '../../db/declare/column.ts';
import { patchSchema } from '../../db/declare/model-schema.ts';
import { flattened } from '../../http/json/schema-node.ts';
import { inexactNumberFaults, reportInexactNumbersByPart } from '../../http/json/inexact-numbers.ts';
import {
  type JsonSchema,
  jsonSchemaOf,
  partSchemaOf,
  type Schema,
  type SchemaIssue,
  type SchemaResult,
} from '../../http/declare/schema.ts';
import { isMembers } from '../../options/value-rule.ts';
import { type ItemOptions, ItemReader, keyJson, type ReadItem, repeatedKeys } from './item-reader.ts';
import { pascal } from '../../db/declare/component-name.ts';
import { keyText } from '../parameters/parameter-value.ts';
import { markWritable } from '../policy/rule-marks.ts';
import type { Item } from '../declare/item.ts';

/** A body of a bulk operation, validated. */
export interface BulkBody {
  readonly items: readonly ReadItem[];
  /** Every row gets the same values: `{ ids, changes }`. */
  readonly isSame: boolean;
}

export interface BulkBodyOptions extends ItemOptions {
  /** Columns a client may send. */
  readonly input: readonly string[];
  readonly max: number;
  /** Faults of an item are reported with it, and do not refuse the request. */
  readonly isPartial: boolean;
}

type BodySchema = Schema<unknown, BulkBody>;

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
  const columns = policy.inputColumns(changed);
  const patch = patchSchema(columns) as unknown as Schema;
  const ids = listJson(options, keyJson(policy, lookup));
  const json = () => ({
    anyOf: [
      bodyJson(options, 'BulkPatch', { items: listJson(options, itemJson(options, reader.json)) }, ['items']),
      bodyJson(options, 'BulkChange', { ids, changes: markWritable(policy, jsonSchemaOf(patch, 'input')) }, ['ids', 'changes']),
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
    const items = keys.items.map(({ key, at }) => ({ key, at, values, sent, valuesAt: ['body', 'changes'] }));
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

/** Rows for an action, validated. */
export interface ActionBody {
  readonly items: readonly ReadItem[];
  readonly input: unknown;
  readonly isDryRun: boolean;
}

/** `{ ids, input, dry_run }`; `items: [{ id, version }]` in place of the ids where versions are compared. */
export function actionBody(options: BulkBodyOptions, name: string, input: Schema | undefined): Schema<unknown, ActionBody> {
  const reader = new ItemReader(options, 'keyed', []);
  const given = input === undefined ? {} : partSchemaOf(input, 'input');
  const named = {
    ids: listJson(options, keyJson(options.policy, options.lookup)),
    items: listJson(options, itemJson(options, reader.json)),
  };
  const json = () => ({
    title: `${pascal(options.policy.name)}${pascal(name)}Selection`,
    type: 'object',
    properties: {
      ...named,
      ...(input === undefined ? {} : { input: given }),
      dry_run: { type: 'boolean', default: false, description: 'Runs the action, then rolls it back.' },
    },
    // One of `ids` and `items` names the records.
    ...(input === undefined || !takesMembers(given) ? {} : { required: ['input'] }),
    additionalProperties: false,
  });
  const validate = async (body: Item): Promise<SchemaResult<ActionBody>> => {
    const { dry_run: isDryRun = false } = body;
    const issues: SchemaIssue[] = [];
    const rows =
      body['ids'] === undefined && body['items'] !== undefined
        ? await readItems(options, reader, body)
        : readKeys(options, body['ids'], 'ids');
    if ('issues' in rows && rows.issues !== undefined) issues.push(...rows.issues);
    const read = input === undefined ? { value: undefined } : await input['~standard'].validate(body['input']);
    for (const { path = [], ...issue } of read.issues ?? []) issues.push({ ...issue, path: ['input', path].flat() });
    if (typeof isDryRun !== 'boolean') issues.push({ message: 'must be true or false', code: 'invalid_type', path: ['dry_run'] });
    if (issues.length > 0 || read.issues !== undefined) return { issues };
    const { items } = 'value' in rows ? rows.value : (rows as { readonly items: readonly ReadItem[] });
    return { value: { items, input: read.value, isDryRun: isDryRun as boolean } };
  };
  return bodySchema(json, validate);
}

/** Whether an input has a member that must be sent. */
function takesMembers(json: JsonSchema): boolean {
  const { required } = flattened(json, json) as { readonly required?: readonly string[] };
  return required !== undefined && required.length > 0;
}

async function readItems(options: BulkBodyOptions, reader: ItemReader, body: Item): Promise<SchemaResult<BulkBody>> {
  const fault = countFault(options, body['items'], 'items');
  if (fault !== undefined) return { issues: [fault] };
  const given = body['items'] as readonly unknown[];
  const items = await Promise.all(given.map((item, index) => reader.read(item, ['body', 'items', index])));
  const repeated = repeatedKeys(
    options.lookup,
    items.map(({ key }) => key),
  );
  if (repeated.length > 0) return { issues: repeated.map((index) => duplicate(['items', index, options.lookup.name])) };
  if (options.isPartial) {
    reportInexactNumbersByPart(body);
    return { value: { items: items.map((item, index) => withInexactNumbers(item, given[index])), isSame: false } };
  }
  const faults = items.flatMap((item) => item.faults ?? []);
  if (faults.length === 0) return { value: { items, isSame: false } };
  return { issues: faults.map(({ location, code, message }) => ({ message, code, path: location.slice(1) })) };
}

/** The item with errors about its numbers beside those it has. */
function withInexactNumbers(item: ReadItem, given: unknown): ReadItem {
  const found = inexactNumberFaults(given, item.at, item.faults ?? []);
  return found.length === 0 ? item : { ...item, faults: [...(item.faults ?? []), ...found] };
}

function readKeys(
  options: BulkBodyOptions,
  given: unknown,
  member: string,
): { readonly items: (ReadItem & { readonly key: string })[] } | { readonly issues: SchemaIssue[] } {
  const fault = countFault(options, given, member);
  if (fault !== undefined) return { issues: [fault] };
  const settings = resolveReference(options.lookup.settings);
  const keys = (given as readonly unknown[]).map((key) => keyText(settings, key));
  const wrong = keys.flatMap((key, index) => (key === undefined ? [index] : []));
  if (wrong.length > 0)
    return { issues: wrong.map((index) => ({ message: 'must be the key of a row', code: 'invalid_type', path: [member, index] })) };
  const texts = keys as readonly string[];
  const repeated = repeatedKeys(options.lookup, texts);
  if (repeated.length > 0) return { issues: repeated.map((index) => duplicate([member, index])) };
  return { items: texts.map((key, index) => ({ key, values: {}, sent: [], at: ['body', member, index] })) };
}

function duplicate(path: readonly (string | number)[]): SchemaIssue {
  return { message: 'The same row is named more than once.', code: 'duplicate', path };
}

function countFault({ max }: BulkBodyOptions, given: unknown, member: string): SchemaIssue | undefined {
  const path = [member];
  if (given === undefined) return { message: 'Required.', code: 'required', path };
  if (!Array.isArray(given)) return { message: 'must be a list', code: 'invalid_type', path };
  if (given.length === 0) return { message: 'must have at least one item', code: 'too_small', path };
  return given.length > max ? { message: `must have at most ${max} items`, code: 'too_big', path } : undefined;
}

function bodySchema<T>(json: () => JsonSchema, read: (body: Item) => Promise<SchemaResult<T>>): Schema<unknown, T> {
  const validate = (value: unknown) =>
    isMembers(value) ? read(value) : { issues: [{ message: 'must be an object', code: 'invalid_type', path: [] }] };
  return { '~standard': { version: 1, vendor: 'kit', validate, jsonSchema: { input: json, output: json } } };
}

function bodyJson({ policy }: BulkBodyOptions, suffix: string, properties: JsonSchema, required: readonly string[]): JsonSchema {
  return { title: `${pascal(policy.name)}${suffix}`, type: 'object', properties, required, additionalProperties: false };
}

function listJson({ max }: BulkBodyOptions, items: JsonSchema): JsonSchema {
  return { type: 'array', minItems: 1, maxItems: max, items };
}

/** Where items are judged one by one, an unknown member must not refuse the whole body before they are. */
function itemJson({ isPartial }: BulkBodyOptions, json: JsonSchema): JsonSchema {
  return isPartial
    ? { anyOf: [json, { type: 'object', additionalProperties: true, description: 'Its faults are reported with it.' }] }
    : json;
}
