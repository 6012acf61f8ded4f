import { CURSOR_LENGTH_MAX } from '../../db/sql/keyset/cursor.ts';
import type { ColumnSettings } from '../../db/declare/column.ts';
import { columnJsonSchema, orNull } from '../../db/declare/column-json.ts';
import { pascal } from '../../db/declare/component-name.ts';
import { inputSchema, patchSchema } from '../../db/declare/model-schema.ts';
import type { Columns } from '../../db/declare/rows.ts';
import type { ErrorDefinition } from '../../errors/catalog.ts';
import { type Address, keyAddress, withAddress } from '../input/with-address.ts';
import {
  jsonSchemaOf,
  type JsonSchema,
  partSchemaOf,
  type RawQuerySchema,
  type Schema,
  type SchemaResult,
} from '../../http/declare/schema.ts';
import { type FilterParameters, filterJsonSchema } from '../parameters/filter-parameters.ts';
import { type ListDeclaration, MEMBERS_MAX } from '../read/list-query.ts';
import { PAGE_NUMBER_MAX, sizeName, sizeSchema } from '../read/page-parameters.ts';
import type { NestedBody } from '../write/nested-body.ts';
import { readKey } from '../parameters/parameter-value.ts';
import { widestView } from '../policy/make-view.ts';
import { type Edge, isKey, type Policy, withoutKey } from '../policy/policy.ts';
import { markVisible, markWritable, visibleToNames } from '../policy/rule-marks.ts';
import type { View, ViewField } from '../policy/view.ts';

/** A schema whose JSON Schema is one named component of the document. */
function named<O>(
  name: string,
  json: () => JsonSchema,
  validate: (value: unknown) => SchemaResult<O> | Promise<SchemaResult<O>>,
): Schema<O> {
  const component = () => ({ $ref: `#/$defs/${name}`, $defs: { [name]: json() } });
  return { '~standard': { version: 1, vendor: 'kit', validate, jsonSchema: { input: component, output: component } } };
}

/** The same component, and members that are optional in it and required here. */
function requiring(required: readonly string[], schema: Schema): Schema {
  if (required.length === 0) return schema;
  const json = () => {
    const { $defs, ...component } = jsonSchemaOf(schema, 'input') as { readonly $defs?: JsonSchema };
    return { allOf: [component, { type: 'object', required }], $defs };
  };
  return { '~standard': { ...schema['~standard'], jsonSchema: { input: json, output: json } } };
}

const pass = (value: unknown) => ({ value });

/** The columns a caller may get, and computed fields. What some callers may not see is not required. `view`: of one caller. */
export function rowJsonSchema(
  policy: Policy,
  output: ReadonlySet<string> | undefined,
  view: View = widestView(policy, output),
): JsonSchema {
  const fields = [...view.fields.values()];
  return {
    type: 'object',
    properties: Object.fromEntries(fields.map((field) => [field.name, fieldSchema(field)])),
    required: [policy.key.name],
    // `fields` leaves members out, so a response is not checked for them; the document requires what every caller gets otherwise.
    'x-always': fields.filter(isAlwaysThere).map(({ name }) => name),
  };
}

/** True when every caller who sees the row gets the member. */
function isAlwaysThere(field: ViewField): boolean {
  return visibleToNames(field) === undefined || (field.kind === 'column' && field.rule?.hidden === 'null');
}

function fieldSchema(field: ViewField): JsonSchema {
  if (field.kind === 'computed') return markVisible(partSchemaOf(field.response, 'output'), field);
  const { settings, rule } = field;
  // A guarded column that the resource opens is read-only in its model only.
  const isOpened = settings.guarded === true && rule?.writableBy !== undefined && rule.writableBy !== rule.visibleTo;
  const schema = markVisible(columnJsonSchema(isOpened ? { ...settings, readOnly: false } : settings, 'output'), field);
  return rule?.hidden === 'null' && !settings.nullable ? orNull(schema) : schema;
}

