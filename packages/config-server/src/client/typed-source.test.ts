import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import { sendDocument, serveHttp } from '../../test/loopback-server.ts';
import { temporaryFolder } from '../../test/temporary-folder.ts';
import { RemoteSource, type KeyPath, type StandardSchema, type ValueAt } from './index.ts';

const section = { application: 'orders', profile: 'production', token: 'canary-token-0123456789-0123456789-01' };
const Orders = z.object({
  currency: z.string(),
  limits: z.object({ quantity_max: z.number(), 'per.day': z.number().optional() }),
  tags: z.array(z.string()).default([]),
  mail: z.object({ from: z.string() }).optional(),
});

const good = { currency: 'EUR', limits: { quantity_max: 100 } };
async function served(document: unknown = good) {
  const state = { document };
  const server = await serveHttp((_request, response) => sendDocument(response, state.document));
  return { state, url: server.url };
}

test('key paths and their values are typed by the schema', async () => {
  const { url } = await served();
  const source = new RemoteSource({ url, ...section, schema: Orders });
  await source.refresh();
  expectTypeOf(source.current).toEqualTypeOf<z.output<typeof Orders> | undefined>();
  expectTypeOf(source.get('limits.quantity_max')).toEqualTypeOf<number>();
  expectTypeOf(source.get('limits.per\\.day')).toEqualTypeOf<number | undefined>();
  expectTypeOf(source.get('mail.from')).toEqualTypeOf<string | undefined>();
  expectTypeOf(source.get('tags')).toEqualTypeOf<string[]>();
  // @ts-expect-error -- there is no such key
  expect(source.get('limits.quantity')).toBeUndefined();
  expect(source.get('tags')).toEqual([]);
  expect(source.get(['limits', 'quantity_max'])).toBe(100);

  type Tree = { name: string; child?: Tree };
  expectTypeOf<ValueAt<Tree, 'child.child.name'>>().toEqualTypeOf<string | undefined>();
  expectTypeOf<'child.child.child.name'>().toExtend<KeyPath<Tree>>();
  const plain = new RemoteSource({ url, ...section });
  await plain.refresh();
  expectTypeOf(plain.get('anything.at.all')).toEqualTypeOf<unknown>();
});

test('keys of any name, keys of one variant and keys with dots or backslashes have the type of their value', () => {
  type Services = { services: { [name: string]: { port: number; tls?: { file: string } } }; rates: Record<string, number> };
  expectTypeOf<ValueAt<Services, 'services.api.port'>>().toEqualTypeOf<number | undefined>();
  expectTypeOf<ValueAt<Services, 'services.api.tls.file'>>().toEqualTypeOf<string | undefined>();
  expectTypeOf<ValueAt<Services, 'services.api'>>().toEqualTypeOf<Services['services'][string] | undefined>();
  expectTypeOf<ValueAt<Services, 'rates.eur'>>().toEqualTypeOf<number | undefined>();
  expectTypeOf<ValueAt<Services, 'services.a\\.b.port'>>().toEqualTypeOf<unknown>();
  expectTypeOf<ValueAt<Services, `services.${string}`>>().toEqualTypeOf<unknown>();
  type Mixed = { name: string; [key: string]: unknown };
  expectTypeOf<ValueAt<Mixed, 'name'>>().toEqualTypeOf<string>();
  expectTypeOf<ValueAt<Mixed, 'other.key'>>().toEqualTypeOf<unknown>();

  type Variants = { mode: 'live'; mail: { from: string } } | { mode: 'test'; sink?: string };
  expectTypeOf<KeyPath<Variants>>().toEqualTypeOf<'mode' | 'mail' | 'mail.from' | 'sink'>();
  expectTypeOf<ValueAt<Variants, 'mode'>>().toEqualTypeOf<'live' | 'test'>();
  expectTypeOf<ValueAt<Variants, 'mail.from'>>().toEqualTypeOf<string | undefined>();
  expectTypeOf<ValueAt<{ pool: { size: number } | 'none' }, 'pool.size'>>().toEqualTypeOf<number | undefined>();

  type Odd = { 'a.b': { 'c\\d': number } };
  expectTypeOf<KeyPath<Odd>>().toEqualTypeOf<'a\\.b' | 'a\\.b.c\\\\d'>();
  expectTypeOf<ValueAt<Odd, 'a\\.b.c\\\\d'>>().toEqualTypeOf<number>();
});

