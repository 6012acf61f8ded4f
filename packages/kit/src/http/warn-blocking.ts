import type { CompiledRoute } from './compiled-route.ts';
import type { Log } from './log.ts';

/** Names a handler that held the event loop: nobody else was served meanwhile. */
export function warnBlocking(log: Log, route: CompiledRoute, heldMs: number): void {
  const facts = { operation: route.operationId, handler: `${route.controller}.${route.field}`, held_ms: Math.round(heldMs) };
  log.warn(facts, `${facts.handler} blocked the event loop for ${facts.held_ms} ms; move the work to a worker or split it`);
}
