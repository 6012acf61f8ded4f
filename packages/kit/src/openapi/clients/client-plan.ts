import type { CompiledRoute } from '../../http/exchange/compiled-route.ts';
import type { JsonSchema } from '../../http/declare/schema.ts';
import { openApiDocument, type OpenApiDocument } from '../document.ts';
import { errorsOfRoute } from '../errors-of-route.ts';
import { openApiPath } from '../operation.ts';
import { pascalCase } from '../schema-names.ts';
import { aliasOf, camelCase, groupNames } from './client-names.ts';
import { type ClientRow, rowOf, typedBody, wholeSchema } from './client-row.ts';

export interface ClientParameter {
  readonly name: string;
  readonly schema: JsonSchema;
  readonly isRequired: boolean;
  /** One parameter with commas; otherwise a list is a repeated parameter. */
  readonly isJoined: boolean;
  readonly description: string | undefined;
}

export interface ClientResult {
  readonly kind: 'json' | 'none' | 'raw' | 'stream';
  readonly schemas: readonly JsonSchema[];
  /** The types that the JSON of a success may have (`any`: every one), and `empty` where it may have no body. */
  readonly types: readonly string[];
  /** Whether the last event of the stream is `end`. */
  readonly ends: boolean;
}

export interface ClientOperation {
  /** `list` of `orders`. */
  readonly name: string;
  /** `OrderList`: the prefix of its types. */
  readonly typeName: string;
  readonly method: string;
  readonly path: string;
  readonly summary: string;
  readonly pathParameters: readonly ClientParameter[];
  readonly query: readonly ClientParameter[];
  readonly cookies: readonly ClientParameter[];
  readonly body:
    | { readonly kind: 'json' | 'form' | 'raw'; readonly mediaTypes: readonly string[]; readonly schema: JsonSchema | undefined }
    | undefined;
  readonly result: ClientResult;
  /** Codes by which its problems are told apart. */
  readonly problems: readonly { readonly code: string; readonly status: number; readonly members: Readonly<Record<string, JsonSchema>> }[];
  readonly isIdempotent: boolean;
  /** A read by POST, beside the operation with the QUERY method. */
  readonly isAlias: boolean;
  /** Where the result is a page with `next` or a number: the schema of one item, and the method that returns every item (`all` of `list`). */
  readonly item: JsonSchema | undefined;
  /** Pages are asked for by their number instead of `next`. */
  readonly isNumbered: boolean;
  readonly itemsName: string | undefined;
  readonly live: ClientLive | undefined;
  /** The row behind `fields` and `expand`, whether in a page or alone. */
  readonly row: ClientRow | undefined;
  /** What callers of a deprecated operation should know. */
  readonly deprecation: string | undefined;
  /** The member of each item of a page that is its version: `ifMatch` takes such items. */
  readonly version: string | undefined;
  /** The response version that the types describe, where there are several. */
  readonly apiVersion: string | undefined;
}

/** A list that is also a stream of its changes. */
export interface ClientLive {
  /** `live` beside `list`, `archiveLive` beside another one. */
  readonly name: string;
  readonly listName: string;
  readonly key: JsonSchema;
  readonly item: JsonSchema;
  /** The order without `ordering`. */
  readonly order: readonly string[];
  /** Members that are numbers in texts; `-` is the key. */
  readonly numeric: readonly string[];
}

export interface ClientGroup {
  /** `orders`. */
  readonly name: string;
  readonly operations: readonly ClientOperation[];
  /** Where the controller takes files: the operations before and after a file is sent. */
  readonly upload: { readonly create: ClientOperation; readonly complete: ClientOperation } | undefined;
}

/** An API as a client sees it, without the words of a language. */
export interface ClientPlan {
  readonly title: string;
  readonly version: string;
  readonly schemas: Readonly<Record<string, JsonSchema>>;
  readonly groups: readonly ClientGroup[];
  /** The header by which requests name their tenant; undefined where none does. */
  readonly tenantHeader: string | undefined;
}

export interface ClientPlanOptions {
  readonly title: string;
  readonly version: string;
  /** Only the operations below this version mount. */
  readonly mount?: string | undefined;
}

/** Names in a parameter list of an operation's data: by space, with `,` after those that are joined. */
export function queryNames(query: readonly ClientParameter[]): string {
  return query.map(({ name, isJoined }) => `${encodeURIComponent(name)}${isJoined ? ',' : ''}`).join(' ');
}

