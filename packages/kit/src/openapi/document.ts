import type { ErrorFormat } from '../errors/render.ts';
import type { ThrottleRates } from '../throttle/throttle.ts';
import type { CompiledRoute } from '../http/exchange/compiled-route.ts';
import { needsScope } from './access.ts';
import { errorExample, errorSchemas, membersByCode } from './error-responses.ts';
import { ERRORS_ANYWHERE, errorsOfRoute } from './errors-of-route.ts';
import { openApiPath, operationOf } from './operation.ts';
import { clashText, closed, schemasOf } from './schemas-of-routes.ts';
import { SharedErrors } from './shared-errors.ts';
import { shareHeaders } from './shared-headers.ts';
import { shareParameters, withPathParameters } from './shared-parameters.ts';
import { placeErrors, shareResponses } from './shared-responses.ts';
import { objectOf, type OptionRules, readOptions } from '../options/read-options.ts';
import { anything, filledText, listOf, oneOf, recordOf, required, text } from '../options/value-rule.ts';

export interface OpenApiOptions {
  /** The name of the API. */
  readonly title: string;
  /** The version of the API. */
  readonly version: string;
  /** Shown at the top of the document; Markdown. */
  readonly description?: string | undefined;
  /** Base addresses clients use, e.g. `https://api.example.org`. */
  readonly servers?:
    | readonly {
        /** Where the API is: `https://api.example.com`. */
        readonly url: string;
        /** For people: `Production`. */
        readonly description?: string;
      }[]
    | undefined;
  /** The format of errors, as the setting `ERROR_FORMAT` of the app. Default: `problem+json`. */
  readonly errorFormat?: ErrorFormat | undefined;
  /** The rates of scoped throttles, from `settings.throttleRates`. */
  readonly throttleRates?: ThrottleRates | undefined;
  /** Requests that the application sends, by name: path items of OpenAPI. */
  readonly webhooks?: Readonly<Record<string, object>> | undefined;
  /**
   * The version of OpenAPI. 3.1 has no word for QUERY: such operations are left out, and generic CRUD has a POST alias beside them. Default: 3.2
   * when an operation uses QUERY, else 3.1.
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
  /** Operations by method, and `parameters` that all operations of a path have. */
  readonly paths: Readonly<Record<string, Readonly<Record<string, object>>>>;
  readonly components: Readonly<Record<string, Readonly<Record<string, object>>>>;
  readonly [member: string]: unknown;
}

const HEADERS = {
  RateLimit: {
    description: 'What is left of each limit: requests `r` and seconds `t`. Also sent with successful responses.',
    schema: { type: 'string' },
  },
  RateLimitPolicy: {
    description: 'Each limit: requests `q` in `w` seconds. Also sent with successful responses.',
    schema: { type: 'string' },
  },
  RequestId: { description: 'Identifies the request in the logs. Sent with every response.', schema: { type: 'string' } },
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
  const { schemas: errors, name: errorName } = errorSchemas(errorFormat);
  const members = membersByCode(shown.flatMap(errorsOfRoute), errorFormat);
  const components = schemasOf(shown, [...Object.keys(errors), ...[...members.values()].map(({ name }) => name)]);
  const [clash] = components.clashes;
  if (clash !== undefined) throw new TypeError(clashText(clash));

  const isNew = options.spec === '3.2' || shown.some((route) => route.method === 'QUERY');
  const shared = new SharedErrors(errorFormat, members);
  const context = { components, errors: shared, describesStreams: isNew, throttleRates: options.throttleRates ?? {} };
  const operations: Record<string, Record<string, object>> = {};
  for (const route of shown) (operations[openApiPath(route.path)] ??= {})[route.method.toLowerCase()] = operationOf(route, context);
  const { paths: withErrors, errorResponses } = placeErrors(operations, { ...shared.responses(), Error: unexpected(errorFormat) });
  const { paths, parameters } = shareParameters(withErrors);
  const headers = shareHeaders(paths);
  const successes = shareResponses(headers.paths, Object.keys(errorResponses));
  const defaults = withoutDefaults(successes.paths);
  const responses = { ...errorResponses, ...successes.responses };

  return {
    openapi: isNew ? '3.2.0' : '3.1.1',
    info: {
      title: options.title,
      version: options.version,
      ...(options.description === undefined ? {} : { description: options.description }),
    },
    servers: options.servers === undefined || options.servers.length === 0 ? [{ url: '/' }] : options.servers,
    ...tagsOf(shown),
    ...defaults.common,
    paths: withPathParameters(defaults.paths, parameters),
    ...(Object.keys(options.webhooks ?? {}).length === 0 ? {} : { webhooks: sorted(options.webhooks ?? {}) }),
    components: {
      schemas: sorted({
        ...components.all(),
        ...shared.members(),
        ...errors,
        [errorName]: { ...errors[errorName], examples: [errorExample(errorFormat)], 'x-errors': shared.details() },
      }),
      responses: sorted(responses),
      ...(Object.keys(parameters).length === 0 ? {} : { parameters: sorted(parameters) }),
      headers: sorted({ ...headers.headers, ...usedHeaders(defaults.paths, responses) }),
      ...schemesOf(shown),
    },
  };
}

