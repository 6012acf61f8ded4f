import { expect, test } from 'vitest';
import type { MadeResponse } from '../http/exchange/middleware.ts';
import { ResponseStore } from './response-store.ts';

const response = (text: string): MadeResponse => ({ status: 200, headers: {}, body: Buffer.from(text) });
const always = () => true;
const fill = (store: ResponseStore, key: string, text = key, tags: readonly string[] = ['t']) =>
  store.fill(key, tags, 1000, async () => response(text), always);

test('a response is kept until its time is over or its tag is invalidated', async () => {
  const store = new ResponseStore(10, 10_000);
  await fill(store, 'a');
  expect(store.find('a', 999)?.body.toString()).toBe('a');
  expect(store.find('a', 1000)).toBeUndefined();
  await fill(store, 'a');
  store.invalidate(['other']);
  expect(store.find('a', 0)).toBeDefined();
  store.invalidate(['t']);
  expect([store.find('a', 0), store.size]).toEqual([undefined, { entries: 0, bytes: 0 }]);
});

test('memory is bounded by entries and bytes, the least recently used goes first', async () => {
  const store = new ResponseStore(3, 30);
  for (const key of ['a', 'b', 'c']) await fill(store, key, key);
  store.find('a', 0);
  await fill(store, 'd', 'd');
  expect([store.find('a', 0) !== undefined, store.find('b', 0)]).toEqual([true, undefined]);
  const small = new ResponseStore(100, 20);
  for (let index = 0; index < 50; index += 1) await fill(small, String(index), 'xx');
  expect(small.size).toEqual({ entries: 10, bytes: 20 });
  await fill(small, 'large', 'x'.repeat(3));
  expect(small.find('large', 0)).toBeUndefined();
});

test('a response that was being made while its data changed is not kept, and later requests do not wait for it', async () => {
  const store = new ResponseStore(10, 10_000);
  for (const change of [() => store.invalidate(['t']), () => store.clear()]) {
    const gate = Promise.withResolvers<MadeResponse>();
    const stale = store.fill('k', ['t'], 1000, () => gate.promise, always);
    change();
    const fresh = await fill(store, 'k', 'new');
    expect(fresh?.body.toString()).toBe('new');
    gate.resolve(response('old'));
    expect((await stale)?.body.toString()).toBe('old');
    expect(store.find('k', 0)?.body.toString()).toBe('new');
    store.invalidate(['t']);
  }
});

test('of many requests at once one makes the response; one that fails or may not be kept is not shared', async () => {
  const store = new ResponseStore(10, 10_000);
  let made = 0;
  const make = async () => response(`made ${(made += 1)}`);
  const many = await Promise.all(Array.from({ length: 20 }, () => store.fill('k', [], 1000, make, always)));
  expect([made, new Set(many.map((each) => each?.body.toString())).size]).toEqual([1, 1]);
  made = 0;
  const secret = await Promise.all(Array.from({ length: 5 }, () => store.fill('s', [], 1000, make, () => false)));
  expect([new Set(secret.map((each) => each?.body.toString())).size, store.find('s', 0)]).toEqual([5, undefined]);
  let attempts = 0;
  const flaky = async () => {
    attempts += 1;
    if (attempts === 1) throw new Error('once');
    return response('ok');
  };
  const settled = await Promise.allSettled(Array.from({ length: 3 }, () => store.fill('f', [], 1000, flaky, always)));
  expect(settled.map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'fulfilled']);
});
