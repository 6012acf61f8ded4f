import { expect, test } from 'vitest';
import type { CompiledRoute } from '../http/exchange/compiled-route.ts';
import { announcementOf } from './deprecation.ts';

const route = (deprecated: CompiledRoute['deprecated']): CompiledRoute => ({ operationId: 'order_list', deprecated }) as CompiledRoute;

test('the dates are written as RFC 9745 and RFC 8594 ask', () => {
  expect(announcementOf(route({ since: '2026-01-01', sunset: '2026-12-31T23:59:59Z', link: 'https://example.org/v2' }))).toEqual({
    deprecation: '@1767225600',
    sunset: 'Thu, 31 Dec 2026 23:59:59 GMT',
    link: '<https://example.org/v2>; rel="deprecation"; type="text/html"',
  });
});

test('without a date there is nothing to announce', () => {
  expect(announcementOf(route(true))).toBeUndefined();
  expect(announcementOf(route(false))).toBeUndefined();
});

test('an invalid date, a sunset before the deprecation and a link that breaks the header fail at start', () => {
  expect(() => announcementOf(route({ since: 'soon' }))).toThrow('order_list: deprecated.since is "soon"');
  expect(() => announcementOf(route({ since: '2026-02-01', sunset: '2026-01-01' }))).toThrow('must not be earlier');
  expect(() => announcementOf(route({ since: '2026-02-01', link: 'x> y' }))).toThrow('not a URL');
});
