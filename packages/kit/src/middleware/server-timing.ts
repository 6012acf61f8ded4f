import type { Exchange } from '../http/exchange/exchange.ts';
import type { Middleware } from '../http/exchange/middleware.ts';

/**
 * `Server-Timing` for the browser's network panel: `total` until the headers leave and `handler` within it.
 * Timing tells an attacker how far a request came, so mount it where callers are trusted or in development.
 */
export function serverTiming(): Middleware {
  const handled = new WeakMap<Exchange, number>();
  return {
    name: 'server_timing',
    async handle(exchange, next) {
      const started = performance.now();
      try {
        return await next();
      } finally {
        handled.set(exchange, performance.now() - started);
      }
    },
    onResponse(exchange) {
      const handler = handled.get(exchange);
      const parts = [`total;dur=${(performance.now() - exchange.startedAt).toFixed(1)}`];
      if (handler !== undefined) parts.push(`handler;dur=${handler.toFixed(1)}`);
      exchange.reply.header('server-timing', parts.join(', '));
    },
  };
}
