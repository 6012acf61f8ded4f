import type { CompiledRoute } from '../http/exchange/compiled-route.ts';
import type { JsonSchema } from '../http/declare/schema.ts';
import { fixedRate } from '../throttle/fixed-rate.ts';
import type { ThrottleRates } from '../throttle/throttle.ts';
import { securityOf } from './access.ts';
import { errorsOfRoute } from './errors-of-route.ts';
import { permissionTerms } from './permission-text.ts';
import type { SchemaComponents } from './schema-components.ts';
import type { SharedErrors } from './shared-errors.ts';

export interface OperationContext {
  readonly components: SchemaComponents;
  readonly errors: SharedErrors;
  readonly throttleRates: ThrottleRates;
  /** OpenAPI 3.2 can describe the items of a stream. */
  readonly describesStreams: boolean;
}

/** `/orders/:id` as `/orders/{id}`. */
export function openApiPath(path: string): string {
  const named = path.replaceAll(/:(\w+)(?:\([^)]*\))?\??/g, '{$1}').replaceAll('*', '{wildcard}');
  return named === '' ? '/' : named;
}

const namesIn = (path: string): string[] => [...openApiPath(path).matchAll(/\{(\w+)\}/g)].map((match) => match[1]!);

interface ObjectSchema {
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
}

/** Properties of an object schema, also when it is composed of several. */
function fieldsOf(json: JsonSchema, components: SchemaComponents): [name: string, schema: JsonSchema, required: boolean][] {
  const resolved = components.resolve(json);
  const composed = (resolved['allOf'] as readonly JsonSchema[] | undefined) ?? [];
  const { properties = {}, required = [] } = resolved as ObjectSchema;
  const own = Object.entries(properties).map(([name, schema]): [string, JsonSchema, boolean] => [name, schema, required.includes(name)]);
  return [...composed.flatMap((part) => fieldsOf(part, components)), ...own];
}

function parameter(place: 'path' | 'query' | 'header' | 'cookie', name: string, schema: JsonSchema, required: boolean): object {
  const { description, deprecated, example, 'x-style': style, ...rest } = schema;
  return {
    name,
    in: place,
    // A list in one parameter, comma by comma; without it a repeated parameter.
    ...(style === 'comma' ? { style: 'form', explode: false } : {}),
    ...(required ? { required: true } : {}),
    ...(description === undefined ? {} : { description }),
    ...(deprecated === undefined ? {} : { deprecated }),
    ...(example === undefined ? {} : { example }),
    schema: rest,
  };
}

function parametersOf(route: CompiledRoute, { components }: OperationContext): object[] {
  const placed = (role: 'params' | 'query' | 'headers' | 'cookies') => {
    const json = route[role]?.json;
    return json === undefined ? [] : fieldsOf(components.place(json, `${route.operationId}_${role}`), components);
  };
  const described = new Map(placed('params').map(([name, schema]) => [name, schema]));
  return [
    ...namesIn(route.path).map((name) => parameter('path', name, described.get(name) ?? { type: 'string' }, true)),
    ...placed('query').map(([name, schema, required]) => parameter('query', name, schema, required)),
    ...placed('headers').map(([name, schema, required]) => parameter('header', name, schema, required)),
    ...placed('cookies').map(([name, schema, required]) => parameter('cookie', name, schema, required)),
    ...requestHeadersOf(route),
    ...(route.tenantHeader === undefined ? [] : [parameter('header', route.tenantHeader, TENANT, false)]),
    ...(route.idempotency === undefined ? [] : [parameter('header', 'Idempotency-Key', IDEMPOTENCY_KEY, route.idempotency.isRequired)]),
    ...(route.live === undefined ? [] : [parameter('header', 'Last-Event-ID', LAST_EVENT_ID, false)]),
    ...route.documents.flatMap(({ headers = {} }) =>
      Object.entries(headers).map(([name, schema]) => parameter('header', name, schema, false)),
    ),
  ];
}

/** Headers that the handler reads itself, such as preconditions: `metadata: { openapi: { requestHeaders: { 'If-Match': '…' } } }`. */
function requestHeadersOf({ metadata }: CompiledRoute): object[] {
  const { requestHeaders = {}, requiredHeaders = [] } = (metadata['openapi'] ?? {}) as {
    readonly requestHeaders?: Readonly<Record<string, string>>;
    readonly requiredHeaders?: readonly string[];
  };
  return Object.entries(requestHeaders).map(([name, description]) =>
    parameter('header', name, { type: 'string', description }, requiredHeaders.includes(name)),
  );
}

