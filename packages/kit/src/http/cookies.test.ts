import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { createApp } from '../app/assemble/create-app.ts';
import { diffDocuments } from '../openapi/diff/diff-documents.ts';
import { openApiDocument } from '../openapi/document.ts';
import { allowAny } from '../permissions/built-ins.ts';
import { testApp, type TestApp } from '../testing/test-app.ts';
import { Controller } from './compile/controller.ts';
import { raw } from './declare/raw.ts';
import { type Route, route } from './declare/route.ts';

const Seen = z.strictObject({ theme: z.string(), size: z.int().nullable(), names: z.array(z.string()) });

class PageController extends Controller {
  show = route.get(
    '/',
    {
      permission: allowAny,
      query: z.strictObject({ page: z.int().optional() }),
      cookies: z.strictObject({
        theme: z.string().max(5000).meta({ description: 'Colors of the page.' }),
        size: z.int().min(1).optional(),
        'a.b': z.boolean().optional(),
      }),
      response: Seen,
    },
    ({ cookies }) => {
      // The schema types them, as it types `headers`.
      const theme: string = cookies.theme;
      return { theme, size: cookies.size ?? null, names: Object.keys(cookies) };
    },
  );
  plain = route.get('/plain', { permission: allowAny, response: z.array(z.string()) }, ({ cookies }) => Object.keys(cookies));
}

let app: TestApp;
beforeAll(async () => {
  app = await testApp({ mount: { '/v1': { '/pages': PageController } } });
});
afterAll(() => app.close());

const send = async (cookie?: string, url = '') => {
  const response = await app.inject({ method: 'GET', url: `/v1/pages${url}`, headers: cookie === undefined ? {} : { cookie } });
  const { errors } = response.json<{ readonly errors?: readonly { readonly location: string[]; readonly code: string }[] }>();
  return errors === undefined ? response.json<object>() : errors.map(({ location, code }) => `${location.join('.')} ${code}`);
};

describe('declared cookies', () => {
  test('are decoded and turned into what the schema asks for; others are ignored, and not passed on', async () => {
    expect(await send('theme=dark%20%C3%BC; size=3;other=1; broken; a.b=true')).toEqual({
      theme: 'dark ü',
      size: 3,
      names: ['theme', 'size', 'a.b'],
    });
    expect(await send('theme="quoted=1"; Size=3')).toEqual({ theme: 'quoted=1', size: null, names: ['theme'] });
    expect(await send('theme=1', '/plain')).toEqual([]);
  });

  test('are checked together with the rest of the input', async () => {
    expect(await send('size=0', '?page=x&more=1')).toEqual([
      'query.more unknown_field',
      'query.page invalid_type',
      'cookies.theme required',
      'cookies.size too_small',
    ]);
    expect(await send()).toEqual(['cookies.theme required']);
  });

  test('that were sent twice, are too long, or are not a text are refused', async () => {
    expect(await send('theme=a; theme=a')).toEqual(['cookies.theme duplicate']);
    expect(await send('other=a; other=b; theme=a')).toMatchObject({ theme: 'a' });
    expect(await send(`theme=${'a'.repeat(4097)}`)).toEqual(['cookies.theme too_big']);
    expect(await send(`theme=${'a'.repeat(4096)}`)).toMatchObject({ theme: 'a'.repeat(4096) });
    expect(await send('theme=%E4')).toEqual(['cookies.theme invalid']);
    expect(await send('theme=a%00b')).toEqual(['cookies.theme invalid']);
  });

  test('are parameters of the OpenAPI document, and its comparison finds a new required one', () => {
    const documentOf = (routes: Parameters<typeof openApiDocument>[0]) => openApiDocument(routes, { title: 'Pages', version: '1' });
    const document = documentOf(app.app.routes);
    const { parameters } = document.paths['/v1/pages']!['get'] as { readonly parameters: readonly { readonly in: string }[] };
    expect(parameters.filter(({ in: place }) => place === 'cookie')).toEqual([
      { name: 'theme', in: 'cookie', required: true, description: 'Colors of the page.', schema: { type: 'string', maxLength: 5000 } },
      { name: 'size', in: 'cookie', schema: { type: 'integer', minimum: 1, maximum: Number.MAX_SAFE_INTEGER } },
      { name: 'a.b', in: 'cookie', schema: { type: 'boolean' } },
    ]);
    const without = documentOf(app.app.routes.map((each) => Object.assign({}, each, { cookies: undefined })));
    const changes = (before: typeof document, after: typeof document) =>
      diffDocuments(before as never, after as never).map(({ id, place }) => `${id} ${place}`);
    expect(changes(without, document)).toEqual([
      'required-parameter-added cookie theme',
      'parameter-added cookie size',
      'parameter-added cookie a.b',
    ]);
    expect(changes(document, without)[0]).toBe('parameter-removed cookie theme');
  });

  test.each<[string, Route, string]>([
    [
      'of a stream',
      route.stream('/', { permission: allowAny, cookies: z.object({ a: z.string() }) } as never, async function* () {}),
      'E008  ThingController.one: a stream cannot declare cookies.',
    ],
    [
      'of a raw response',
      route.get('/', { permission: allowAny, cookies: z.object({ a: z.string() }), response: raw('text/csv') }, () => ''),
      'E008  ThingController.one: a route with a raw response cannot declare cookies.',
    ],
    [
      'with a name that no cookie has',
      route.get('/', { permission: allowAny, cookies: z.object({ 'a b': z.string() }) }, () => undefined),
      'E008  ThingController.one: "a b" cannot be the name of a cookie.',
    ],
    [
      'that are lists',
      route.get('/', { permission: allowAny, cookies: z.object({ a: z.array(z.string()) }) }, () => undefined),
      'E008  ThingController.one: the cookie "a" is a list or an object.',
    ],
  ])('%s stop the start', (_what, one, message) => {
    class ThingController extends Controller {
      one = one;
    }
    expect(() =>
      createApp({ database: 'sqlite::memory:', log: { level: 'silent' }, mount: { '/v1': { '/things': ThingController } } }),
    ).toThrow(message);
  });
});
