import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyReply } from 'fastify';
import { coreErrors } from '../errors/core-errors.ts';
import type { CompiledRoute } from '../http/exchange/compiled-route.ts';
import type { Exchange } from '../http/exchange/exchange.ts';
import type { Middleware } from '../http/exchange/middleware.ts';
import { InvalidOptions, objectOf, type OptionRules, readOptions } from '../options/read-options.ts';
import { aFunction, filledText, isMembers, listOf, required, rule } from '../options/value-rule.ts';
import { jsonValue } from '../db/values/json-value.ts';

type Item = Readonly<Record<string, unknown>>;

/** One difference between a version and the one before it in the list. */
export interface ResponseChange {
  /** The operations whose items have it. Default: all of them. `meta`, `stats`, `import` and `transitions` of generic CRUD never do. */
  readonly appliesTo?: (route: CompiledRoute) => boolean;
  /** Turns an item of the newer version, in its JSON form, into one of this version. Members that `fields` left out are absent. */
  // oxlint-disable-next-line typescript/no-explicit-any -- an item of whatever the operation answers with
  readonly transform: (item: any, context: { readonly route: CompiledRoute; readonly version: string }) => object;
}

export interface ResponseVersion {
  /** Letters, digits, dots, underscores and hyphens: `2`, `2026-05-01`. */
  readonly version: string;
  /** What is different from the version before it in the list. */
  readonly changes?: readonly ResponseChange[];
}

export interface ResponseVersionsOptions {
  /** The newest first: it is what handlers return and what the OpenAPI document describes. */
  readonly versions: readonly ResponseVersion[];
  /** For callers that name none. Default: the newest. */
  readonly default?: string;
}

const versionName = rule('a name of letters, digits, dots, underscores and hyphens, at most 40', (value) =>
  /^[A-Za-z0-9][A-Za-z0-9._-]{0,39}$/.test(String(value)),
);
const rules: OptionRules<ResponseVersionsOptions> = {
  versions: required(
    listOf(
      objectOf<ResponseVersion>({
        version: required(versionName),
        changes: listOf(objectOf<ResponseChange>({ appliesTo: aFunction, transform: required(aFunction) })),
      }),
      { min: 1 },
    ),
  ),
  default: filledText,
};

/**
 * Older forms of responses for callers that ask for them with `Accept-Version`. Handlers know the newest version only; each older one says how
 * an item differs from the one before. Items inside `{ items }`, `{ results: [{ data }] }` and lists are changed one by one, errors never.
 */