/** A file that declares a name twice would not compile. */
export function refuseTwice(names: readonly string[]): void {
  const twice = [...Map.groupBy(names, (each) => each)].filter(([, same]) => same.length > 1);
  if (twice.length > 0)
    throw new ClientRefused(
      twice.map(
        ([name]) =>
          `Two parts of the API are called ${name} in the client. Give one of the schemas another name, or the operation another operationId.`,
      ),
    );
}

/** What a client cannot express, as one sentence each. */
export class ClientRefused extends Error {
  constructor(sentences: readonly string[]) {
    super(sentences.join('\n'));
  }
}

// oxlint-disable-next-line typescript/no-explicit-any -- a document that this package made
type Json = any;

export function clientPlan(routes: readonly CompiledRoute[], options: ClientPlanOptions): ClientPlan {
  const document = openApiDocument(routes, { title: options.title, version: options.version, mount: options.mount, spec: '3.2' });
  const shown = routes.filter((route) => !route.hidden && (options.mount === undefined || route.mount === options.mount));
  const faults: string[] = [];
  const byController = Map.groupBy(shown.toSorted(byPath), (route) => route.controller);
  const names = groupNames([...byController.values()]);
  const groups = [...byController].map(([controller, own]): ClientGroup => {
    const operations = withItemsNames(
      own
        .filter((route) => aliasOf(route, own) === undefined)
        .map((route) =>
          operationOf(
            route,
            own.find((other) => aliasOf(other, own) === route),
            document,
            faults,
          ),
        ),
    );
    for (const [name, same] of Map.groupBy(operations, ({ name: each }) => each))
      if (same.length > 1)
        faults.push(
          `${controller}.${name} is mounted ${same.length} times (${same.map(({ path }) => path).join(', ')}). Generate one client per version with --mount.`,
        );
    return { name: names.get(controller)!, operations, upload: uploadOf(own, operations) };
  });
  for (const [name, same] of Map.groupBy(byController.keys(), (controller) => names.get(controller)!))
    if (same.length > 1) faults.push(`${same.join(' and ')} are both called ${name} in the client. Give them different tags.`);
  if (faults.length > 0) throw new ClientRefused(faults);
  return {
    title: options.title,
    version: options.version,
    schemas: document.components['schemas'] as Readonly<Record<string, JsonSchema>>,
    groups: groups.toSorted((a, b) => (a.name < b.name ? -1 : 1)),
    tenantHeader: shown.find(({ tenantHeader }) => tenantHeader !== undefined)?.tenantHeader,
  };
}

/** `all` of a list, `deliveriesAll` of another one in the same controller; an operation that has the name already keeps it. */
function withItemsNames(operations: readonly ClientOperation[]): ClientOperation[] {
  const taken = new Set(operations.map(({ name }) => name));
  const free = (...wanted: readonly string[]): string => {
    const name = wanted.find((each) => !taken.has(each)) ?? `${wanted.at(-1)}Of`;
    taken.add(name);
    return name;
  };
  return operations.map((operation): ClientOperation => {
    const { item, live, name } = operation;
    const plain = (short: string): readonly string[] => (name === 'list' ? [short] : []);
    return {
      ...operation,
      ...(item === undefined ? {} : { itemsName: free(...plain('all'), `${name}All`, `${name}Items`, `${name}AllItems`) }),
      ...(live === undefined
        ? {}
        : {
            live: {
              ...live,
              name: free(...plain('live'), `${name}Live`, `${name}LiveChanges`),
              listName: free(...plain('liveList'), `${name}LiveList`, `${name}LiveItems`),
            },
          }),
    };
  });
}

/** A controller of uploads, unless it has an operation of that name already. */
function uploadOf(routes: readonly CompiledRoute[], operations: readonly ClientOperation[]): ClientGroup['upload'] {
  const named = (name: string) => operations.find((each) => each.name === name);
  const [create, complete] = [named('create'), named('complete')];
  const takesFiles = routes.some(({ metadata, field }) => field === 'create' && metadata['uploads'] !== undefined);
  return takesFiles && create !== undefined && complete !== undefined && named('upload') === undefined ? { create, complete } : undefined;
}

const byPath = (a: CompiledRoute, b: CompiledRoute): number =>
  a.path === b.path ? (a.method < b.method ? -1 : 1) : a.path < b.path ? -1 : 1;