/** The row of an answer, with the relations that may be expanded below it. `view`: of one caller. */
export function itemSchema(
  policy: Policy,
  output: ReadonlySet<string> | undefined,
  expand: ReadonlySet<string>,
  view: View = widestView(policy, output),
): Schema<Record<string, unknown>> {
  const defs: Record<string, JsonSchema> = {};
  const json = withRelations(view, output, expandTree(expand), defs, 'root');
  const whole = () => ({ ...json, $defs: defs });
  return { '~standard': { version: 1, vendor: 'kit', validate: pass, jsonSchema: { input: whole, output: whole } } } as Schema<
    Record<string, unknown>
  >;
}

interface Tree {
  readonly [name: string]: Tree;
}

function expandTree(paths: ReadonlySet<string>): Tree {
  const root: Record<string, Tree> = {};
  for (const path of paths) {
    let at = root;
    for (const step of path.split('.')) at = at[step] ??= {};
  }
  return root;
}

function withRelations(
  view: View,
  output: ReadonlySet<string> | undefined,
  expand: Tree,
  defs: Record<string, JsonSchema>,
  place: 'root' | 'expansion',
): JsonSchema {
  const { policy } = view;
  const name = place === 'root' ? pascal(policy.name) : `${pascal(policy.name)}Fields`;
  const { required, ...row } = rowJsonSchema(policy, output, view);
  // `fields=customer.name` leaves the key of an expanded row out; a row of its own always has it.
  defs[name] ??= place === 'root' ? { ...row, required } : row;
  const properties: Record<string, JsonSchema> = {};
  for (const [relation, below] of Object.entries(expand)) {
    const followed = view.edge(relation);
    if (followed === undefined) continue;
    const { edge } = followed;
    const target = withRelations(followed.view, undefined, below, defs, 'expansion');
    if (edge.kind === 'one') properties[relation] = { anyOf: [target, { type: 'null' }] };
    else {
      properties[relation] = { type: 'array', items: target, maxItems: edge.limit };
      properties[`${relation}_more`] = { type: 'boolean', const: true, description: `There are more ${relation} than are shown.` };
    }
  }
  const reference = { $ref: `#/$defs/${name}` };
  if (Object.keys(properties).length === 0) return reference;
  if (place === 'expansion') return { allOf: [reference, { type: 'object', properties }] };
  defs[name] = { ...defs[name], properties: { ...(row['properties'] as object), ...properties } };
  return reference;
}

const reference = { anyOf: [{ type: 'string' }, { type: 'null' }] };
const LINKS = {
  next: { ...reference, description: 'The query string of the next page.' },
  previous: { ...reference, description: 'The query string of the previous page.' },
};
const COUNT = {
  anyOf: [{ type: 'integer', minimum: 0 }, { type: 'null' }],
  description: 'Total number of records; null above the count limit.',
};
const EXACT_COUNT = { type: 'integer', minimum: 0, description: 'Total number of records.' };

/** The envelope around an item's schema. */
export function pageSchema({ policy, page: { style } }: ListDeclaration, item: Schema): Schema {
  const name = `${pascal(policy.name)}Page`;
  const more = style === 'page' ? { count: EXACT_COUNT } : { count: COUNT, ...LINKS };
  const json = () => {
    const properties = { items: { type: 'array', items: partSchemaOf(item, 'output') }, ...more };
    return { $ref: `#/$defs/${name}`, $defs: { [name]: { type: 'object', properties, required: Object.keys(properties) } } };
  };
  return { '~standard': { version: 1, vendor: 'kit', validate: pass, jsonSchema: { input: json, output: json } } };
}