const TENANT: JsonSchema = {
  type: 'string',
  description: 'The tenant that the request is for, by its slug or id. Not needed where the credential, the path or the host name has one.',
};

const IDEMPOTENCY_KEY: JsonSchema = {
  type: 'string',
  minLength: 1,
  maxLength: 255,
  pattern: '^[!-~]+$',
  description: 'One unique key per operation, such as a UUID. Retries with the same key return the first response.',
};

const LAST_EVENT_ID: JsonSchema = {
  type: 'string',
  description: 'With `Accept: text/event-stream`: the last `id` that you got, to continue there.',
};

function statusText({ status }: CompiledRoute): string {
  return status === 204 ? 'Success. No content.' : status === 201 ? 'Created.' : 'OK.';
}

/** An example the author gave for the whole schema moves to where tools look for it. */
function mediaOf(schema: JsonSchema, components: SchemaComponents): object {
  const examples = components.resolve(schema)['examples'];
  return { schema, ...(Array.isArray(examples) && examples.length > 0 ? { example: examples[0] as unknown } : {}) };
}

function requestBodyOf(route: CompiledRoute, { components }: OperationContext): object {
  if (route.body === undefined) return {};
  if (route.rawBody !== undefined) {
    const { mediaTypes, json } = route.rawBody;
    const form = json === undefined ? undefined : components.place(json(), `${route.operationId}_body`);
    const content = Object.fromEntries(
      mediaTypes.map((type) => [type, form === undefined || !type.startsWith('multipart/') ? {} : { schema: form }]),
    );
    return { requestBody: { required: true, description: `At most ${route.bodyBytesMax} bytes.`, content } };
  }
  const schema = components.place(route.body.json, `${route.operationId}_body`);
  return { requestBody: { required: true, content: { 'application/json': mediaOf(schema, components) } } };
}

function documentedHeaders(headers: Readonly<Record<string, string>>): object {
  return Object.fromEntries(Object.entries(headers).map(([name, description]) => [name, { description, schema: { type: 'string' } }]));
}

/** Answers under other statuses that are not errors. */
function otherResponses(route: CompiledRoute, { components }: OperationContext): Record<string, object> {
  return Object.fromEntries(
    Object.entries(route.responses)
      .filter(([status]) => Number(status) !== route.status)
      .map(([status, { description, response, headers }]) => {
        const schema = response === undefined ? undefined : components.place(response.json, `${route.operationId}_response_${status}`);
        return [
          status,
          {
            description: description ?? (status === '304' ? 'Not modified.' : 'OK.'),
            ...headersOf(Number(status) < 300 ? headersOfSuccess(route, headers) : documentedHeaders(headers)),
            ...(schema === undefined ? {} : { content: { 'application/json': mediaOf(schema, components) } }),
          },
        ];
      }),
  );
}

const REPLAYED = { 'Idempotent-Replayed': '`true` where the response is that of an earlier attempt with the same `Idempotency-Key`.' };

/** Headers of every success of the route, under whichever status. */
function headersOfSuccess(route: CompiledRoute, own: Readonly<Record<string, string>> = {}): object {
  const added = Object.assign({}, ...route.documents.map(({ responseHeaders }) => responseHeaders ?? {})) as Record<string, string>;
  return {
    ...(route.idempotency === undefined ? {} : documentedHeaders(REPLAYED)),
    ...documentedHeaders(own),
    ...documentedHeaders(added),
  };
}

function headersOf(headers: object): { readonly headers?: object } {
  return Object.keys(headers).length === 0 ? {} : { headers };
}

function successOf(route: CompiledRoute, context: OperationContext): object {
  const own = route.responses[route.status];
  const withHeaders = headersOf(headersOfSuccess(route, own?.headers));
  const description = own?.description ?? statusText(route);
  const schema = route.response === undefined ? undefined : context.components.place(route.response.json, `${route.operationId}_response`);
  if (route.kind === 'stream') {
    return {
      description: `Events; \`error\` ends the stream when something fails.${route.ends ? ' The last one is `end`.' : ''}`,
      ...withHeaders,
      content: { 'text/event-stream': eventsOf(schema, context) },
    };
  }
  if (schema === undefined && route.mediaType === undefined) return { description, ...withHeaders };
  const media = schema === undefined ? {} : mediaOf(schema, context.components);
  const mediaTypes = own === undefined || own.mediaTypes.length === 0 ? [route.mediaType ?? 'application/json'] : own.mediaTypes;
  const content = Object.fromEntries(mediaTypes.map((type) => [type, ofMediaType(media, type)]));
  if (route.live === undefined) return { description, ...withHeaders, content };
  const events = context.components.place(route.live.json, `${route.operationId}_change`);
  return {
    description: `${description} Callers that accept \`text/event-stream\` get the list and then its changes.`,
    ...withHeaders,
    content: { ...content, 'text/event-stream': eventsOf(events, context, LIVE_EVENTS) },
  };
}

