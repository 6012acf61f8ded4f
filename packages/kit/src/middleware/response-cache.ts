import { createHash } from 'node:crypto';
import { marksSensitive } from '../db/declare/sensitive-members.ts';
import { canonicalJson } from '../db/values/canonical-json.ts';
import { announceWritesOf, hearsTableWrites, watchTableWrites } from '../db/rows/table-writes.ts';
import { matchesNone } from '../http/respond/conditional-request.ts';
import type { Caller } from '../http/declare/caller.ts';
import type { CompiledRoute, ResponseFacts } from '../http/exchange/compiled-route.ts';
import type { Exchange } from '../http/exchange/exchange.ts';
import type { Host } from '../http/exchange/host.ts';
import type { MadeResponse, Middleware } from '../http/exchange/middleware.ts';
import { declaredValues } from '../http/input/declared-values.ts';
import { type OptionRules, readOptions, valueFaults, InvalidOptions, unknownNames } from '../options/read-options.ts';
import { aFunction, isMembers, listOf, filledText, milliseconds, required, wholeNumber } from '../options/value-rule.ts';
import { ResponseStore } from './response-store.ts';

/** How the responses of one route are kept. */
export interface CachedRoute {
  /** How long a response is used, whatever happens. Default: the cache's own. */
  readonly maxAgeMs?: number;
  /** What `invalidate` names it by. Responses of generic CRUD also have the tables they are made of. */
  readonly tags?: readonly string[];
}

export interface ResponseCacheOptions {
  /** Which routes are cached, and how. Only GET and QUERY; true takes the defaults. Asked once per route at start-up. */
  readonly routes: (route: CompiledRoute) => boolean | CachedRoute;
  /** Default: 60 seconds. */
  readonly maxAgeMs?: number;
  /** Default: 10,000. The least recently used goes first. */
  readonly entriesMax?: number;
  /** Of all bodies together. Default: 32 MiB. A body of more than a tenth of it is not kept. */
  readonly bytesMax?: number;
}

const rules: OptionRules<ResponseCacheOptions> = {
  routes: required(aFunction),
  maxAgeMs: milliseconds(1),
  entriesMax: wholeNumber(1),
  bytesMax: wholeNumber(1),
};
const routeRules: OptionRules<CachedRoute> = { maxAgeMs: milliseconds(1), tags: listOf(filledText) };

interface RoutePolicy {
  readonly maxAgeMs: number;
  readonly tags: readonly string[];
}

/**
 * Keeps responses in memory and sends them again to the same caller: the key has the whole principal, the tenant, the membership there, the address, the query, the
 * declared headers and the body of a QUERY. Authentication, throttles and permissions run with every request. Writes of generic CRUD drop the
 * responses made of their tables, after the commit, in this process and on PostgreSQL in others.
 */
export function responseCache(options: ResponseCacheOptions): ResponseCache {
  return new ResponseCache(readOptions('responseCache()', options, rules));
}

/** Made by {@link responseCache}. */
export class ResponseCache implements Middleware {
  readonly name = 'response_cache';
  readonly #options: ResponseCacheOptions;
  readonly #policies = new WeakMap<CompiledRoute['route'], RoutePolicy>();
  readonly #stores = new WeakMap<Host, ResponseStore>();
  readonly #all = new Set<WeakRef<ResponseStore>>();

  constructor(options: ResponseCacheOptions) {
    this.#options = options;
  }

  appliesTo(route: CompiledRoute): boolean {
    const { routes, maxAgeMs = 60_000 } = this.#options;
    const policy = policyOf(route, routes(route), maxAgeMs);
    if (policy !== undefined) this.#policies.set(route.route, policy);
    return policy !== undefined;
  }

  responseFacts({ route }: CompiledRoute): ResponseFacts {
    const policy = this.#policies.get(route);
    return policy === undefined ? {} : { cache: policy };
  }

  /** Drops every response with one of these tags, in this process. */
  invalidate(...tags: readonly string[]): void {
    for (const reference of this.#all) {
      const store = reference.deref();
      if (store === undefined) this.#all.delete(reference);
      else store.invalidate(tags);
    }
  }

  async respond(
    exchange: Exchange,
    make: () => Promise<MadeResponse | undefined>,
    audience: () => string | Promise<string>,
  ): Promise<MadeResponse | undefined> {
    const { route, host, principal } = exchange;
    const policy = route === null ? undefined : this.#policies.get(route.route);
    const control = String(exchange.headers['cache-control'] ?? '');
    // Unknown: the permission is about the object, and only the handler can decide it.
    if (policy === undefined || exchange.verdict !== true || /no-store/i.test(control)) return make();
    const store = this.#storeOf(host);
    if (!Object.values(host.databases).every(hearsTableWrites)) return make();
    const key = keyOf(exchange, await exchange.caller(), await audience());
    const { headers } = exchange.request.raw;
    const ifNoneMatch = headers['if-none-match'];
    // The whole response is made and kept; whether the caller has it already is decided below.
    delete headers['if-none-match'];
    const now = exchange.clock.now().getTime();
    const found = /no-cache/i.test(control) ? undefined : store.find(key, now);
    const response =
      found ?? (await store.fill(key, policy.tags, now + policy.maxAgeMs, make, (made) => mayBeKept(made, principal === null)));
    if (response === undefined) return undefined;
    const etag = response.headers['etag'];
    return response.status === 200 && typeof etag === 'string' && matchesNone(ifNoneMatch, etag) ? notModified(response) : response;
  }

