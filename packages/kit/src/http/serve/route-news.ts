import { runCausing } from '../../db/engine/long-statement.ts';
import { openStreamsOf } from '../admit/open-streams.ts';
import type { CompiledRoute } from '../exchange/compiled-route.ts';
import { Handling } from '../input/handling.ts';
import { compileInput } from '../input/read-input.ts';
import { admitCall, type RouteCall } from './call-route.ts';

/**
 * Tells that what a GET returns to this caller may be another response by now: once when it begins, then after each batch of changes of rows that the
 * caller sees. The request passes the admission of the route, counts as one of the caller's open streams, and ends with an error when the credential is revoked
 * or the caller may not read it any more; it ends without one when the signal aborts. Only routes with `news` can be followed.
 */
export async function* routeNews(route: CompiledRoute, call: RouteCall, signal: AbortSignal): AsyncGenerator<void, void> {
  const { news } = route.route;
  if (news === undefined) throw new Error(`${route.operationId} does not tell when its response changes.`);
  const exchange = await admitCall(route, call);
  const { raw } = exchange.reply;
  const stop = (): void => void raw.destroy();
  const close = openStreamsOf(exchange.host).add(exchange);
  for (const each of [signal, exchange.host.draining]) each.addEventListener('abort', stop, { once: true });
  try {
    if (signal.aborted || exchange.host.draining.aborted) return;
    exchange.isLive = true;
    const context = new Handling(exchange, await compileInput(route)(exchange));
    const iterator = news(context)[Symbol.asyncIterator]();
    try {
      for (;;) {
        const step = await runCausing(exchange, () => iterator.next());
        if (step.done === true) return;
        yield;
      }
    } finally {
      await iterator.return?.(undefined);
    }
  } catch (error) {
    if (!raw.destroyed) throw error;
  } finally {
    close();
    for (const each of [signal, exchange.host.draining]) each.removeEventListener('abort', stop);
    stop();
  }
}
