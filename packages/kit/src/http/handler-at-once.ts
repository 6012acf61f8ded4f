import type { Route } from './route.ts';

type Handler = Route['handler'];

/** By the handler that promises: code that replaces the handler of a route replaces both. */
const atOnce = new WeakMap<Handler, Handler>();

/**
 * A handler for those who wrap it, which always gives a promise. The pipeline calls what is behind it: a promise costs more than the lookup
 * that needs none.
 */
export function promising<C, V>(handler: (context: C) => V | Promise<V>): (context: C) => Promise<V> {
  const promised = async (context: C): Promise<V> => handler(context);
  atOnce.set(promised as Handler, handler as Handler);
  return promised;
}

/** The handler, without a promise where nothing has to be waited for. */
export function handlerAtOnce(handler: Handler): Handler {
  return atOnce.get(handler) ?? handler;
}
