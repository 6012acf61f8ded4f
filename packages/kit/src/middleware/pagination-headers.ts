import type { FastifyReply } from 'fastify';
import type { CompiledRoute } from '../http/exchange/compiled-route.ts';
import type { Middleware } from '../http/exchange/middleware.ts';
import type { Page } from '../http/declare/page.ts';

/**
 * `Link` (RFC 8288) and `X-Total-Count` for lists written by hand: routes whose handler returns the envelope `{ items, count, next, previous }`.
 * `next` and `previous` are addresses or query strings, relative to the request. Generic CRUD sends both by itself.
 */
export function paginationHeaders(): Middleware {
  return {
    name: 'pagination-headers',
    appliesTo: (route) => route.metadata['crud'] === undefined && answersWithPage(route),
    async handle({ reply }, next) {
      const value = await next();
      if (isPage(value)) describePage(reply, value);
      return value;
    },
  };
}

function answersWithPage({ response }: CompiledRoute): boolean {
  const properties = response?.json['properties'] as Readonly<Record<string, unknown>> | undefined;
  return properties !== undefined && 'items' in properties && ('count' in properties || 'next' in properties);
}

function isPage(value: unknown): value is Page<unknown> {
  return typeof value === 'object' && value !== null && Array.isArray((value as Partial<Page<unknown>>).items);
}

function describePage(reply: FastifyReply, { count, next, previous }: Page<unknown>): void {
  if (typeof count === 'number' && !reply.hasHeader('x-total-count')) reply.header('x-total-count', String(count));
  const links = [linkTo(next, 'next'), linkTo(previous, 'prev')].filter((link) => link !== undefined);
  if (links.length === 0) return;
  const existing = reply.getHeader('link');
  reply.header('link', [...(existing === undefined ? [] : [existing].flat().map(String)), ...links].join(', '));
}

/** Characters that would end the address or the header. */
// oxlint-disable-next-line no-control-regex -- those are meant
const UNSENDABLE = /[<>\u0000-\u001f\u007f]/;
/** What an address has only encoded: handlers put a search text into it as the caller sent it. */
const UNENCODED = /[^\x21-\x7e]+/g;

function linkTo(address: string | null | undefined, relation: string): string | undefined {
  if (typeof address !== 'string' || address === '' || UNSENDABLE.test(address) || !address.isWellFormed()) return undefined;
  return `<${address.replaceAll(UNENCODED, encodeURIComponent)}>; rel="${relation}"`;
}