type Paths = OpenApiDocument['paths'];

/** What most operations have in common stands once, at the top of the document: operations that differ have their own. */
function withoutDefaults(paths: Paths): { readonly common: Readonly<Record<string, unknown>>; readonly paths: Paths } {
  const operations = Object.values(paths).flatMap((item) => Object.values(item)) as Readonly<Record<string, unknown>>[];
  const most = (name: string): string | undefined => {
    const counts = Map.groupBy(operations, (operation) => JSON.stringify(operation[name]));
    return [...counts].toSorted(([a, x], [b, y]) => y.length - x.length || before(a, b))[0]?.[0];
  };
  const common = DEFAULTED.flatMap((name) => {
    const text = most(name);
    return text === undefined ? [] : [[name, text] as const];
  });
  const isCommon = (name: string, value: unknown) => common.some(([key, text]) => key === name && JSON.stringify(value) === text);
  const values = Object.fromEntries(common.map(([name, text]) => [name, JSON.parse(text) as unknown]));
  const own = (operation: object) =>
    Object.fromEntries(
      Object.entries(operation)
        .filter(([name, value]) => !isCommon(name, value))
        .map(([name, value]) => [
          name,
          name === 'x-throttles' ? byName(value as Throttles, values[name] as Throttles) : (value as unknown),
        ]),
    );
  return {
    common: values,
    paths: Object.fromEntries(
      Object.entries(paths).map(([path, item]) => [
        path,
        Object.fromEntries(Object.entries(item).map(([method, operation]) => [method, own(operation)])),
      ]),
    ),
  };
}

type Throttles = readonly { readonly name: string }[];

/** A limit of the document is named in the operations that have it beside others. */
function byName(throttles: Throttles, common: Throttles = []): readonly unknown[] {
  const known = new Map(common.map((each) => [JSON.stringify(each), each.name]));
  return throttles.map((each) => known.get(JSON.stringify(each)) ?? each);
}

const DEFAULTED = ['security', 'x-permission', 'x-throttles'];

function usedHeaders(...places: readonly object[]): Record<string, object> {
  const text = JSON.stringify(places);
  return Object.fromEntries(Object.entries(HEADERS).filter(([name]) => text.includes(`"#/components/headers/${name}"`)));
}

/** Every way to authenticate, with the scopes that operations require. */
function schemesOf(routes: readonly CompiledRoute[]): object {
  const schemes = new Map(
    routes.flatMap((route) => route.authenticators.map(({ name, securityScheme }) => [name, securityScheme] as const)),
  );
  if (schemes.size === 0) return {};
  const scopesOf = (name: string) =>
    new Set(
      routes.filter((route) => needsScope(route) && route.authenticators.some((each) => each.name === name)).map(({ scope }) => scope!),
    );
  const described = [...schemes].map(([name, scheme]) => {
    const scopes = [...scopesOf(name)].sort(before);
    return [name, scopes.length === 0 ? scheme : { ...scheme, 'x-scopes': scopes }] as const;
  });
  return { securitySchemes: sorted(Object.fromEntries(described)) };
}

function tagsOf(routes: readonly CompiledRoute[]): object {
  const tags = [...new Set(routes.flatMap((route) => route.tags))].sort(before);
  if (tags.length === 0) return {};
  const controllers = (tag: string) =>
    [...new Set(routes.filter((route) => route.tags.includes(tag)).map(({ controller }) => controller))].sort(before);
  return { tags: tags.map((name) => ({ name, description: `Operations of ${controllers(name).join(' and ')}.` })) };
}

/** Any operation may also fail for reasons that are not its own. */
function unexpected(format: ErrorFormat): object {
  const { name, mediaType } = errorSchemas(format);
  return {
    description: 'A failure of the server, a conflict between two writes, or a request that cannot be read, such as malformed JSON.',
    headers: { 'Retry-After': { $ref: '#/components/headers/RetryAfter' }, 'X-Request-ID': { $ref: '#/components/headers/RequestId' } },
    content: { [mediaType]: { schema: { $ref: `#/components/schemas/${name}` } } },
    'x-error-codes': ERRORS_ANYWHERE.map(({ code }) => code),
  };
}

const sorted = <T>(record: Readonly<Record<string, T>>): Record<string, T> =>
  Object.fromEntries(Object.entries(record).sort(([a], [b]) => before(a, b)));

/** The document as text for people and version control: the same routes give the same bytes, so a changed file is a changed API. */
export function openApiText(document: OpenApiDocument): string {
  return `${JSON.stringify(document, null, 2)}\n`;
}
