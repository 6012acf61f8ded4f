import { AsyncLocalStorage } from 'node:async_hooks';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { z } from 'zod';
import { createApp } from '../../app/assemble/create-app.ts';
import type { App } from '../../app/declare/module.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import { allowAny } from '../../permissions/built-ins.ts';
import { Controller } from '../compile/controller.ts';
import type { Middleware } from './middleware.ts';
import { route } from '../declare/route.ts';

const storage = new AsyncLocalStorage<string>();
const entered: string[] = [];
const within: Middleware = {
  name: 'within',
  within(exchange, part, work) {
    entered.push(`${exchange.method} ${part}`);
    return storage.run(String(exchange.headers['x-name']), work);
  },
};

class ScopeController extends Controller {
  read = route.get('/', { permission: allowAny, response: z.object({ name: z.string() }) }, async () => {
    await new Promise((resolve) => setTimeout(resolve, 1));
    return { name: storage.getStore() ?? 'lost' };
  });

  write = route.post('/', { permission: allowAny, body: z.object({}), response: z.object({ name: z.string() }) }, async () => {
    await new Promise((resolve) => setTimeout(resolve, 1));
    return { name: storage.getStore() ?? 'lost' };
  });

  missing = route.get('/missing', { permission: allowAny }, () => {
    throw coreErrors.not_found();
  });
}

let app: App | undefined;
afterEach(() => app?.close());

test('what a middleware puts around a request holds in its handler, with a body or without, for requests at the same time', async () => {
  entered.length = 0;
  app = createApp({
    database: 'sqlite::memory:',
    middleware: [within],
    mount: { '/v1': { '/scope': ScopeController } },
    log: { level: 'silent' },
  });
  await app.listen({ port: 0 });
  const url = `http://127.0.0.1:${(app.fastify.server.address() as AddressInfo).port}/v1/scope`;
  const names = Array.from({ length: 20 }, (_, index) => `caller-${index}`);
  const answers = await Promise.all(
    names.map(async (name, index) => {
      const init = index % 2 === 0 ? {} : { method: 'POST', body: '{}' };
      const response = await fetch(url, { ...init, headers: { 'x-name': name, 'content-type': 'application/json' } });
      return response.json();
    }),
  );
  expect(answers).toEqual(names.map((name) => ({ name })));
  const { status } = await fetch(`${url}/missing`, { headers: { 'x-name': 'caller' } });
  expect(status).toBe(404);
  expect(entered.filter((each) => each === 'GET admission')).toHaveLength(11);
  expect(entered).not.toContain('GET handling');
  expect(entered.filter((each) => each === 'POST handling')).toHaveLength(10);
});
