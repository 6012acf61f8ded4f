import { withRootDefinitions } from '../../db/values/root-definitions.ts';
import { jsonSchema } from '../../http/declare/json-schema.ts';
import { jsonSchemaOf, type JsonSchema, type Schema } from '../../http/declare/schema.ts';
import { exchangeOf } from '../../http/serve/serve-route.ts';
import type { CompiledRoute } from '../../http/exchange/compiled-route.ts';
import type { ColumnSettings } from '../../db/declare/column.ts';
import type { CrudRequest } from '../policy/crud-request.ts';
import { filterJsonSchema } from '../parameters/filter-parameters.ts';
import type { ControllerLimits } from '../declare/limits.ts';
import type { Context } from '../read/list-access.ts';
import { ListQueryReader } from '../read/list-query.ts';
import { pascal } from '../../db/declare/component-name.ts';
import { NestedBody } from '../write/nested-body.ts';
import type { NestedPlan } from '../write/nested.ts';
import { defaultOrdering } from '../read/ordering.ts';
import { widestView } from '../policy/make-view.ts';
import type { Policy } from '../policy/policy.ts';
import type { View } from '../policy/view.ts';
import { withoutMarks } from '../policy/rule-marks.ts';
import { bodySchemas, rowJsonSchema } from '../mount/schemas.ts';
import type { Item } from '../declare/item.ts';
import { verdictOn } from './verdict-on.ts';
import type { ResourceAccess } from './resource-access.ts';
import { unwritableColumns } from '../policy/unwritable-columns.ts';

/** `GET /meta`: what this caller may see, send and do. Made of the declaration alone, without a statement. */
export async function describeResource(access: ResourceAccess, routes: readonly CompiledRoute[], context: Context): Promise<Item> {
  const { policy, list } = access;
  const request = await access.request(context, 'meta');
  const view = await access.view(request);
  const reader = new ListQueryReader(list, request, view);
  const offered = await offeredRoutes(routes, context);
  const writable = await writableColumns(policy, access.input, request);
  const { create, patch } = bodySchemas(policy, writable, await nestedBody(access, request));
  const orderable = reader.orderable();
  const usual = defaultOrdering(policy, list.ordering).map(({ column, descending }) => `${descending ? '-' : ''}${column}`);
  return {
    name: policy.name,
    key: access.lookup.name,
    input: offered.has('create') || offered.has('update') ? plainSchema(create, `${pascal(policy.name)}Input`) : null,
    patch: offered.has('partialUpdate') ? plainSchema(patch, `${pascal(policy.name)}Patch`) : null,
    output: outputSchema(access, view),
    filters: Object.fromEntries(
      list.filters.usable(view).map((each) => [each.name, withoutMarks(filterJsonSchema(each, list.limits.listValues))]),
    ),
    ordering: { by: orderable, default: usual },
    search: list.search === undefined ? null : { columns: list.search.columns },
    fields: list.isSparse ? [...view.fields.keys()] : null,
    expand: reader.expandable(),
    transitions: Object.entries(access.transitionRules)
      .filter(([name]) => offered.has(name))
      .map(([name, { from, to, input }]) => ({ name, from, to, input: input === undefined ? undefined : jsonSchemaOf(input, 'input') })),
    ...actionsOf(access, offered),
    operations: [...offered],
    limits: {
      page: list.page.default,
      page_max: list.page.max,
      ...snakeLimits(list.limits),
    },
    ui: {
      columns: Object.fromEntries(
        widestView(policy)
          .shownColumns()
          .filter(({ name }) => view.fields.has(name) || writable.includes(name))
          .map(({ name, settings }) => [name, { label: labelOf(name), control: controlOf(settings) }]),
      ),
    },
  };
}

/** The actions that the caller may call; no member where the resource has none. */
function actionsOf({ actionRules }: ResourceAccess, offered: ReadonlySet<string>): { readonly actions?: readonly Item[] } {
  const rules = Object.entries(actionRules);
  if (rules.length === 0) return {};
  return {
    actions: rules
      .filter(([name]) => offered.has(name))
      .map(([name, { on = 'record', input }]) => ({ name, on, input: input === undefined ? undefined : jsonSchemaOf(input, 'input') })),
  };
}

/** As the other members of the answer are written: `list_values`. */
function snakeLimits(limits: ControllerLimits): Record<string, number> {
  const snake = (name: string) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  return Object.fromEntries(Object.entries(limits).map(([name, value]) => [snake(name), value]));
}