  #storeOf(host: Host): ResponseStore {
    const known = this.#stores.get(host);
    if (known !== undefined) return known;
    const { entriesMax = 10_000, bytesMax = 32 * 1024 * 1024 } = this.#options;
    const store = new ResponseStore(entriesMax, bytesMax);
    this.#stores.set(host, store);
    this.#all.add(new WeakRef(store));
    const drop = (table: string | null): void => (table === null ? store.clear() : store.invalidate([tableTag(table)]));
    // Nothing is kept until writes are heard of.
    for (const database of Object.values(host.databases))
      watchTableWrites(database, drop).catch((error: unknown) =>
        host.log.error({ err: error }, 'response cache disabled: change notifications are unavailable'),
      );
    return store;
  }
}

function tableTag(table: string): string {
  return `table:${table}`;
}

function policyOf(route: CompiledRoute, given: unknown, maxAgeMs: number): RoutePolicy | undefined {
  if (given === false || given === undefined) return undefined;
  const faults =
    given === true
      ? []
      : isMembers(given)
        ? [...unknownNames('routes()', given, Object.keys(routeRules)), ...valueFaults('routes()', given, routeRules)]
        : [{ id: 'E011', message: 'routes() returned neither true, false nor { maxAgeMs, tags }.' }];
  if (faults.length > 0) throw new InvalidOptions(faults);
  if (route.method !== 'GET' && route.method !== 'QUERY') return undefined;
  if (route.kind === 'stream' || route.atomic !== undefined || route.idempotency !== undefined || route.rawBody !== undefined)
    return undefined;
  // A response with sensitive values, such as the plaintext of an encrypted column, is not kept.
  if (marksSensitive(route.response?.json ?? {})) return undefined;
  const { tables } = route.route;
  const read = tables === undefined ? [] : tables();
  if (read === undefined)
    throw new Error('rows of this resource are given by grants, and the cache does not hear when those change: leave the route out.');
  announceWritesOf(read);
  const own = given === true ? {} : (given as CachedRoute);
  return { maxAgeMs: own.maxAgeMs ?? maxAgeMs, tags: [...read.map(tableTag), ...(own.tags ?? [])] };
}

/** Everything the response may depend on. The caller as a whole: whoever lost a role, in general or in the tenant, or a scope has another key. */
function keyOf(exchange: Exchange, { principal, tenant, membership }: Caller, audience: string): string {
  const { route, url, headers, authenticator, request } = exchange;
  const parts = [
    route?.operationId,
    route?.method,
    url,
    tenant,
    audience,
    authenticator?.name ?? null,
    principal,
    membership,
    headers.host,
    headers['accept'],
    headers['accept-language'],
    ...declaredValues(exchange),
    request.body === undefined ? null : canonicalJson(request.body),
  ];
  return createHash('sha256').update(JSON.stringify(parts, whole)).digest('base64');
}

/** Users are the application's own objects: what JSON cannot say, or would leave out, is part of the key too. */
function whole(_name: string, value: unknown): unknown {
  if (typeof value === 'bigint') return { bigint: String(value) };
  if (value instanceof Set) return { set: [...value] };
  if (value instanceof Map) return { map: [...value] };
  return value;
}

/** Headers that are part of the key, or change the response only after it was kept. */
const KEYED: ReadonlySet<string> = new Set([
  'authorization',
  'x-api-key',
  'cookie',
  'accept',
  'accept-language',
  'accept-version',
  'origin',
  'host',
]);

function mayBeKept({ status, headers }: MadeResponse, isAnonymous: boolean): boolean {
  const control = String(headers['cache-control'] ?? '');
  const vary = String(headers['vary'] ?? '')
    .split(',')
    .map((name) => name.trim().toLowerCase())
    .filter((name) => name !== '');
  return (
    status === 200 &&
    headers['set-cookie'] === undefined &&
    !/no-store/i.test(control) &&
    // One key for all callers without credentials: they may not be one person.
    !(isAnonymous && /private/i.test(control)) &&
    vary.every((name) => KEYED.has(name))
  );
}

function notModified({ headers }: MadeResponse): MadeResponse {
  const { 'content-type': _type, 'content-length': _length, ...others } = headers;
  return { status: 304, headers: others, body: new Uint8Array(0) };
}
