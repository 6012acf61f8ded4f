import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { wholeDocument } from '../../../test/whole-document.ts';
import { createApp } from '../../app/assemble/create-app.ts';
import type { StartUpError } from '../../app/check/start-up-error.ts';
import type { Authenticator } from '../../auth/request/authenticator.ts';
import { createTable, migration, model, t } from '../../db/index.ts';
import { allowAny, isAuthenticated } from '../../permissions/index.ts';
import { describeDatabases, testApp, type TestApp } from '../../testing/index.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import { Controller } from '../compile/controller.ts';
import { raw } from '../declare/raw.ts';
import { route } from '../declare/route.ts';

const pages = model('pages', { name: t.text(40).pk(), text: t.text(), version: t.int() });
const Page = z.object({ name: z.string(), text: z.string() });
const params = z.object({ name: z.string() });
const facts = { params, response: Page, permission: isAuthenticated } as const;

class PageController extends Controller {
  read = route.get('/:name', { ...facts, etag: true }, async ({ db, params: { name }, etag }) => {
    const [page] = await db.query<{ name: string; text: string; version: number }>('select * from pages where name = $1', [name]);
    if (page === undefined) throw coreErrors.not_found();
    etag(`v-${page.version}`);
    return page;
  });
  replace = route.put(
    '/:name',
    { ...facts, body: z.object({ text: z.string() }), atomic: true, etag: 'required' },
    async ({ tx, params: { name }, body, etag, ifMatch }) => {
      const lock = tx.dialect === 'postgres' ? ' for update' : '';
      const [before] = await tx.query<{ version: number }>(`select version from pages where name = $1${lock}`, [name]);
      if (before === undefined) throw coreErrors.not_found();
      ifMatch(`v-${before.version}`);
      const version = before.version + 1;
      await tx.execute('update pages set text = $2, version = $3 where name = $1', [name, body.text, version]);
      etag(`v-${version}`);
      return { name, text: body.text };
    },
  );
  forgetful = route.post(
    '/:name/forgetful',
    { params, permission: isAuthenticated, atomic: true, etag: true },
    async ({ tx, params: { name } }) => {
      await tx.execute('delete from pages where name = $1', [name]);
    },
  );
  remove = route.delete('/:name', { params, permission: isAuthenticated, etag: true }, ({ ifMatch }) => ifMatch(7));
  hashed = route.get('/hashed/:name', { ...facts, permission: allowAny, etag: true }, ({ params: { name } }) => ({ name, text: 'same' }));
  file = route.get('/file/:name', { params, response: raw('text/plain'), permission: allowAny, etag: true }, ({ etag }) => {
    etag('file-1');
    return 'content';
  });
  without = route.get('/without/:name', { ...facts }, ({ params: { name }, etag }) => {
    etag(1);
    return { name, text: '' };
  });
}

const byHeader: Authenticator = {
  name: 'header',
  securityScheme: {},
  authenticate: ({ headers }) =>
    headers['x-user'] === undefined
      ? null
      : {
          user: { id: 'u', username: 'u', email: null, is_active: true, is_staff: false, is_superuser: false },
          scheme: 'header',
          scopes: null,
        },
};