/** Operations whose permission does not refuse the caller. One that needs the row counts as offered. */
async function offeredRoutes(routes: readonly CompiledRoute[], context: Context): Promise<ReadonlySet<string>> {
  const offered = new Set<string>();
  for (const route of routes) {
    const { operation } = route.metadata['crud'] as { readonly operation: string };
    if ((await verdictOn(route, exchangeOf(context.request))) !== false) offered.add(operation);
  }
  return offered;
}

/** The children that a body takes, with the columns of theirs that this caller may send. */
export async function nestedBody({ nested }: ResourceAccess, request: CrudRequest): Promise<NestedBody | undefined> {
  if (nested.length === 0) return undefined;
  const plans: NestedPlan[] = [];
  for (const plan of nested) plans.push({ ...plan, input: await writableColumns(plan.edge.target, plan.input, request) });
  return new NestedBody(plans);
}

export async function writableColumns(policy: Policy, input: readonly string[], { context }: CrudRequest): Promise<string[]> {
  const closed = await unwritableColumns(policy, context, input);
  return input.filter((name) => closed.get(name)?.verdict !== false);
}

function plainSchema(schema: Schema, name: string): JsonSchema {
  const { $defs } = jsonSchemaOf(schema, 'input') as { readonly $defs: Readonly<Record<string, JsonSchema>> };
  return withoutMarks($defs[name] as JsonSchema);
}

function outputSchema({ policy, output }: ResourceAccess, view: View): JsonSchema {
  const { 'x-always': _, ...whole } = withRootDefinitions(rowJsonSchema(policy, output));
  const properties = Object.entries(whole['properties'] as Readonly<Record<string, JsonSchema>>);
  return withoutMarks({
    ...whole,
    properties: Object.fromEntries(properties.filter(([name]) => view.fields.has(name))),
  });
}

/** `customer_id` → `Customer`, `created_at` → `Created at`. */
function labelOf(name: string): string {
  const words = name.replace(/_id$/, '').replaceAll('_', ' ');
  return words.charAt(0).toUpperCase() + words.slice(1);
}

const SHORT_TEXT_MAX = 200;

const CONTROLS: Readonly<Partial<Record<ColumnSettings['kind'], string>>> = {
  enum: 'select',
  int: 'number',
  float: 'number',
  bool: 'checkbox',
  timestamp: 'datetime',
  date: 'date',
  json: 'json',
  array: 'json',
  bytes: 'file',
};

function controlOf({ kind, reference, max }: ColumnSettings): string {
  if (reference !== undefined) return 'reference';
  return CONTROLS[kind] ?? (kind === 'text' && (max === undefined || max > SHORT_TEXT_MAX) ? 'textarea' : 'text');
}

const anything = {};
const schemaOrNull = { anyOf: [{ type: 'object', additionalProperties: true }, { type: 'null' }] };
const names = { type: 'array', items: { type: 'string' } };

export const MetaSchema: Schema<Item> = jsonSchema<Item>({
  type: 'object',
  properties: {
    name: { type: 'string' },
    key: { type: 'string', description: 'The column in the URL of a record.' },
    input: { ...schemaOrNull, description: 'JSON Schema for creating a record; null if the caller cannot create one.' },
    patch: { ...schemaOrNull, description: 'JSON Schema for updating a record; null if the caller cannot update one.' },
    output: { type: 'object', additionalProperties: true, description: 'JSON Schema of a record as the caller sees it.' },
    filters: { type: 'object', additionalProperties: anything, description: 'Query parameters that filter, each with its JSON Schema.' },
    ordering: { type: 'object', properties: { by: names, default: names }, required: ['by', 'default'] },
    search: { anyOf: [{ type: 'object', properties: { columns: names }, required: ['columns'] }, { type: 'null' }] },
    fields: { anyOf: [names, { type: 'null' }] },
    expand: names,
    transitions: {
      type: 'array',
      items: {
        type: 'object',
        properties: { name: { type: 'string' }, from: { type: 'array', items: anything }, to: anything, input: anything },
        required: ['name', 'from', 'to'],
      },
    },
    actions: {
      type: 'array',
      items: {
        type: 'object',
        properties: { name: { type: 'string' }, on: { type: 'string', enum: ['record', 'selection'] }, input: anything },
        required: ['name', 'on'],
      },
      description: 'Actions that the caller may call; absent if the resource has none.',
    },
    operations: { ...names, description: 'Operations the caller may call. An object permission can still deny single records.' },
    limits: { type: 'object', additionalProperties: { type: 'integer' } },
    ui: { type: 'object', additionalProperties: true, description: 'Labels and controls for forms.' },
  },
  required: [
    'name',
    'key',
    'input',
    'patch',
    'output',
    'filters',
    'ordering',
    'search',
    'fields',
    'expand',
    'transitions',
    'operations',
    'limits',
    'ui',
  ],
});
