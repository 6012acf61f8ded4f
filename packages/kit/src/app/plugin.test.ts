import { fastify as createFastify, type FastifyInstance } from 'fastify';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { pino } from 'pino';
import { z } from 'zod';
import { Controller } from '../http/compile/controller.ts';
import { route } from '../http/declare/route.ts';
import { requestLog } from '../middleware/request-log.ts';
import { allowAny } from '../permissions/built-ins.ts';
import { createApp } from './assemble/create-app.ts';
import type { App, Module } from './declare/module.ts';

class ThingController extends Controller {
  one = route.get(
    '/:id',
    { params: z.object({ id: z.string() }), response: z.object({ id: z.string() }), permission: allowAny },
    ({ params }) => params,
  );
  fails = route.get('/fails/now', { permission: allowAny }, () => {
    throw new Error('x');
  });
  create = route.post('/', { body: z.object({ a: z.int() }), permission: allowAny }, () => undefined);
}

let events: string[] = [];
const worker: Module = {
  name: 'worker',
  setup: () => void events.push('setup'),
  start: () => void events.push('start'),
  stop: () => void events.push('stop'),
};

let server: FastifyInstance;
let app: App;

beforeEach(() => {
  events = [];
  app = createApp({
    database: 'sqlite::memory:',
    modules: [worker],
    mount: { '/v1': { '/things': ThingController } },
    log: { level: 'silent' },
  });
  server = createFastify();
  server.get('/own', () => 'own');
  server.post('/own', (request) => request.body);
  server.get('/own/fails', () => {
    throw new Error('own failure');
  });
});
afterEach(() => server.close());

async function statusAndBody(method: 'GET' | 'POST' | 'PATCH', url: string, payload?: string): Promise<[number, string]> {
  const response = await server.inject({
    method,
    url,
    ...(payload === undefined ? {} : { payload, headers: { 'content-type': 'application/json' } }),
  });
  return [response.statusCode, response.body];
}

describe('inside a foreign server', () => {
  test('routes are served under the prefix, with the app’s errors and 404s', async () => {
    await server.register(app.plugin, { prefix: '/api' });
    expect(await statusAndBody('GET', '/api/v1/things/7')).toEqual([200, '{"id":"7"}']);
    expect((await statusAndBody('GET', '/api/v1/things/fails/now'))[1]).toContain('urn:kit:error:internal_error');
    expect((await statusAndBody('GET', '/api/nowhere'))[1]).toContain('urn:kit:error:not_found');
    const refused = await server.inject({ method: 'PATCH', url: '/api/v1/things/7' });
    expect([refused.statusCode, refused.headers['allow']]).toEqual([405, 'GET, HEAD, OPTIONS']);
    expect((await statusAndBody('POST', '/api/v1/things', '{"a":1,"a":2}'))[1]).toContain('duplicate_key');
  });

  test('the foreign server keeps its own errors, 404s and parsers outside the prefix', async () => {
    await server.register(app.plugin, { prefix: '/api' });
    expect(await statusAndBody('GET', '/own')).toEqual([200, 'own']);
    expect((await statusAndBody('GET', '/own/fails'))[1]).toContain('"message":"own failure"');
    expect((await statusAndBody('GET', '/nowhere'))[1]).toContain('Route GET:/nowhere not found');
    expect(await statusAndBody('POST', '/own', '{"a":1,"a":2}')).toEqual([200, '{"a":2}']);
    expect((await statusAndBody('POST', '/own', '{'))[1]).not.toContain('urn:kit');
  });

  test('without a prefix its routes work and the foreign 404 stays', async () => {
    await server.register(app.plugin);
    expect((await statusAndBody('GET', '/v1/things/7'))[0]).toBe(200);
    expect((await statusAndBody('GET', '/nowhere'))[1]).toContain('Route GET:/nowhere not found');
  });

  test('a sensitive part of the path is masked in the log, whatever the prefix', async () => {
    class ResetController extends Controller {
      reset = route.post('/:token', { params: z.object({ token: z.string() }), permission: allowAny }, () => undefined);
    }
    let lines = '';
    const log = pino({ level: 'debug' }, { write: (line: string) => void (lines += line) });
    const resets = createApp({
      database: 'sqlite::memory:',
      middleware: [requestLog()],
      mount: { '/v1': { '/resets': ResetController } },
      log,
    });
    await server.register(resets.plugin, { prefix: '/some/where' });
    expect((await statusAndBody('POST', '/some/where/v1/resets/s3cret'))[0]).toBe(204);
    expect(lines).toContain('/some/where/v1/resets/[masked]');
    expect(lines).not.toContain('s3cret');
  });

  test('modules that cannot be started are told in the app’s own log, for the server listens already', async () => {
    const lines: string[] = [];
    const failing: Module = { name: 'failing', start: () => Promise.reject(new Error('no redis')) };
    const other = createApp({
      database: 'sqlite::memory:',
      modules: [failing],
      mount: {},
      docs: false,
      log: pino({ level: 'error' }, { write: (line: string) => void lines.push(line) }),
    });
    await server.register(other.plugin, { prefix: '/other' });
    await server.listen({ port: 0, host: '127.0.0.1' });
    await expect.poll(() => lines.join()).toContain('no redis');
    expect(lines.join()).toContain('the server listens, but the modules of the app could not be started');
  });

  test('two apps live side by side', async () => {
    const other = createApp({
      database: 'sqlite::memory:',
      mount: { '/v1': { '/things': ThingController } },
      settings: { errorFormat: 'detail' },
      log: { level: 'silent' },
    });
    await server.register(app.plugin, { prefix: '/a' });
    await server.register(other.plugin, { prefix: '/b' });
    expect((await statusAndBody('GET', '/a/x'))[1]).toContain('urn:kit:error:not_found');
    expect((await statusAndBody('GET', '/b/x'))[1]).toBe('{"detail":"No operation has this address.","code":"not_found"}');
  });

  test('hooks of the foreign server run before the app, and modules live with the server', async () => {
    server.addHook('onRequest', async (_request, reply) => void reply.header('x-foreign', 'yes'));
    await server.register(app.plugin, { prefix: '/api' });
    expect((await server.inject('/api/v1/things/7')).headers['x-foreign']).toBe('yes');
    expect(events).toEqual(['setup']);
    await server.listen({ port: 0, host: '127.0.0.1' });
    expect(events).toEqual(['setup', 'start']);
    await server.close();
    expect(events).toEqual(['setup', 'start', 'stop']);
    expect(() => app.db).toThrow('not open');
  });
});