const LIVE_EVENTS = ['upsert', 'remove', 'reset', 'ready', 'error'];

/** The events of a stream; `schema` is that of their data. */
function eventsOf(schema: JsonSchema | undefined, { describesStreams }: OperationContext, names?: readonly string[]): object {
  const event: JsonSchema = {
    type: 'object',
    properties: {
      event: { type: 'string', ...(names === undefined ? {} : { enum: names }) },
      id: { type: 'string' },
      data: { type: 'string', contentMediaType: 'application/json', ...(schema === undefined ? {} : { contentSchema: schema }) },
    },
    required: ['data'],
  };
  return describesStreams ? { itemSchema: event } : { schema: { type: 'string' }, 'x-item-schema': event };
}

/** Each media type of a raw response is described as itself. */
function ofMediaType(media: object, type: string): object {
  const { schema } = media as { readonly schema?: JsonSchema };
  return schema?.['contentMediaType'] === undefined ? media : { ...media, schema: { ...schema, contentMediaType: type } };
}

const isoDate = (value: string | Date): string => new Date(value).toISOString();

function deprecationOf({ deprecated }: CompiledRoute): object {
  if (deprecated === false) return {};
  if (deprecated === true) return { deprecated: true };
  const { since, sunset, link } = deprecated;
  return {
    deprecated: true,
    'x-deprecated-since': isoDate(since),
    ...(sunset === undefined ? {} : { 'x-sunset': isoDate(sunset) }),
    ...(link === undefined ? {} : { externalDocs: { url: link } }),
  };
}

/** What a module says about the route in the document: `metadata: { openapi: { 'x-kit-crud': … } }`. */
function extensionsOf({ metadata }: CompiledRoute): object {
  const given = metadata['openapi'];
  return typeof given === 'object' && given !== null
    ? Object.fromEntries(Object.entries(given).filter(([name]) => name.startsWith('x-')))
    : {};
}

export function operationOf(route: CompiledRoute, context: OperationContext): object {
  const parameters = parametersOf(route, context);
  return {
    operationId: route.operationId,
    ...(route.tags.length > 0 ? { tags: route.tags } : {}),
    summary: route.summary ?? sentenceOf(route.field),
    description: route.description ?? accessOf(route),
    ...deprecationOf(route),
    ...(parameters.length > 0 ? { parameters } : {}),
    ...requestBodyOf(route, context),
    responses: {
      [route.status]: successOf(route, context),
      ...otherResponses(route, context),
      ...context.errors.of(errorsOfRoute(route)),
      default: { $ref: '#/components/responses/Error' },
    },
    ...extensionsOf(route),
    ...(route.ends ? { 'x-end-event': 'end' } : {}),
    security: securityOf(route),
    'x-permission': permissionTerms(String(route.permission)).join(' & '),
    ...(route.scope === undefined ? {} : { 'x-scope': route.scope }),
    'x-throttles': route.throttles.map((throttle) => throttleOf(throttle, context)),
  };
}

/** Part of the document because a lower limit breaks callers; one that depends on the caller has a name only. */
function throttleOf(throttle: CompiledRoute['throttles'][number], { throttleRates }: OperationContext): object {
  const rate = fixedRate(throttle, throttleRates);
  return { name: throttle.name, ...(rate === null ? {} : { requests: rate.count, seconds: rate.periodMs / 1000 }) };
}

/** `exportAll` as `Export all`. */
function sentenceOf(field: string): string {
  const words = field
    .replaceAll(/[^A-Za-z0-9]+/g, ' ')
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .trim();
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** Where the author gives no description: who may call. */
function accessOf(route: CompiledRoute): string {
  const open = securityOf(route).some((way) => Object.keys(way).length === 0);
  if (open) return 'No authentication required.';
  return route.scope === undefined ? 'Authentication required.' : `API keys need \`${route.scope}\`.`;
}
