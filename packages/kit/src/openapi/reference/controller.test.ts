import { gunzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import * as z from 'zod';
import { Controller } from '../../http/compile/controller.ts';
import { route } from '../../http/declare/route.ts';
import { securityHeaders } from '../../middleware/security-headers.ts';
import { allowAny, isAuthenticated } from '../../permissions/built-ins.ts';
import { testApp } from '../../testing/test-app.ts';
import { openApiDocument } from '../document.ts';

class PingController extends Controller {
  ping = route.get('/ping', { response: z.strictObject({ ok: z.boolean() }), permission: allowAny, summary: 'Ping' }, () => ({ ok: true }));
}
const mount = { '/v1': { '/': PingController } };

test('the page, its parts and the document are served with a policy that allows nothing inline and nothing foreign', async () => {
  await using app = await testApp({ mount, middleware: [securityHeaders()], title: 'Pings', version: '2' });
  for (const [url, type] of [
    ['/docs', 'text/html'],
    ...['reference', 'api-document', 'credentials', 'dom', 'example', 'operation-view', 'samples', 'schema-view', 'try-it'].map(
      (name) => [`/docs/${name}.js`, 'text/javascript'] as const,
    ),
    ['/docs/reference.css', 'text/css'],
    ['/docs/facts.json', 'application/json'],
    ['/openapi.json', 'application/json'],
  ] as const) {
    const response = await app.inject(url);
    expect({ url, status: response.statusCode, type: response.headers['content-type'] }).toEqual({
      url,
      status: 200,
      type: `${type}; charset=utf-8`,
    });
    const policy = String(response.headers['content-security-policy']);
    expect(policy).toContain("default-src 'none'; script-src 'self'");
    expect(policy).not.toContain('unsafe');
    // Only the namespaces of SVG and the like may look like addresses; nothing is loaded from elsewhere.
    expect(response.body).not.toMatch(/(?:src|href|url\()\s*=?\s*["'(]?https?:/);
    expect(response.body).not.toMatch(/<script(?![^>]*\ssrc=)|\son\w+=|\sstyle=/);
  }
  const { app: created } = app;
  expect((await app.inject('/openapi.json')).json()).toEqual(openApiDocument(created.routes, { title: 'Pings', version: '2' }));
  expect((await app.inject('/openapi.json')).json()).toMatchObject({ info: { title: 'Pings' }, paths: { '/v1/ping': {} } });
  expect(Object.keys((await app.inject('/openapi.json')).json<{ paths: object }>().paths)).toEqual(['/v1/ping']);
});

test('the document is served compact, with a tag, and compressed for those who ask', async () => {
  await using app = await testApp({ mount });
  const plain = await app.inject('/openapi.json');
  expect(plain.body).toBe(JSON.stringify(plain.json()));
  expect(plain.headers['content-encoding']).toBeUndefined();
  const packed = await app.inject({ url: '/openapi.json', headers: { 'accept-encoding': 'br, gzip' } });
  expect([packed.headers['content-encoding'], packed.headers['vary']]).toEqual(['gzip', 'accept-encoding']);
  expect(gunzipSync(packed.rawPayload).toString()).toBe(plain.body);
  const tag = String(plain.headers['etag']);
  const again = await app.inject({ url: '/openapi.json', headers: { 'if-none-match': tag } });
  expect([again.statusCode, again.body, again.headers['etag']]).toEqual([304, '', tag]);
  expect((await app.inject({ url: '/openapi.json', headers: { 'if-none-match': '"other"' } })).statusCode).toBe(200);
});

test('the document has examples for those who ask', async () => {
  await using app = await testApp({ mount });
  const [plain, full] = [await app.inject('/openapi.json'), await app.inject('/openapi.json?examples=true')];
  const responseOf = (text: string) => JSON.stringify((JSON.parse(text) as { paths: object }).paths);
  expect(responseOf(plain.body)).not.toContain('"example":');
  expect(responseOf(full.body)).toContain('"example":');
  expect(full.headers['etag']).not.toBe(plain.headers['etag']);
  expect((await app.inject('/openapi.json?examples=false')).body).toBe(plain.body);
  expect((await app.inject('/openapi.json?examples=some')).statusCode).toBe(422);
});

test('the document names the servers of the settings', async () => {
  await using app = await testApp({ mount, settings: { apiServers: ['https://api.example.org'] } });
  expect((await app.inject('/openapi.json')).json()).toMatchObject({ servers: [{ url: 'https://api.example.org' }] });
  await using plain = await testApp({ mount });
  expect((await plain.inject('/openapi.json')).json()).toMatchObject({ servers: [{ url: '/' }] });
});

test('the page can be moved, closed to strangers, or left out', async () => {
  await using moved = await testApp({ mount, docs: { path: '/internal/reference' } });
  expect((await moved.inject('/internal/reference')).body).toContain('href="reference/reference.css"');
  expect((await moved.inject('/internal/reference/reference.js')).statusCode).toBe(200);
  expect((await moved.inject('/internal/openapi.json')).statusCode).toBe(200);
  expect((await moved.inject('/docs')).statusCode).toBe(404);

  await using closed = await testApp({ mount, docs: { permission: isAuthenticated } });
  for (const url of ['/docs', '/docs/reference.js', '/openapi.json']) expect((await closed.inject(url)).statusCode).toBe(401);

  for (const name of ['controller.ts', '..%2fdocument.ts', 'reference.html', '__proto__'])
    expect((await moved.inject(`/internal/reference/${name}`)).statusCode).toBe(404);

  await using none = await testApp({ mount, docs: false });
  for (const url of ['/docs', '/openapi.json']) expect((await none.inject(url)).statusCode).toBe(404);
});

test('the address of the API itself leads to its reference, as a page for browsers; an operation there takes its place', async () => {
  await using app = await testApp({ mount, title: 'Pings & more', version: '2' });
  const json = await app.inject('/');
  expect(json.statusCode).toBe(200);
  expect(json.json()).toEqual({ title: 'Pings & more', version: '2', links: { docs: '/docs', openapi: '/openapi.json' } });
  const page = await app.inject({ url: '/', headers: { accept: 'text/html' } });
  expect(page.headers['content-type']).toBe('text/html; charset=utf-8');
  expect(page.body).toContain('<h1>Pings &#38; more</h1>');
  expect(page.body).toContain('<a href="/docs">API reference</a>');

  class HomeController extends Controller {
    home = route.get('/', { response: z.strictObject({ own: z.boolean() }), permission: allowAny }, () => ({ own: true }));
  }
  await using own = await testApp({ mount: { '/': { '/': HomeController } } });
  expect((await own.inject('/')).json()).toEqual({ own: true });
  await using none = await testApp({ mount, docs: false });
  expect((await none.inject('/')).statusCode).toBe(404);
});
