import { ErrorMap } from '../../errors/error-map.ts';
import { all } from '../../permissions/permission.ts';
import type { HandlerContext } from './handler-context.ts';
import type { LiveRoute } from './live-route.ts';
import type { Route, RouteFacts, RouteOptions } from './route.ts';

export type WrapOptions = Partial<RouteFacts & Pick<RouteOptions, 'permission'>> & {
  /** The handler is also around the stream of a live list: there, `next()` returns its events, which the handler returns as they are. */
  readonly alsoStream?: true;
};

type WrapHandler = (context: HandlerContext, next: () => unknown) => unknown;

/**
 * The route with a handler around its own. A permission, throttles and errors are added to the route's; other facts replace those of the
 * same name, unless they are undefined: a spread must not remove the scope or the authenticators. In a controller use `this.wrap('list', …)`: `this.list` cannot be read while the field is being assigned.
 */
export function routeAround(inherited: Route, facts: WrapOptions, handler?: WrapHandler): Route {
  const { handler: inner, options } = inherited;
  const { alsoStream, ...ofRoute } = facts;
  const { permission, throttles, errors } = ofRoute;
  const given = Object.fromEntries(Object.entries(ofRoute).filter(([, value]) => value !== undefined)) as WrapOptions;
  return {
    ...(handler === undefined ? inherited : alsoStream === true ? streamAround(inherited, handler) : withoutNews(inherited)),
    options: {
      ...options,
      ...given,
      permission: permission === undefined || permission === options.permission ? options.permission : all(options.permission, permission),
      ...(throttles === undefined ? {} : { throttles: [...(options.throttles ?? []), ...throttles] }),
      ...(errors === undefined ? {} : { errors: new ErrorMap([...(options.errors?.entries ?? []), ...errors.entries]) }),
    },
    ...(handler === undefined ? {} : { isUnwrapped: false }),
    handler: handler === undefined ? inner : (context) => handler(context, () => inner(context)),
  };
}

/** What the handler makes of the response, news of the rows do not tell. */
function withoutNews({ news: _news, ...rest }: Route): Route {
  return { ...rest, isStreamWrapped: false };
}

function streamAround(inherited: Route, handler: WrapHandler): Route {
  const { live, isUnwrapped, isStreamWrapped } = inherited;
  if (live === undefined) return inherited;
  const events: LiveRoute['handler'] = async function* (context) {
    yield* (await handler(context, () => live.handler(context))) as ReturnType<LiveRoute['handler']>;
  };
  return { ...inherited, live: { ...live, handler: events }, isStreamWrapped: isUnwrapped !== false || isStreamWrapped === true };
}
