import type { CompiledRoute } from '../http/exchange/compiled-route.ts';
import type { Middleware } from '../http/exchange/middleware.ts';

interface Announcement {
  readonly deprecation: string;
  readonly sunset: string | undefined;
  readonly link: string | undefined;
}

function instant(value: string | Date, what: string, route: CompiledRoute): Date {
  const date = new Date(value);
  if (Number.isNaN(date.getTime()))
    throw new TypeError(`${route.operationId}: deprecated.${what} is ${JSON.stringify(value)}; write a date such as '2026-06-30'.`);
  return date;
}

/** RFC 9745 writes the date as a structured-field date (`@` and seconds), RFC 8594 as an HTTP date. */
export function announcementOf(route: CompiledRoute): Announcement | undefined {
  if (typeof route.deprecated === 'boolean') return undefined;
  const { since, sunset, link } = route.deprecated;
  const start = instant(since, 'since', route);
  const end = sunset === undefined ? undefined : instant(sunset, 'sunset', route);
  if (end !== undefined && end < start)
    throw new TypeError(`${route.operationId}: deprecated.sunset must not be earlier than deprecated.since (RFC 9745).`);
  if (link !== undefined && /[<>\s]/.test(link)) throw new TypeError(`${route.operationId}: deprecated.link is not a URL.`);
  return {
    deprecation: `@${Math.floor(start.getTime() / 1000)}`,
    sunset: end?.toUTCString(),
    link: link === undefined ? undefined : `<${link}>; rel="deprecation"; type="text/html"`,
  };
}

/**
 * Announces deprecated operations and versions: `Deprecation`, `Sunset` and a `Link` to what to do instead.
 * `deprecated: true` without a date is shown in the documents only, because the header needs one.
 */
export function deprecation(): Middleware {
  const announcements = new WeakMap<CompiledRoute, Announcement>();
  return {
    name: 'deprecation',
    // Also fails the start when a date is invalid.
    appliesTo: (route) => announcementOf(route) !== undefined,
    onResponse({ route, reply }) {
      const announcement = route === null ? undefined : (announcements.get(route) ?? announcementOf(route));
      if (route === null || announcement === undefined) return;
      announcements.set(route, announcement);
      reply.header('deprecation', announcement.deprecation);
      if (announcement.sunset !== undefined) reply.header('sunset', announcement.sunset);
      if (announcement.link === undefined) return;
      const existing = reply.getHeader('link');
      reply.header('link', existing === undefined ? announcement.link : [existing, announcement.link].flat().map(String).join(', '));
    },
  };
}