test('a listener that another listener removes is not called any more', async () => {
  const { url, state } = await served();
  const source = new RemoteSource({ url, ...section });
  const calls: string[] = [];
  source.on('currency', () => {
    calls.push('first');
    remove();
    source.on('currency', () => calls.push('added'));
  });
  const remove = source.on('currency', () => calls.push('removed'));
  await source.refresh();
  expect(calls).toEqual(['first']);
  state.document = { ...good, currency: 'USD' };
  await source.refresh();
  expect(calls).toEqual(['first', 'first', 'added']);
});

test('a listener is called with undefined when its key is gone, and with what has taken its place', async () => {
  const { url, state } = await served();
  const source = new RemoteSource({ url, ...section });
  await source.refresh();
  const calls: unknown[] = [];
  source.on('limits.quantity_max', (value, previous) => calls.push([value, previous]));
  source.on('limits', (value) => calls.push(value));
  for (const limits of ['none', undefined, { quantity_max: { each: 1 } }]) {
    state.document = { currency: 'EUR', limits };
    await source.refresh();
  }
  expect(calls).toEqual([[undefined, 100], 'none', undefined, [{ each: 1 }, undefined], { quantity_max: { each: 1 } }]);
});

test('a listener is called with the new and the old value when its key path changed, and only then', async () => {
  const { url, state } = await served();
  const source = new RemoteSource({ url, ...section, schema: Orders });
  await source.refresh();
  const calls: unknown[] = [];
  const remove = source.on('limits.quantity_max', (value, previous) => {
    expectTypeOf(value).toEqualTypeOf<number>();
    calls.push([value, previous, source.get('currency')]);
  });
  source.on('limits', (value, previous) => calls.push([value, previous]));
  source.on('mail.from', (value) => calls.push(value));
  state.document = { ...good, currency: 'USD' };
  await source.refresh();
  expect(calls).toEqual([]);
  state.document = { currency: 'CHF', limits: { quantity_max: 5 } };
  await source.refresh();
  // The whole document was swapped before the first listener was called.
  expect(calls).toEqual([
    [5, 100, 'CHF'],
    [{ quantity_max: 5 }, { quantity_max: 100 }],
  ]);
  remove();
  state.document = { currency: 'CHF', limits: { quantity_max: 6 }, mail: { from: 'a' } };
  await source.refresh();
  expect(calls.slice(2)).toEqual([[{ quantity_max: 6 }, { quantity_max: 5 }], 'a']);
});

test('a listener that is there before the first document is called with it', async () => {
  const { url } = await served();
  const source = new RemoteSource({ url, ...section });
  const calls: unknown[] = [];
  source.on('currency', (value, previous) => calls.push([value, previous]));
  source.on(['limits', 'quantity_max'], (value) => calls.push(value));
  await source.refresh();
  expect(calls).toEqual([['EUR', undefined], 100]);
});

test('a listener that throws is reported; the document is swapped and the other listeners are called', async () => {
  const { url } = await served();
  const source = new RemoteSource({ url, ...section });
  const failure = new Error('of the listener');
  const calls: unknown[] = [];
  source.on('currency', () => {
    throw failure;
  });
  source.on('limits.quantity_max', (value) => calls.push(value));
  expect(await source.refresh()).toEqual({ changed: true, listenerErrors: [failure] });
  expect(calls).toEqual([100]);
  expect(() => source.on('currency', 'no function' as never)).toThrow('the listener must be a function');
});

test('a document that the schema refuses is an error that quotes nothing; the last good one stays, on disk too', async () => {
  const { url, state } = await served();
  const cacheFile = join(await temporaryFolder(), 'cache');
  const source = new RemoteSource({ url, ...section, schema: Orders, cacheFile });
  await source.refresh();
  const before = await readFile(cacheFile, 'utf8');
  const calls: unknown[] = [];
  source.on('limits.quantity_max', (value) => calls.push(value));
  state.document = { currency: 'EUR', limits: { quantity_max: 'canary-value' } };
  for (let attempt = 1; attempt <= 2; attempt++) {
    const { changed, error } = await source.refresh();
    expect(changed).toBe(false);
    expect(error).toMatchObject({
      code: 'mismatch',
      message: 'the document of orders/production does not satisfy the schema at: limits.quantity_max',
    });
  }
  expect(source.current).toMatchObject(good);
  expect(calls).toEqual([]);
  expect(await readFile(cacheFile, 'utf8')).toBe(before);
  state.document = { currency: 'EUR', limits: { quantity_max: 7 } };
  expect(await source.refresh()).toEqual({ changed: true });
  expect(calls).toEqual([7]);
});

