import { fastify } from 'fastify';
import { describe, expect, test } from 'vitest';
import { Controller } from '../../http/compile/controller.ts';
import { route } from '../../http/declare/route.ts';
import { allowAny, isAuthenticated } from '../../permissions/built-ins.ts';
import type { CorsOptions } from './cors.ts';
import { createApp } from '../assemble/create-app.ts';

const APP = 'https://app.example.com';
const OTHER = 'https://evil.example.com';

class Things extends Controller {
  list = route.get('/', { permission: allowAny }, () => undefined);
  own = route.post('/', { permission: isAuthenticated }, () => undefined);
  events = route.stream('/events', { permission: allowAny }, async function* () {
    yield { data: 1 };
  });
}

function appWith(cors?: CorsOptions) {
  return createApp({
    database: 'sqlite::memory:',
    log: { level: 'silent' },
    mount: { '/v1': { '/things': Things } },
    ...(cors === undefined ? {} : { cors }),
  });
}

async function headersOf(cors: CorsOptions | undefined, url: string, origin: string, method: 'GET' | 'POST' = 'GET') {
  const app = appWith(cors);
  const { headers, statusCode } = await app.inject({ method, url, headers: { origin } });
  await app.close();
  return {
    status: statusCode,
    allowed: headers['access-control-allow-origin'],
    credentials: headers['access-control-allow-credentials'],
    vary: headers['vary'],
  };
}

async function preflight(cors: CorsOptions | undefined, origin: string, method = 'QUERY') {
  const app = appWith(cors);
  const { statusCode, headers } = await app.inject({
    method: 'OPTIONS',
    url: '/v1/things',
    headers: { origin, 'access-control-request-method': method, 'access-control-request-headers': 'x-api-key' },
  });
  await app.close();
  return { status: statusCode, headers };
}

describe('a page of another origin', () => {
  test('may read no response unless the app allows it', async () => {
    expect(await headersOf(undefined, '/v1/things', APP)).toMatchObject({ status: 204, allowed: undefined });
    expect((await preflight(undefined, APP)).headers['access-control-allow-origin']).toBeUndefined();
  });

  test('may read every response if its origin is named, errors and streams included', async () => {
    const cors = { origins: [APP], credentials: true };
    for (const [url, status, method] of [
      ['/v1/things', 204, 'GET'],
      ['/v1/things?unknown=1', 422, 'GET'],
      ['/v1/things', 401, 'POST'],
      ['/nowhere', 404, 'GET'],
      ['/v1/things/events', 200, 'GET'],
    ] as const) {
      const answer = await headersOf(cors, url, APP, method);
      expect([url, answer.status, answer.allowed, answer.credentials]).toEqual([url, status, APP, 'true']);
      expect(String(answer.vary)).toContain('Origin');
      const other = await headersOf(cors, url, OTHER, method);
      expect([other.status, other.allowed, other.credentials]).toEqual([status, undefined, undefined]);
      // A shared cache must not hand the response for one origin to another.
      expect(String(other.vary)).toContain('Origin');
    }
  });

  test('gets the methods and headers it may use from a preflight request', async () => {
    const { status, headers } = await preflight({ origins: [APP], maxAgeSeconds: 60 }, APP);
    expect(status).toBe(204);
    expect(headers).toMatchObject({
      'access-control-allow-origin': APP,
      'access-control-allow-methods': 'GET, HEAD, QUERY, POST, PUT, PATCH, DELETE',
      'access-control-allow-headers': 'x-api-key',
      'access-control-max-age': '60',
    });
    expect(headers['access-control-allow-credentials']).toBeUndefined();
    const { headers: others } = await preflight({ origins: [APP] }, OTHER);
    expect(Object.keys(others).filter((name) => name.startsWith('access-control-'))).toEqual([]);
  });

  test('an OPTIONS request that is not a preflight is answered with Allow', async () => {
    const app = appWith({ origins: [APP] });
    for (const given of [{}, { origin: APP }]) {
      const { statusCode, headers } = await app.inject({ method: 'OPTIONS', url: '/v1/things', headers: given });
      expect([statusCode, headers['allow']]).toEqual([204, 'GET, HEAD, OPTIONS, POST']);
    }
    await app.close();
  });

  test('any page may read with "*", without credentials', async () => {
    expect(await headersOf({ origins: '*' }, '/v1/things', OTHER)).toMatchObject({ status: 204, allowed: '*', credentials: undefined });
  });

  test('the headers end at the prefix inside another server', async () => {
    const app = appWith({ origins: [APP] });
    const server = fastify();
    server.get('/own', () => 'own');
    await server.register(app.plugin, { prefix: '/api' });
    const allowed = async (url: string) => (await server.inject({ url, headers: { origin: APP } })).headers['access-control-allow-origin'];
    expect([await allowed('/api/v1/things'), await allowed('/own')]).toEqual([APP, undefined]);
    await server.close();
  });

  test.each([
    [{ origins: '*', credentials: true }, 'createApp: cors.credentials needs named origins'],
    [{ origins: [] }, 'createApp: cors.origins is empty'],
    [{ origins: ['*'] }, 'cors.origins[0] is "*"; use an origin such as "https://app.example.com", without a path.'],
    [{ origins: ['https://app.example.com/'] }, 'without a path'],
    [{ origins: ['app.example.com'] }, 'use an origin'],
    [{ origins: ['https://*.example.com'] }, 'use an origin'],
    [{ origins: ['null'] }, 'use an origin'],
    [{ origin: [APP] }, 'unknown option "cors.origin". Did you mean "origins"?'],
    [true, 'createApp: cors is true; use an object'],
  ])('%o stops the start', (cors, sentence) => {
    expect(() => appWith(cors as CorsOptions)).toThrow(sentence);
  });
});
