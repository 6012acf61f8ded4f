import { ErrorMap } from '../../errors/error-map.ts';
import { all } from '../../permissions/permission.ts';
import type { HandlerContext } from './handler-context.ts';
import type { Route, RouteFacts, RouteOptions } from './route.ts';

export type WrapOptions = Partial<RouteFacts & Pick<RouteOptions, 'permission'>>;

type WrapHandler = (context: HandlerContext, next: () => unknown) => unknown;

/**
 * The route with a handler around its own. A permission, throttles and errors are added to the route's; other facts replace those of the
 * same name, unless they are undefined: a spread must not remove the scope or the authenticators. In a controller use `this.wrap('list', …)`: `this.list` cannot be read while the field is being assigned.
 */
export function routeAround(inherited: Route, facts: WrapOptions, handler?: WrapHandler): Route {
  const { handler: inner, options } = inherited;
  const { permission, throttles, errors } = facts;
  const given = Object.fromEntries(Object.entries(facts).filter(([, value]) => value !== undefined)) as WrapOptions;
  // What the handler makes of the response, news of the rows do not tell.
  const { news: _news, ...rest } = inherited;
  return {
    ...(handler === undefined ? inherited : rest),
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
