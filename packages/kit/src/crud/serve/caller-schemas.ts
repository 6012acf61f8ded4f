import { namedActions, selectionBody, selectionResponse } from '../mount/named-actions.ts';
import { selectionField } from '../declare/action-rule.ts';
import type { Exchange } from '../../http/exchange/exchange.ts';
import type { CallerSchemas } from '../../http/declare/route.ts';
import { jsonSchemaOf, type JsonSchema, type Schema } from '../../http/declare/schema.ts';
import { bulkOptions } from '../options/bulk-options.ts';
import { withOnceSchema } from '../mount/once-schema.ts';
import type { View } from '../policy/view.ts';
import type { FilterParameters } from '../parameters/filter-parameters.ts';
import { type ListDeclaration, ListQueryReader } from '../read/list-query.ts';
import { queryBody } from '../read/query-body.ts';
import { statsParameters, statsSchema } from '../read/stats.ts';
import { bodySchemas, itemSchema, listQuery, pageQuery, pageSchema, shapeQuery, statsQuery } from '../mount/schemas.ts';
import type { NestedBody } from '../write/nested-body.ts';
import { bulkCreateBody, type BulkBodyOptions, bulkDestroyBody, bulkUpdateBody } from '../input/bulk-body.ts';
import { bulkItemsSchema, bulkResultsSchema } from '../mount/bulk-schemas.ts';
import { HttpCrudRequest } from '../mount/http-crud-request.ts';
import { nestedBody, writableColumns } from './meta.ts';
import { verdictOn } from './verdict-on.ts';
import type { ResourceAccess } from './resource-access.ts';

type Made = ReturnType<CallerSchemas['make']>;

/** What of a resource one caller knows. */
interface CallerView {
  readonly access: ResourceAccess;
  readonly view: View;
  readonly list: ListDeclaration;
  readonly input: readonly string[];
  readonly nested: NestedBody | undefined;
}

/** The schemas of an operation with the names of the caller's view only: the same code makes those of the document, from the widest view. */
export async function callerSchemas(access: ResourceAccess, operation: string, exchange: Exchange): Promise<CallerSchemas> {
  const request = new HttpCrudRequest(exchange, await exchange.tenant, operation, access);
  const view = await access.view(request);
  const input = await writableColumns(access.policy, access.input, request);
  const nested = await nestedBody(access, request);
  const hasDeleted = access.list.hasDeleted && (await mayRestore(access, exchange));
  const list = narrowed({ ...access.list, hasDeleted }, new ListQueryReader(access.list, request, view), view);
  const key = JSON.stringify([view.mask, input, nested === undefined ? null : jsonOf(nested), hasDeleted]);
  return { key, make: () => made(operation, { access, view, list, input, nested }) };
}

function jsonOf(nested: NestedBody): JsonSchema {
  return nested.json({ type: 'object', properties: {} });
}

/** Who may restore rows may ask for deleted ones. */
async function mayRestore({ appRoutes }: ResourceAccess, exchange: Exchange): Promise<boolean> {
  const own = exchange.route;
  const restore = appRoutes.find(
    ({ field, controller, mount }) => field === 'restore' && controller === own?.controller && mount === own.mount,
  );
  return restore !== undefined && (await verdictOn(restore, exchange)) === true;
}

/** The list with what the caller may filter, order and expand by. */
function narrowed(list: ListDeclaration, reader: ListQueryReader, view: View): ListDeclaration {
  const { filters, ordering } = list;
  const usable = {
    parameters: new Map(filters.usable(view).map((each) => [each.name, each])),
    columns: new Map([...filters.columns].filter(([, column]) => filters.isVisible(column, view))),
    custom: filters.custom,
  };
  return {
    ...list,
    filters: usable as unknown as FilterParameters,
    ordering: ordering === undefined ? undefined : { ...ordering, by: reader.orderable() },
    expand: new Set(reader.expandable()),
  };
}

const SHAPED: ReadonlySet<string> = new Set(['retrieve', 'create', 'update', 'partialUpdate', 'restore', 'bulkCreate', 'bulkUpdate']);

function made(operation: string, caller: CallerView): Made {
  const { access, view, list } = caller;
  const { policy, output, limits, options } = access;
  const item = itemSchema(policy, output, list.expand, view);
  const page = json(pageSchema(list, item), 'output');
  if (operation === 'list') return { query: json(listQuery(list)), response: page };
  if (operation === 'query') return { query: json(pageQuery(list)), body: json(queryBody(list)), response: page };
  if (operation === 'stats' && options.stats !== undefined)
    return {
      query: json(statsQuery(list, statsParameters(policy, options.stats, limits, view))),
      response: json(statsSchema(policy, options.stats, limits, view), 'output'),
    };
  const named = namedActions(access);
  const selected = named.find(({ name, rule }) => rule.on === 'selection' && selectionField(name) === operation);
  if (selected !== undefined)
    return {
      ...(selected.rule.response === undefined ? { query: json(shapeQuery(list)) } : {}),
      body: json(selectionBody(access, selected)),
      response: json(selectionResponse(selected, item), 'output'),
    };
  const body = bodyOf(operation, caller);
  const isShaped = SHAPED.has(operation) || named.some(({ name, rule }) => name === operation && rule.response === undefined);
  return {
    ...(isShaped ? { query: json(shapeQuery(list)) } : {}),
    ...(body === undefined ? {} : { body: json(body) }),
    ...(isShaped ? { response: json(responseOf(operation, caller, item), 'output') } : {}),
  };
}

function bodyOf(operation: string, { access, input, nested }: CallerView): Schema | undefined {
  const { policy, lookup, address } = access;
  const bodies = () => bodySchemas(policy, input, nested, address);
  if (operation === 'create') return bodies().create;
  if (operation === 'update') return bodies().update;
  if (operation === 'partialUpdate') return bodies().patch;
  if (!operation.startsWith('bulk')) return undefined;
  const { max, mode } = bulkOptions(access.options.bulk ?? {});
  const requiresVersion = access.resource.options.version !== undefined && access.options.etag === 'required';
  const options: BulkBodyOptions = { policy, input, lookup, address, max, isPartial: mode === 'partial', requiresVersion };
  if (operation === 'bulkCreate') return bulkCreateBody(options);
  return operation === 'bulkUpdate' ? bulkUpdateBody(options) : bulkDestroyBody(options);
}

function responseOf(operation: string, { access }: CallerView, item: Schema): Schema {
  if (!operation.startsWith('bulk')) return withOnceSchema(access.policy, operation, item);
  return bulkOptions(access.options.bulk ?? {}).mode === 'partial'
    ? bulkResultsSchema(access.policy, item)
    : bulkItemsSchema(access.policy, item);
}

/** The marks of a rule name permissions: they are for the document. */
function json(schema: Schema, direction: 'input' | 'output' = 'input'): JsonSchema {
  return jsonSchemaOf(schema, direction);
}