export function responseVersions(options: ResponseVersionsOptions): Middleware {
  const { versions, default: usual = versions?.[0]?.version ?? '' } = readOptions('responseVersions()', options, rules);
  const names = versions.map(({ version }) => version);
  refuseContradictions(versions, names, usual);
  const [newest] = names;
  const chosen = new WeakMap<Exchange, string>();
  const changesOf = changesByRoute(versions);
  return {
    name: 'response_versions',
    documents: {
      headers: {
        'Accept-Version': {
          type: 'string',
          enum: names,
          default: usual,
          description: 'The version of the response. This document describes the newest.',
        },
      },
      responseHeaders: { 'X-API-Version': 'The version of the response.' },
      raises: [coreErrors.unsupported_api_version],
    },
    appliesTo: ({ kind }) => kind === 'json',
    responseFacts: () => ({ versions: { supported: names, default: usual } }),
    onRequest(exchange) {
      if (exchange.route === null) return;
      // The schema of a tool describes the newest version, and clients compare results with it.
      const asked = exchange.parent === null ? exchange.headers['accept-version'] : newest;
      const version = asked === undefined ? usual : names.find((name) => name === String(asked).trim());
      if (version === undefined) throw coreErrors.unsupported_api_version({ extensions: { supported: names } });
      chosen.set(exchange, version);
      readTags(exchange.request.raw.headers, version === newest ? undefined : version);
    },
    onBody(exchange, body) {
      const { route } = exchange;
      const version = chosen.get(exchange);
      const changes = route === null || version === undefined ? [] : changesOf(route, version);
      if (route === null || version === undefined || changes.length === 0) return body;
      const context = { route, version };
      return JSON.stringify(
        eachItem(jsonValue(body), (item) => changes.reduce<object>((each, change) => changed(change, each, context), item)),
      );
    },
    onResponse(exchange) {
      const { reply, route } = exchange;
      if (route === null) return;
      addVary(reply);
      const version = chosen.get(exchange);
      if (version === undefined) return;
      reply.header('x-api-version', version);
      const etag = reply.getHeader('etag');
      if (version !== newest && typeof etag === 'string') reply.header('etag', etag.replace(/"$/, `${tagSuffix(version)}"`));
    },
  };
}

function refuseContradictions(versions: readonly ResponseVersion[], names: readonly string[], usual: string): void {
  const faults: string[] = [];
  if (new Set(names).size !== names.length) faults.push('versions has a version twice.');
  if (!names.includes(usual)) faults.push(`default is "${usual}", which is not among the versions: ${names.join(', ')}.`);
  if ((versions[0]?.changes ?? []).length > 0)
    faults.push('the first version is the newest and has no changes: they belong to the older ones.');
  if (faults.length > 0) throw new InvalidOptions(faults.map((fault) => ({ id: 'E011', message: `responseVersions(): ${fault}` })));
}

/** Operations of generic CRUD that answer with something else than rows. */
const WITHOUT_ROWS: ReadonlySet<string | undefined> = new Set(['meta', 'stats', 'import', 'transitions']);

/** The changes from the newest version to an asked one, for a route: found once. */
function changesByRoute(versions: readonly ResponseVersion[]): (route: CompiledRoute, version: string) => readonly ResponseChange[] {
  const known = new WeakMap<CompiledRoute, Map<string, readonly ResponseChange[]>>();
  const find = (route: CompiledRoute): Map<string, readonly ResponseChange[]> => {
    const crud = route.metadata['crud'] as { operation?: string; ofRows?: false } | undefined;
    const hasRows = !WITHOUT_ROWS.has(crud?.operation) && crud?.ofRows !== false;
    let changes: readonly ResponseChange[] = [];
    return new Map(
      versions.map(({ version, changes: own = [] }) => {
        changes = [...changes, ...own.filter(({ appliesTo }) => hasRows && (appliesTo?.(route) ?? true))];
        return [version, changes];
      }),
    );
  };
  return (route, version) => {
    let byVersion = known.get(route);
    if (byVersion === undefined) known.set(route, (byVersion = find(route)));
    return byVersion.get(version) ?? [];
  };
}

function changed(
  { transform }: ResponseChange,
  item: object,
  context: { readonly route: CompiledRoute; readonly version: string },
): object {
  const result: unknown = transform(item, context);
  if (typeof result === 'object' && result !== null && !('then' in result && typeof result.then === 'function')) return result;
  throw new TypeError(`responseVersions(): a transform of version ${context.version} returned no object for ${context.route.operationId}.`);
}

const ENVELOPE: ReadonlySet<string> = new Set(['items', 'count', 'next', 'previous']);

const RESULTS: ReadonlySet<string> = new Set(['results', 'dry_run']);

/** Changes the items of a page, of a bulk result or of a list; anything else is one item. */
function eachItem(value: unknown, change: (item: Item) => unknown): unknown {
  const changeOne = (item: unknown) => (isMembers(item) ? change(item) : item);
  if (Array.isArray(value)) return value.map(changeOne);
  if (!isMembers(value)) return value;
  const { items, results } = value;
  if (Array.isArray(items) && Object.keys(value).every((name) => ENVELOPE.has(name))) return { ...value, items: items.map(changeOne) };
  if (Array.isArray(results) && Object.keys(value).every((name) => RESULTS.has(name)))
    return {
      ...value,
      results: results.map((result: unknown) => (isMembers(result) && isMembers(result['data']) ? withData(result, change) : result)),
    };
  return change(value);
}

function withData(result: Item, change: (item: Item) => unknown): Item {
  return { ...result, data: change(result['data'] as Item) };
}

/** No tag of the toolkit has `=` in it, and what is before the first hyphen is still the version of the row. */
function tagSuffix(version: string): string {
  return `-v=${version}`;
}

/**
 * A tag says which version of the response it is of, and handlers know nothing of that. `If-None-Match` keeps the tags of the asked version
 * only: the same row in another version is another representation. `If-Match` is about the row: a tag of any version will do.
 */
function readTags(headers: IncomingHttpHeaders, version: string | undefined): void {
  const { 'if-none-match': ifNoneMatch, 'if-match': ifMatch } = headers;
  if (ifNoneMatch !== undefined && version !== undefined && ifNoneMatch.trim() !== '*') {
    const suffix = tagSuffix(version);
    const own = tagsIn(ifNoneMatch).filter((tag) => tag.endsWith(`${suffix}"`));
    if (own.length === 0) delete headers['if-none-match'];
    else headers['if-none-match'] = own.map((tag) => `${tag.slice(0, -1 - suffix.length)}"`).join(', ');
  }
  if (ifMatch !== undefined) headers['if-match'] = ifMatch.replaceAll(/-v=[A-Za-z0-9._-]+"/g, '"');
}

function tagsIn(header: string): string[] {
  return [...header.matchAll(/(?:W\/)?"[^"]*"/g)].map(([tag]) => tag);
}

function addVary(reply: FastifyReply): void {
  const existing = [reply.getHeader('vary') ?? []].flat().map(String);
  if (!existing.some((each) => /\baccept-version\b/i.test(each))) reply.header('vary', [...existing, 'Accept-Version'].join(', '));
}