/** Bodies of create, replace and change, for a set of columns. */
export function bodySchemas(
  policy: Policy,
  input: readonly string[],
  nested?: NestedBody,
  address: Address = keyAddress(policy),
): { readonly create: Schema; readonly update: Schema; readonly patch: Schema } {
  const { bodies } = policy.options;
  if (bodies !== undefined) return { create: bodies.create, update: bodies.update, patch: bodies.update };
  const columns = policy.inputColumns(input);
  const create = inputSchema<Record<string, unknown>>(columns) as unknown as Schema;
  // A PUT leaves what its caller may not see or write as it is: nobody needs to send it. Who may is told by the handler.
  // The address says which row it is.
  const keys = new Set(input.filter((column) => isKey(policy, column)));
  const view = widestView(policy);
  const ruled = new Set(
    input.filter((column) => keys.has(column) || policy.ruleOf(column) !== undefined || view.knows(column) === undefined),
  );
  const replace = ruled.size === 0 ? create : (inputSchema<Record<string, unknown>>(columns, undefined, ruled) as unknown as Schema);
  const patch = patchSchema<Record<string, unknown>>(withoutKey(policy, columns)) as unknown as Schema;
  const name = pascal(policy.name);
  const marked = (schema: Schema) => () => {
    const json = markWritable(policy, jsonSchemaOf(schema, 'input'));
    return nested === undefined ? json : nested.json(json);
  };
  const validate = (schema: Schema) => {
    const own = withAddress(schema, policy, address);
    return nested === undefined ? own['~standard'].validate : (value: unknown) => nested.validate(own, value);
  };
  const createNamed = named(`${name}Input`, marked(create), validate(create));
  const updateNamed =
    keys.size > 0
      ? named(`${name}Replacement`, marked(replacement(columns, keys)), validate(replace))
      : replace === create
        ? createNamed
        : named(`${name}Input`, marked(create), validate(replace));
  return {
    create: createNamed,
    update: requiring(nested?.requiredByPut ?? [], updateNamed),
    patch: named(`${name}Patch`, marked(patch), validate(patch)),
  };
}

/** The body of a PUT as the document has it: like that of create, without the need for a key. */
function replacement(columns: Columns, keys: ReadonlySet<string>): Schema {
  return inputSchema(columns, undefined, keys);
}

/** A key in the address, and the 404 where there is no row with it. */
export interface KeyParameter {
  readonly settings: ColumnSettings;
  readonly missing: ErrorDefinition;
}

/** The row's key in the address. A malformed one is exactly as missing as an unknown one. */
export function keyParams(keys: Readonly<Record<string, KeyParameter>>): Schema<Record<string, string>> {
  const json = () => ({
    type: 'object',
    properties: Object.fromEntries(
      Object.entries(keys).map(([name, { settings }]) => [
        name,
        {
          ...columnJsonSchema({ ...settings, nullable: false, readOnly: false }, 'input'),
          pattern: undefined,
          default: undefined,
          description: name === 'id' ? 'ID of the record.' : 'ID of the parent.',
        },
      ]),
    ),
    required: Object.keys(keys),
    additionalProperties: false,
  });
  const names = Object.entries(keys);
  const validate = (value: unknown) => {
    for (const [name, { settings, missing }] of names) {
      const text = (value as Record<string, string>)[name] as string;
      if (readKey(settings, text).fault !== undefined) throw missing();
    }
    return { value: value as Record<string, string> };
  };
  return { '~standard': { version: 1, vendor: 'kit', validate, jsonSchema: { input: json, output: json } } };
}

function rawQuery(properties: Readonly<Record<string, JsonSchema>>): RawQuerySchema {
  const json = () => ({ type: 'object', properties, additionalProperties: false });
  return {
    isRawQuery: true,
    '~standard': { version: 1, vendor: 'kit', validate: pass, jsonSchema: { input: json, output: json } },
  } as unknown as RawQuerySchema;
}

const commaList = (items: JsonSchema, maxItems: number, description: string): JsonSchema => ({
  type: 'array',
  items,
  minItems: 1,
  maxItems,
  'x-style': 'comma',
  description,
});

