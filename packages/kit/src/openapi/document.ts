import { coreErrors } from '../errors/core-errors.ts';
import type { ErrorFormat } from '../errors/render.ts';
import type { ThrottleRates } from '../throttle/throttle.ts';
import type { CompiledRoute, RouteSchema } from '../http/compiled-route.ts';
import { closeObjects } from './close-objects.ts';
import { errorResponses, errorSchemas } from './error-responses.ts';
import { openApiPath, operationOf } from './operation.ts';
import { SchemaComponents } from './schema-components.ts';
import { objectOf, type OptionRules, readOptions } from '../options/read-options.ts';
import { anything, filledText, listOf, oneOf, recordOf, required, text } from '../options/value-rule.ts';

export interface OpenApiOptions {
  readonly title: string;
  readonly version: string;
  readonly description?: string | undefined;
  /** Base addresses clients use, e.g. `https://api.example.org`. */
  readonly servers?: readonly { readonly url: string; readonly description?: string }[] | undefined;
  readonly errorFormat?: ErrorFormat | undefined;
  /** The rates of scoped throttles, from `settings.throttleRates`. */
  readonly throttleRates?: ThrottleRates | undefined;
  /** Requests that the application sends, by name: path items of OpenAPI. */
  readonly webhooks?: Readonly<Record<string, object>> | undefined;
  /**
   * The version of OpenAPI. 3.1 has no word for QUERY: such operations are left out where a POST alias stands beside them. Unless given: 3.2 when an
   * operation uses QUERY, else 3.1.
   */
  readonly spec?: '3.1' | '3.2' | undefined;
  /** Only the operations below this version mount, e.g. `/v1`. */
  readonly mount?: string | undefined;
}

const rules: OptionRules<OpenApiOptions> = {
  title: required(text),
  version: required(text),
  description: text,
  servers: listOf(objectOf<{ readonly url: string; readonly description?: string }>({ url: required(filledText), description: text })),
  errorFormat: oneOf('problem+json', 'detail'),
  throttleRates: recordOf(anything),
  webhooks: recordOf(anything),
  mount: text,
  spec: oneOf('3.1', '3.2'),
};

export interface OpenApiDocument {
  readonly openapi: string;
  readonly info: { readonly title: string; readonly version: string; readonly description?: string };
  readonly paths: Readonly<Record<string, Readonly<Record<string, object>>>>;
  readonly components: Readonly<Record<string, Readonly<Record<string, object>>>>;
  readonly [member: string]: unknown;
}

const HEADERS = {
  RateLimit: { description: 'What is left of each budget: requests `r` and seconds `t`.', schema: { type: 'string' } },
  RateLimitPolicy: { description: 'Each budget: requests `q` in `w` seconds.', schema: { type: 'string' } },
  RequestId: { description: 'Identifies the request in the logs.', schema: { type: 'string' } },
  RetryAfter: { description: 'Seconds to wait before the next attempt.', schema: { type: 'integer', minimum: 0 } },
};

const ORDER = ['GET', 'QUERY', 'POST', 'PUT', 'PATCH', 'DELETE'];
const before = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** What the route table says, as OpenAPI: 3.1, or 3.2 when an operation uses the QUERY method, which 3.1 has no word for. */
export function openApiDocument(routes: readonly CompiledRoute[], options: OpenApiOptions): OpenApiDocument {
  readOptions('openApiDocument()', options, rules);
  const shown = routes
    .filter((route) => !route.hidden && (options.mount === undefined || route.mount === options.mount))
    .filter((route) => options.spec !== '3.1' || route.method !== 'QUERY')
    .map(closed)
    .toSorted((a, b) => before(openApiPath(a.path), openApiPath(b.path)) || ORDER.indexOf(a.method) - ORDER.indexOf(b.method));
  const errorFormat = options.errorFormat ?? 'problem+json';
  const errors = errorSchemas(errorFormat).schemas;
  const components = new SchemaComponents(Object.keys(errors));
  for (const { params, query, headers, body, response, responses } of shown) {
    for (const schema of [params, query, headers, body]) components.learn(schema?.json, 'input');
    components.learn(response?.json, 'output');
    for (const other of Object.values(responses)) components.learn(other.response?.json, 'output');
  }
  components.settle();

  const isNew = options.spec === '3.2' || shown.some((route) => route.method === 'QUERY');
  const context = { components, errorFormat, describesStreams: isNew, throttleRates: options.throttleRates ?? {} };
  const paths: Record<string, Record<string, object>> = {};
  for (const route of shown) (paths[openApiPath(route.path)] ??= {})[route.method.toLowerCase()] = operationOf(route, context);

  const schemes = new Map(
    shown.flatMap((route) => route.authenticators.map(({ name, securityScheme }) => [name, securityScheme] as const)),
  );
  const tags = [...new Set(shown.flatMap((route) => route.tags))].sort(before);
  return {
    openapi: isNew ? '3.2.0' : '3.1.1',
    info: {
      title: options.title,
      version: options.version,
      ...(options.description === undefined ? {} : { description: options.description }),
    },
    ...(options.servers === undefined || options.servers.length === 0 ? {} : { servers: options.servers }),
    ...(tags.length === 0 ? {} : { tags: tags.map((name) => ({ name })) }),
    paths,
    ...(Object.keys(options.webhooks ?? {}).length === 0 ? {} : { webhooks: sorted(options.webhooks ?? {}) }),
    components: {
      schemas: sorted({ ...components.all(), ...errors }),
      responses: { Unexpected: unexpected(errorFormat) },
      headers: HEADERS,
      ...(schemes.size === 0 ? {} : { securitySchemes: sorted(Object.fromEntries(schemes)) }),
    },
  };
}

/** Input schemas as the server enforces them. */
function closed(route: CompiledRoute): CompiledRoute {
  const close = (schema: RouteSchema | undefined): RouteSchema | undefined =>
    schema === undefined ? undefined : { schema: schema.schema, json: closeObjects(schema.json) };
  return Object.assign({}, route, {
    params: close(route.params),
    query: close(route.query),
    headers: close(route.headers),
    body: close(route.body),
  });
}

/** What any address may answer with besides: faults of ours, and refusals of the HTTP server. */
function unexpected(format: ErrorFormat): object {
  const { internal_error, unavailable } = coreErrors;
  const [response] = Object.values(errorResponses([internal_error], format)) as [{ content: Record<string, object> }];
  const { name, mediaType } = errorSchemas(format);
  return {
    ...response,
    description: `${internal_error.detail} ${unavailable.detail}`,
    content: { [mediaType]: { ...response.content[mediaType], schema: { $ref: `#/components/schemas/${name}` } } },
    'x-error-codes': undefined,
  };
}

const sorted = <T>(record: Readonly<Record<string, T>>): Record<string, T> =>
  Object.fromEntries(Object.entries(record).sort(([a], [b]) => before(a, b)));

/** The document as text: the same routes give the same bytes, so a changed file is a changed API. */
export function openApiText(document: OpenApiDocument): string {
  return `${JSON.stringify(document, null, 2)}\n`;
}
