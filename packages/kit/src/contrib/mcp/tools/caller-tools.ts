import { BoundedMap } from '../../../db/values/bounded-map.ts';
import { isKitError } from '../../../errors/kit-error.ts';
import { probeRoute } from '../../../http/serve/call-route.ts';
import type { CompiledRoute } from '../../../http/exchange/compiled-route.ts';
import type { Exchange } from '../../../http/exchange/exchange.ts';
import { scopeCovers } from '../../../permissions/scope.ts';
import { callHeaders } from './call-headers.ts';
import { toolName, toolOf, type RouteTool } from './tool.ts';

/** Kinds of callers of one tool whose schemas are kept. */
const KINDS_MAX = 64;

/** What a caller has to do with a tool. */
export type Standing =
  | { readonly kind: 'listed'; readonly exchange: Exchange }
  | { readonly kind: 'hidden' }
  /** Only a scope is missing: an access token with more scopes would do. */
  | { readonly kind: 'scope'; readonly scope: string };

/** The tools of the app, and which of them a caller has. */
export class CallerTools {
  readonly #routes: ReadonlyMap<string, CompiledRoute>;
  /** Without, tools/list costs four times as much and a call 60 % more (mcp-call, 200 tools): schemas are written again. */
  readonly #known = new Map<CompiledRoute, BoundedMap<string, RouteTool>>();

  readonly #tellsNews: boolean;
  readonly #confirms: (route: CompiledRoute) => boolean;

  constructor(routes: readonly CompiledRoute[], confirms: (route: CompiledRoute) => boolean = () => false) {
    this.#confirms = confirms;
    this.#tellsNews = routes.some((each) => each.route.news !== undefined);
    this.#routes = new Map(routes.map((route) => [toolName(route), route]));
  }

  get routes(): IterableIterator<CompiledRoute> {
    return this.#routes.values();
  }

  /** Whether any of them can be followed. */
  get tellsNews(): boolean {
    return this.#tellsNews;
  }

  route(name: string): CompiledRoute | undefined {
    return this.#routes.get(name);
  }

  /** The next tools of the caller, in the order of the route table; null where `after` is not one of them. Only as many routes are looked at as needed. */
  async page(parent: Exchange, after: string | undefined, limit: number): Promise<readonly RouteTool[] | null> {
    const routes = [...this.#routes.values()];
    const last = after === undefined ? undefined : this.#routes.get(after);
    if (after !== undefined && (last === undefined || (await this.standing(last, parent)).kind !== 'listed')) return null;
    const found: RouteTool[] = [];
    for (const route of routes.slice(last === undefined ? 0 : routes.indexOf(last) + 1)) {
      const tool = await this.listed(route, parent);
      if (tool !== undefined) found.push(tool);
      if (found.length === limit) break;
    }
    return found;
  }

  /** The tool as the caller has it; undefined where it has not. One whose rules about fields fail is left out: the others are listed. */
  async listed(route: CompiledRoute, parent: Exchange): Promise<RouteTool | undefined> {
    const standing = await this.standing(route, parent);
    if (standing.kind !== 'listed') return undefined;
    try {
      return await this.described(standing.exchange);
    } catch (error) {
      // Of a tenant that is suspended, for example: the tool needs another one.
      if (isKitError(error) && error.status < 500) return undefined;
      parent.log.error(
        { err: error, operation: route.operationId },
        'mcp: the fields of a tool could not be decided; the tool is not listed',
      );
      return undefined;
    }
  }

  /**
   * Three-valued: what depends on the row is listed. A permission that fails lists nothing. To a route that does not accept the kind of credential the
   * caller is anonymous, as in a request of it.
   */
  async standing(route: CompiledRoute, parent: Exchange): Promise<Standing> {
    const { authenticator, principal } = parent;
    if (authenticator === null || principal === null) return { kind: 'hidden' };
    const exchange = probeRoute(route, parent, { headers: callHeaders(parent) });
    const isKnown = route.authenticators.includes(authenticator);
    if (!isKnown) exchange.principal = exchange.authenticator = null;
    try {
      if ((await route.permission.evaluate(exchange)) !== false) return { kind: 'listed', exchange };
      const { scope } = route;
      if (!isKnown || scope === undefined || principal.claims === undefined || scopeCovers(principal.scopes ?? [], scope))
        return { kind: 'hidden' };
      exchange.principal = { ...principal, scopes: [scope] };
      return (await route.permission.evaluate(exchange)) === false ? { kind: 'hidden' } : { kind: 'scope', scope };
    } catch (error) {
      // A caller who is not a member of the tenant, for example: decided, not failed.
      if (isKitError(error) && error.status < 500) return { kind: 'hidden' };
      parent.log.error({ err: error, operation: route.operationId }, 'mcp: the permission of a tool failed; the tool is not listed');
      return { kind: 'hidden' };
    }
  }

  /** The tool with the fields that the caller may send and sees: made once for each kind of caller. */
  async described(exchange: Exchange): Promise<RouteTool> {
    const route = exchange.route as CompiledRoute;
    const schemas = await route.route.schemasFor?.(exchange);
    let kinds = this.#known.get(route);
    if (kinds === undefined) this.#known.set(route, (kinds = new BoundedMap(KINDS_MAX)));
    return kinds.getOrMake(schemas?.key ?? '', () => toolOf(route, schemas?.make(), this.#confirms(route)));
  }
}