/** `original` is the operation with the QUERY method that the route is the alias of. */
function operationOf(
  route: CompiledRoute,
  original: CompiledRoute | undefined,
  document: OpenApiDocument,
  faults: string[],
): ClientOperation {
  const { field } = original ?? route;
  const path = openApiPath(route.path);
  const resolve = (value: Json): Json =>
    typeof value?.$ref === 'string'
      ? resolve(
          value.$ref
            .slice(2)
            .split('/')
            .reduce((at: Json, step: string) => at?.[step], document),
        )
      : value;
  const pathItem = document.paths[path] as Json;
  const operation = pathItem[route.method.toLowerCase()];
  const parametersOf = (each: Json): Json[] => [...(pathItem.parameters ?? []), ...(each?.parameters ?? [])].map(resolve);
  const parameters = parametersOf(operation);
  const placed = (place: string): ClientParameter[] =>
    parameters
      .filter((each) => each.in === place)
      .map(({ name, schema, required, description, style, explode }) => ({
        name,
        schema,
        isRequired: required === true,
        isJoined: style === 'form' && explode === false,
        description,
      }));
  const [pathParameters, query, cookies] = [placed('path'), placed('query'), placed('cookie')];
  const names = [...pathParameters, ...query, ...cookies].map(({ name }) => name);
  const where = `${route.method} ${path}`;
  if (camelCase(field) === '')
    faults.push(`${route.controller}.${field} has no letter or digit of ASCII, and a client method needs one. Rename the field.`);
  if (names.includes('wildcard'))
    faults.push(`${where} has a path of any length, which a client method cannot name. Mark the route as hidden.`);
  for (const [name, same] of Map.groupBy(names, (each) => each))
    if (same.length > 1)
      faults.push(`${where} has the parameter ${name} in two of its path, its query and its cookies. Rename one of them.`);
  const body = bodyOf(route, operation.requestBody);
  for (const name of ['body', 'contentType', 'content_type'])
    if (body !== undefined && names.includes(name))
      faults.push(`${where} has a body and a parameter ${name}, which are one argument. Rename the parameter.`);
  const required = placed('header').filter(({ name, isRequired }) => isRequired && !['If-Match', 'Idempotency-Key'].includes(name));
  if (required.length > 0)
    faults.push(
      `${where} requires the header ${required[0]!.name}. Make it optional, or a query parameter: clients send headers with each call's options.`,
    );
  const result = resultOf(route, operation, resolve);
  // A page that was asked for with a body has its cursor there.
  const isNumbered = query.some(({ name }) => name === 'page');
  const page = pageItem(result.schemas, isNumbered ? 'count' : 'next', resolve);
  const isRead = route.method === 'GET' || route.method === 'QUERY' || original !== undefined;
  // Without a parameter that could lead to the next page, the first one is all.
  const isPaged = query.some(({ name }) => !['fields', 'expand', 'limit', 'page_size'].includes(name));
  const item = isRead && isPaged ? page : undefined;
  const seen = new Set<string>();
  // The list beside a read with a body: its parameters name the relations.
  const listed = parametersOf((document.paths[path.replace(/\/query$/, '')] as Json)?.get);
  const row = rowOf(page ?? result.schemas[0], { isPage: page !== undefined, query, body: body?.schema, listed }, resolve);
  return {
    name: camelCase(field),
    typeName: pascalCase(route.operationId).replace(/^(?=\d)/, '_'),
    method: route.method,
    path,
    summary: operation.summary,
    pathParameters,
    query,
    cookies,
    body: body === undefined ? undefined : { ...body, schema: typedBody(body.schema, row, resolve) },
    result,
    problems: errorsOfRoute(route)
      .filter(({ code }) => !seen.has(code) && seen.add(code))
      .map(({ code, status, members = {} }) => ({ code, status, members })),
    isIdempotent: route.idempotency !== undefined,
    isAlias: original !== undefined,
    item,
    isNumbered,
    itemsName: undefined,
    live: liveOf(operation, route, resolve),
    row,
    deprecation: deprecationOf(operation),
    version: page === undefined ? undefined : versionOf(route, wholeSchema(page, resolve)),
    apiVersion: route.responseFacts.versions?.supported[0],
  };
}

function deprecationOf({ deprecated, 'x-sunset': sunset }: Json): string | undefined {
  if (deprecated !== true) return undefined;
  return typeof sunset === 'string' ? `Works until ${sunset.slice(0, 10)}.` : 'May be removed.';
}

/** Only where callers get it: a rule may hide the column, and a response version may rename it. */
function versionOf({ metadata }: CompiledRoute, item: Json): string | undefined {
  const { version } = (metadata['crud'] ?? {}) as { readonly version?: string };
  return version !== undefined && item?.properties?.[version] !== undefined ? version : undefined;
}

