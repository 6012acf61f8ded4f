import { expect, test } from 'vitest';
import * as z from 'zod';
import { Controller } from '../http/compile/controller.ts';
import type { Exchange } from '../http/exchange/exchange.ts';
import { route } from '../http/declare/route.ts';
import { allowAny } from '../permissions/built-ins.ts';
import { testApp } from '../testing/test-app.ts';
import { fromContext, override, scoped, service, singleton, value, type Registration } from './index.ts';

const greeting = service<string>('greeting');
const pool = service<{ readonly open: boolean }>('pool');
const unit = service<{ readonly url: string; readonly serial: number }>('unit');
const url = service<string>('url');

function build(): { readonly list: readonly Registration[]; readonly seen: string[] } {
  const seen: string[] = [];
  let serial = 0;
  const list = [
    value(greeting, 'hello'),
    singleton(
      pool,
      { greeting },
      async ({ greeting }) => {
        seen.push(`pool opened with ${greeting}`);
        return { open: true };
      },
      { dispose: () => void seen.push('pool closed') },
    ),
    fromContext(url, (exchange: Exchange) => exchange.url),
    scoped(unit, { pool, url }, ({ url }) => ({ url, serial: ++serial }), {
      dispose: (instance) => void seen.push(`unit ${instance.serial} ended`),
    }),
  ];
  return { list, seen };
}

class UnitController extends Controller {
  twice = route.get(
    '/twice',
    { response: z.strictObject({ url: z.string(), serials: z.array(z.int()) }), permission: allowAny },
    async ({ services }) => {
      const [first, second] = [await services.get(unit), await services.get(unit)];
      return { url: first.url, serials: [first.serial, second.serial] };
    },
  );
  hello = route.get('/hello', { response: z.strictObject({ text: z.string() }), permission: allowAny }, async ({ services }) => ({
    text: await services.get(greeting),
  }));
  failing = route.get('/failing', { permission: allowAny }, async ({ services }) => {
    await services.get(unit);
    throw new Error('after the unit was made');
  });
}

const mount = { '/': { '/': UnitController } };

test('singletons are built before the first request, scoped services once per request and ended after it', async () => {
  const { list, seen } = build();
  const app = await testApp({ services: list, mount });
  expect(seen).toEqual(['pool opened with hello']);
  expect((await app.inject('/twice')).json()).toEqual({ url: '/twice', serials: [1, 1] });
  expect((await app.inject('/twice')).json()).toMatchObject({ serials: [2, 2] });
  await expect.poll(() => seen).toEqual(['pool opened with hello', 'unit 1 ended', 'unit 2 ended']);
  await app.close();
  expect(seen.at(-1)).toBe('pool closed');
});

test('the services of a request that fails are ended too', async () => {
  const { list, seen } = build();
  await using app = await testApp({ services: list, mount });
  expect((await app.inject('/failing')).statusCode).toBe(500);
  await expect.poll(() => seen).toContain('unit 1 ended');
});

test('a test replaces a service for one application', async () => {
  const { list } = build();
  await using app = await testApp({ services: override(list, [value(greeting, 'ahoy')]), mount });
  expect((await app.inject('/hello')).json()).toEqual({ text: 'ahoy' });
});

test('services that cannot be built fail the start with every fault', async () => {
  await expect(
    testApp({
      services: [singleton(pool, { greeting }, () => ({ open: true })), scoped(unit, { url }, ({ url }) => ({ url, serial: 1 }))],
      mount,
    }),
  ).rejects.toThrow(/pool needs greeting[^]*unit needs url/);
  const broken = singleton(pool, {}, () => {
    throw new Error('connection refused');
  });
  await expect(testApp({ services: [broken], mount })).rejects.toThrow('The service pool could not be built: connection refused');
});