test('a cached document is validated too, and one that does not pass is not used', async () => {
  const { url, state } = await served({ currency: 'EUR', limits: {} });
  const cacheFile = join(await temporaryFolder(), 'cache');
  await new RemoteSource({ url, ...section, cacheFile }).refresh();
  state.document = good;
  const source = new RemoteSource({ url, ...section, schema: Orders, cacheFile });
  const result = await source.refresh();
  expect(result).toMatchObject({ changed: true, cacheError: { code: 'mismatch' } });
  expect(source.current).toMatchObject(good);
  await writeFile(cacheFile, 'broken', { mode: 0o600 });
  expect(await new RemoteSource({ url, ...section, schema: Orders, cacheFile }).refresh()).toMatchObject({
    cacheError: { code: 'cache-read' },
  });
});

test('a schema may be asynchronous and may transform; one that throws is an error without its text', async () => {
  const { url } = await served();
  const later = z.object({ currency: z.string().transform((text) => Promise.resolve(text.toLowerCase())) });
  const source = new RemoteSource({ url, ...section, schema: later });
  expect(await source.refresh()).toEqual({ changed: true });
  expect(source.get('currency')).toBe('eur');
  const validate = (): never => {
    throw new Error('canary-value');
  };
  const throwing: StandardSchema<object> = { '~standard': { version: 1, vendor: 'test', validate } };
  const { error } = await new RemoteSource({ url, ...section, schema: throwing }).refresh();
  expect(error).toMatchObject({ code: 'mismatch' });
  expect(error?.message).not.toContain('canary');
  expect(() => new RemoteSource({ url, ...section, schema: {} as never })).toThrow('schema must be a Standard Schema');
});

test('a schema of any library: segments of a path may be keys, positions or objects with a key', async () => {
  const { url } = await served({ hosts: [{ 'a.b': 'canary-value' }] });
  const issues = [
    { message: 'canary-value', path: ['hosts', 0, 'a.b'] },
    { message: 'canary-value', path: [{ key: 'hosts' }, { key: 0 }, { key: 'a.b' }] },
    { message: 'canary-value', path: [{ key: 'limits' }] },
    { message: 'canary-value' },
  ];
  const refusing: StandardSchema<object> = { '~standard': { version: 1, vendor: 'test', validate: () => ({ issues }) } };
  const { error } = await new RemoteSource({ url, ...section, schema: refusing }).refresh();
  expect(error?.message).toBe(
    'the document of orders/production does not satisfy the schema at: hosts.0.a\\.b, limits, (the whole document)',
  );
  const value = { currency: 'EUR' };
  const accepting: StandardSchema<typeof value> = {
    '~standard': { version: 1, vendor: 'test', validate: () => Promise.resolve({ value }) },
  };
  const source = new RemoteSource({ url, ...section, schema: accepting });
  expect(await source.refresh()).toEqual({ changed: true });
  expect(source.get('currency')).toBe('EUR');
});

test('the output of a schema may have buffers, objects of classes and circles', async () => {
  const { url } = await served({ currency: 'RVVS', limits: { quantity_max: 1 } });
  class Money {
    readonly self = this;
    code = '';
  }
  const schema = z.object({
    currency: z.string().transform((text) => Buffer.from(text, 'base64')),
    limits: z.object({ quantity_max: z.number().transform(() => new Money()) }),
  });
  const circle = z.object({ limits: z.object({}) }).transform(({ limits }) => Object.assign({ limits, whole: {} as object }));
  const source = new RemoteSource({ url, ...section, schema });
  expect(await source.refresh()).toEqual({ changed: true });
  const { currency, limits } = source.current!;
  expect(currency.toString()).toBe('EUR');
  expect(Object.isFrozen(limits)).toBe(true);
  limits.quantity_max.code = 'EUR';
  const linked = new RemoteSource({
    url,
    ...section,
    schema: circle.transform((value) => {
      value.whole = value;
      return value;
    }),
  });
  expect(await linked.refresh()).toEqual({ changed: true });
  expect(Object.isFrozen(linked.current!.whole)).toBe(true);
});

test('a value that nests too deep to be compared does not fail the refresh', async () => {
  const state = { text: '' };
  const server = await serveHttp((_request, response) => {
    response.setHeader('content-type', 'application/json');
    response.end(state.text);
  });
  const source = new RemoteSource({ url: server.url, ...section });
  source.on(['a'], () => undefined);
  const levels = 100_000;
  state.text = `{"a":${'['.repeat(levels)}1${']'.repeat(levels)}}`;
  expect(await source.refresh()).toMatchObject({ changed: true });
  state.text = `{"a":${'['.repeat(levels)}2${']'.repeat(levels)}}`;
  const { changed, error, listenerErrors } = await source.refresh();
  expect({ changed, error, failed: listenerErrors?.length }).toEqual({ changed: true, error: undefined, failed: 1 });
});