function bodyOf(route: CompiledRoute, requestBody: Json): ClientOperation['body'] {
  if (requestBody === undefined) return undefined;
  const mediaTypes = Object.keys(requestBody.content);
  const [first = 'application/json'] = mediaTypes;
  const schema = requestBody.content[first]?.schema as JsonSchema | undefined;
  if (route.rawBody === undefined) return { kind: 'json', mediaTypes, schema };
  return first.startsWith('multipart/') ? { kind: 'form', mediaTypes, schema } : { kind: 'raw', mediaTypes, schema };
}

function resultOf(route: CompiledRoute, operation: Json, resolve: (value: Json) => Json): ClientResult {
  const fixed = { types: [], ends: route.ends };
  if (route.kind === 'stream') {
    const { contentSchema } = resolve(operation.responses[route.status]).content['text/event-stream'].itemSchema.properties.data;
    return { ...fixed, kind: 'stream', schemas: contentSchema === undefined ? [] : [contentSchema] };
  }
  if (route.kind === 'raw') return { ...fixed, kind: 'raw', schemas: [] };
  const successes = Object.entries<Json>(operation.responses)
    .filter(([status]) => status.startsWith('2'))
    .map(([, response]) => resolve(response).content);
  const schemas = unique(successes.flatMap((content) => content?.['application/json']?.schema ?? []));
  if (schemas.length === 0) return { ...fixed, kind: 'none', schemas };
  const empty = successes.some((content) => content === undefined) ? ['empty'] : [];
  return { ...fixed, kind: 'json', schemas, types: [...new Set([...schemas.flatMap((schema) => jsonTypes(schema, resolve)), ...empty])] };
}

/** Of a GET: its parameters are in the query string. */
function liveOf(operation: Json, { method, status, live }: CompiledRoute, resolve: (value: Json) => Json): ClientLive | undefined {
  if (live === undefined || method !== 'GET') return undefined;
  const { contentSchema } = resolve(operation.responses[status]).content['text/event-stream'].itemSchema.properties.data;
  const { properties, 'x-ordering': order = [] } = resolve(contentSchema);
  const isNumeric = (schema: Json) => ['decimal', 'int64'].includes(resolve(schema)?.format as string);
  const members = Object.entries<Json>(wholeSchema(properties.item, resolve)?.properties ?? {});
  const numeric = [...members.filter(([, schema]) => isNumeric(schema)).map(([name]) => name), ...(isNumeric(properties.key) ? ['-'] : [])];
  return { name: '', listName: '', key: properties.key, item: properties.item, order, numeric };
}

/** What a live list does not take: it has no pages, and changes of other records are not followed. */
const NOT_LIVE: ReadonlySet<string> = new Set(['cursor', 'expand', 'limit', 'offset', 'page', 'page_size']);

/** The operation as its live list is called. */
export function liveOperation(operation: ClientOperation): ClientOperation {
  const query = operation.query.filter(({ name }) => !NOT_LIVE.has(name));
  return { ...operation, typeName: `${operation.typeName}Live`, query, item: undefined, live: undefined };
}

/** The types that values of a schema have, in the words of JavaScript; `any` where the schema does not say. */
function jsonTypes(schema: Json, resolve: (value: Json) => Json, depth = 0): readonly string[] {
  const { type, const: constant, enum: values, anyOf, oneOf, allOf, properties } = resolve(schema);
  const of = (value: unknown) => (value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value);
  if (depth > 20) return ['any'];
  if (type !== undefined) return [type].flat().map((each) => (each === 'integer' ? 'number' : (each as string)));
  if (constant !== undefined) return [of(constant)];
  if (Array.isArray(values)) return values.map(of);
  const alternatives = anyOf ?? oneOf;
  if (Array.isArray(alternatives)) return alternatives.flatMap((each: Json) => jsonTypes(each, resolve, depth + 1));
  if (properties !== undefined) return ['object'];
  const told = ((allOf ?? []) as Json[]).map((each) => jsonTypes(each, resolve, depth + 1)).find((types) => !types.includes('any'));
  return told ?? ['any'];
}

const unique = (schemas: readonly JsonSchema[]): JsonSchema[] => [...new Map(schemas.map((each) => [JSON.stringify(each), each])).values()];

function pageItem(
  [schema, ...others]: readonly JsonSchema[],
  told: 'next' | 'count',
  resolve: (value: Json) => Json,
): JsonSchema | undefined {
  const { properties } = schema === undefined || others.length > 0 ? ({} as Json) : wholeSchema(schema, resolve);
  return properties?.[told] !== undefined && properties?.items?.items !== undefined ? (properties.items.items as JsonSchema) : undefined;
}