function shapeProperties({ isSparse, expand, limits }: ListDeclaration): Record<string, JsonSchema> {
  return {
    ...(isSparse
      ? { fields: commaList({ type: 'string' }, MEMBERS_MAX, 'Fields to return, such as `id`; with dots those of expanded relations.') }
      : {}),
    ...(expand.size > 0 ? { expand: commaList({ type: 'string', enum: [...expand] }, limits.expandPaths, 'Relations to include.') } : {}),
  };
}

/** Parameters of an answer with one row. */
export function shapeQuery(list: ListDeclaration): RawQuerySchema {
  return rawQuery(shapeProperties(list));
}

function pageProperties({ page, limits }: ListDeclaration): Record<string, JsonSchema> {
  const size = { [sizeName(page)]: sizeSchema(page) };
  if (page.style === 'page')
    return { page: { type: 'integer', minimum: 1, maximum: PAGE_NUMBER_MAX, default: 1, description: 'The number of the page.' }, ...size };
  return page.style === 'offset'
    ? { ...size, offset: { type: 'integer', minimum: 0, maximum: limits.offset, default: 0, description: 'Rows to skip.' } }
    : { ...size, cursor: { type: 'string', maxLength: CURSOR_LENGTH_MAX, description: 'From `next` or `previous` of a page.' } };
}

/** Every parameter of a list, typed. */
export function listQuery(list: ListDeclaration): RawQuerySchema {
  const deleted = { type: 'string', enum: ['only'], description: 'The deleted rows, for callers who may restore them.' };
  return rawQuery({
    ...rowProperties(list),
    ...pageProperties(list),
    ...shapeProperties(list),
    ...(list.hasDeleted ? { deleted } : {}),
  });
}

/** Every parameter of an export: those of the list without its pages, and the format. */
export function exportQuery(list: ListDeclaration, formats: readonly string[]): RawQuerySchema {
  const toOne = new Set([...list.expand].filter((path) => leadsToOne(list.policy, path)));
  return rawQuery({
    format: { type: 'string', enum: [...formats], default: formats[0], description: 'The form of the file.' },
    ...rowProperties(list),
    ...shapeProperties({ ...list, expand: toOne }),
  });
}

/** Parameters that are no filters. */
export function plainQuery(own: Readonly<Record<string, JsonSchema>>): RawQuerySchema {
  return rawQuery(own);
}

/** Every parameter of stats: filters, search and what `own` adds. */
export function statsQuery(list: ListDeclaration, own: Readonly<Record<string, JsonSchema>>): RawQuerySchema {
  return rawQuery({ ...own, ...rowProperties({ ...list, ordering: undefined }) });
}

/** Whether a path of relations ends at one row at most. */
export function leadsToOne(policy: Policy, path: string): boolean {
  let at: Policy | undefined = policy;
  return path.split('.').every((step) => {
    const edge: Edge | undefined = at?.edge(step);
    at = edge?.target;
    return edge?.kind === 'one';
  });
}

/** Which rows, and in which order. */
function rowProperties({ filters, search, ordering, limits }: ListDeclaration): Record<string, JsonSchema> {
  return {
    ...filterProperties(filters, limits.listValues),
    ...(search !== undefined
      ? {
          search: {
            type: 'string',
            maxLength: limits.searchLength,
            description: search.description ?? `Finds rows by ${search.columns.join(', ')}.`,
          },
        }
      : {}),
    ...(ordering === undefined || ordering.by.length === 0
      ? {}
      : {
          ordering: commaList(
            { type: 'string', enum: ordering.by.flatMap((name) => [name, `-${name}`]) },
            limits.orderingColumns,
            'Columns to order by; a leading minus means descending.',
          ),
        }),
  };
}

function filterProperties(filters: FilterParameters, valuesMax: number): Record<string, JsonSchema> {
  return Object.fromEntries([...filters.parameters].map(([name, parameter]) => [name, filterJsonSchema(parameter, valuesMax)]));
}

/** What QUERY takes in the query string: paging only. */
export function pageQuery(list: ListDeclaration): RawQuerySchema {
  return rawQuery(pageProperties(list));
}