describeDatabases('conditional requests of handwritten routes', (database) => {
  let kit: TestApp;
  beforeAll(async () => {
    kit = await testApp({
      database: database.db,
      authenticators: [byHeader],
      modules: [{ name: 'pages', models: [pages], migrations: [migration('0001_pages', [createTable('pages', pages.columns)])] }],
      mount: { '/v1': { '/pages': PageController } },
    });
    await database.db.execute(`insert into pages (name, text, version) values ('home', 'one', 1)`);
  });
  afterAll(() => kit.close());

  const send = async (
    method: 'GET' | 'HEAD' | 'PUT' | 'POST' | 'DELETE',
    path: string,
    headers: Record<string, string> = {},
    payload?: object,
  ) => {
    const response = await kit.inject({
      method,
      url: `/v1/pages/${path}`,
      headers: { 'x-user': 'ann', ...headers },
      ...(payload === undefined ? {} : { payload }),
    });
    return { status: response.statusCode, headers: response.headers, text: response.body };
  };
  const put = (text: string, ifMatch?: string) => send('PUT', 'home', ifMatch === undefined ? {} : { 'if-match': ifMatch }, { text });

  test('a read has the version as its tag, and is 304 without a body for a caller who has it', async () => {
    const first = await send('GET', 'home');
    expect(first).toMatchObject({
      status: 200,
      headers: { etag: '"v-1"', 'cache-control': 'private, no-cache', vary: 'Authorization, X-API-Key, Cookie' },
    });
    for (const tag of ['"v-1"', 'W/"v-1"', '"other", "v-1"', '*']) {
      const again = await send('GET', 'home', { 'if-none-match': tag });
      expect([tag, again.status, again.text, again.headers['etag']]).toEqual([tag, 304, '', '"v-1"']);
    }
    expect((await send('HEAD', 'home', { 'if-none-match': '"v-1"' })).status).toBe(304);
    for (const tag of ['"v"', '"v-2"', 'v-1']) expect((await send('GET', 'home', { 'if-none-match': tag })).status).toBe(200);
    expect((await send('GET', 'none', { 'if-none-match': '*' })).status).toBe(404);
  });

  test('a change is 428 without If-Match, 412 with the current tag for another version, and one of many with the same tag wins', async () => {
    const missing = await put('x');
    expect([missing.status, JSON.parse(missing.text).code]).toEqual([428, 'precondition_required']);
    // The body is read first, then the condition, then the object.
    expect((await send('PUT', 'home', {}, { text: 5 })).status).toBe(422);
    expect((await send('PUT', 'none', { 'if-match': '"v-1"' }, { text: 'x' })).status).toBe(404);
    for (const tag of ['"v-9"', 'W/"v-1"', '"v"', '"1"']) {
      const stale = await put('x', tag);
      expect([tag, stale.status, stale.headers['etag']]).toEqual([tag, 412, '"v-1"']);
      expect(JSON.parse(stale.text)).toMatchObject({ code: 'precondition_failed', etag: '"v-1"' });
    }
    const all = await Promise.all(Array.from({ length: 6 }, (_, n) => put(`by ${n}`, '"v-1"')));
    expect(all.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 412, 412, 412, 412, 412]);
    expect(all.find(({ status }) => status === 200)?.headers['etag']).toBe('"v-2"');
    expect((await put('any', '*')).headers['etag']).toBe('"v-3"');
    expect((await put('listed', '"a", "v-3"')).status).toBe(200);
  });

  test('a handler that ignores If-Match changes nothing', async () => {
    const ignored = await send('POST', 'home/forgetful', { 'if-match': '"v-1"' });
    expect(ignored.status).toBe(500);
    expect(JSON.stringify(kit.records)).toContain('its handler ignored If-Match: call ifMatch(version) before the change.');
    expect((await send('GET', 'home')).status).toBe(200);
    expect((await send('DELETE', 'home', { 'if-match': '"8"' })).status).toBe(412);
    expect((await send('DELETE', 'home')).status).toBe(204);
  });

  test('a version that is a number matches the tags that generic CRUD gives its representations, and no other number', async () => {
    for (const tag of ['"7"', '"7-shaped"', '"6", "7-shaped"'])
      expect((await send('DELETE', 'home', { 'if-match': tag })).status).toBe(204);
    for (const tag of ['"70"', '"70-shaped"', '"-7"', 'W/"7-shaped"'])
      expect([tag, (await send('DELETE', 'home', { 'if-match': tag })).status]).toEqual([tag, 412]);
    // A text is compared as a whole: only the application knows what its parts mean.
    expect((await put('x', '"v-3-shaped"')).status).toBe(412);
  });

  test('without a version the tag is a hash of the body; responses that are not JSON have one where the handler sets it', async () => {
    const [a, b] = [await send('GET', 'hashed/a'), await send('GET', 'hashed/b')];
    expect(a.headers['etag']).toMatch(/^"[\w-]{16}"$/);
    expect(a.headers['etag']).not.toBe(b.headers['etag']);
    expect((await send('GET', 'hashed/a', { 'if-none-match': String(a.headers['etag']) })).status).toBe(304);
    const file = await send('GET', 'file/a');
    expect([file.status, file.text, file.headers['etag']]).toEqual([200, 'content', '"file-1"']);
    const known = await send('GET', 'file/a', { 'if-none-match': '"file-1"' });
    expect([known.status, known.text]).toEqual([304, '']);
    expect((await send('GET', 'without/a')).status).toBe(500);
    expect(JSON.stringify(kit.records)).toContain("etag() needs the option of the route: add etag: true (or 'required') to");
  });

  test('the OpenAPI document has the headers, 304, 412 and 428', async () => {
    const document = wholeDocument((await kit.inject('/openapi.json')).json());
    const { get, put: change } = document.paths['/v1/pages/{name}'];
    expect(get.parameters.map(({ name }: { name: string }) => name)).toContain('If-None-Match');
    expect(get.responses['304'].headers.ETag).toBeDefined();
    expect(get.responses['200'].headers.ETag).toBeDefined();
    expect(change.parameters.find(({ name }: { name: string }) => name === 'If-Match')).toMatchObject({ required: true });
    expect(JSON.stringify(change.responses['412'])).toContain('precondition_failed');
    expect(JSON.stringify(change.responses['428'])).toContain('precondition_required');
  });

  test('what cannot have a tag does not start', () => {
    const start = (field: unknown): string[] => {
      class Routes extends Controller {
        field = field;
      }
      try {
        createApp({ database: 'sqlite::memory:', log: { level: 'silent' }, docs: false, mount: { '/v1': { '/x': Routes } } });
        return [];
      } catch (error) {
        return (error as StartUpError).faults.map(({ id, message }) => `${id} ${message}`);
      }
    };
    const permission = allowAny;
    expect(start(route.get('/', { permission, response: Page, etag: 'required' }, () => ({ name: '', text: '' })))).toEqual([
      "E011 Routes.field: etag: 'required' is for changes; this is a read.",
    ]);
    expect(start(route.get('/', { permission, response: Page, etag: 'weak' as never }, () => ({ name: '', text: '' })))).toEqual([
      'E011 Routes.field: etag is "weak".',
    ]);
    expect(start(route.stream('/', { permission, etag: true }, async function* none() {}))).toEqual([
      'E011 Routes.field: a stream has no ETag: its events are sent while they are made.',
    ]);
  });
});
