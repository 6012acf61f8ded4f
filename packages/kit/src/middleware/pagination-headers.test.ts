import { afterAll, beforeAll, expect, test } from 'vitest';
import * as z from 'zod';
import { Controller } from '../http/compile/controller.ts';
import { page } from '../http/declare/page.ts';
import { route } from '../http/declare/route.ts';
import { allowAny } from '../permissions/built-ins.ts';
import { testApp, type TestApp } from '../testing/test-app.ts';
import { deprecation, paginationHeaders } from './index.ts';

class ListController extends Controller {
  list = route.get('/', { permission: allowAny, response: page(z.object({ id: z.int() })) }, ({ reply }) => {
    reply.header('link', '</docs>; rel="help"');
    return { items: [{ id: 1 }], count: 12, next: '?cursor=abc&limit=1', previous: null };
  });
  last = route.get('/last', { permission: allowAny, response: page(z.object({ id: z.int() })) }, () => ({
    items: [],
    count: null,
    next: null,
    previous: '/v1/lists?page=1',
  }));
  hostile = route.get('/hostile', { permission: allowAny, response: page(z.object({ id: z.int() })) }, () => ({
    items: [],
    count: 0,
    next: '?q=a>; rel="x"\r\nset-cookie: a=b',
  }));
  found = route.get('/found', { permission: allowAny, response: page(z.object({ id: z.int() })) }, () => ({
    items: [],
    count: 0,
    next: '?q=blåbær pai%20&page=2',
    previous: '?q=\ud800',
  }));
  one = route.get('/one', { permission: allowAny, response: z.object({ next: z.string() }) }, () => ({ next: '?x' }));
}

let app: TestApp;
beforeAll(async () => {
  app = await testApp({
    database: 'sqlite::memory:',
    mount: { '/v1': { '/lists': ListController } },
    middleware: [deprecation(), paginationHeaders()],
  });
});
afterAll(() => app.close());

test('a list written by hand gets Link and X-Total-Count, beside a Link that is there', async () => {
  const { headers } = await app.inject('/v1/lists');
  expect(headers['x-total-count']).toBe('12');
  expect(headers['link']).toBe('</docs>; rel="help", <?cursor=abc&limit=1>; rel="next"');
});

test('what is not known or not there is not sent', async () => {
  const { headers } = await app.inject('/v1/lists/last');
  expect([headers['x-total-count'], headers['link']]).toEqual([undefined, '</v1/lists?page=1>; rel="prev"']);
  expect((await app.inject('/v1/lists/one')).headers['link']).toBeUndefined();
});

test('an address that would break the header is left out, and the answer is sent', async () => {
  const response = await app.inject('/v1/lists/hostile');
  expect([response.statusCode, response.headers['link'], response.headers['set-cookie']]).toEqual([200, undefined, undefined]);
});

test('text in an address that a header cannot carry is encoded', async () => {
  const { statusCode, headers } = await app.inject('/v1/lists/found');
  expect([statusCode, headers['link']]).toEqual([200, '<?q=bl%C3%A5b%C3%A6r%20pai%20&page=2>; rel="next"']);
});
