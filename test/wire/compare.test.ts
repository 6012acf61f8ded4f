import { expect, test } from 'vitest';
import { compareExchanges, judge } from './compare.ts';
import type { RecordedExchange } from './exchange.ts';
import { Normaliser } from './normalise.ts';

function exchange(response: Partial<RecordedExchange['response']>, statements: readonly string[] = []): RecordedExchange {
  return {
    test: 'lists keys',
    request: { method: 'GET', url: '/v1/api-keys/<id 1>?page=2', headers: {}, body: null },
    response: { status: 200, headers: {}, body: null, ...response },
    statements,
  };
}
const texts = (before: RecordedExchange, after: RecordedExchange) => compareExchanges([before], [after]).map(({ text }) => text);

test('two runs of a test are recorded alike: ids, times, keys and durations differ, what is equal stays equal', () => {
  const run = (id: string, key: string, time: string, ms: number) =>
    new Normaliser().value({ id, self: `/v1/orders/${id}`, key, created_at: time, took_ms: ms, amount: 250, prefix: key.slice(4, 10) });
  const first = run('0199a3c1-7d2e-7000-8000-0123456789ab', 'kit_Abc123defGhi456jklMno789', '2026-11-18T10:00:00.000Z', 12);
  expect(run('0199a3c1-7d2e-7000-8000-ba9876543210', 'kit_Zyx987wvuTsr654qpoNml321', '2026-11-19T11:30:00Z', 48)).toEqual(first);
  expect(first).toMatchObject({ id: '<id 1>', self: '/v1/orders/<id 1>', created_at: '<time>', took_ms: '<duration>', amount: 250 });
});

test.each([
  ['a status', exchange({ status: 200 }), exchange({ status: 404 }), 'status: 200 → 404'],
  ['an added header', exchange({}), exchange({ headers: { etag: '<tag>' } }), 'header etag: none → "<tag>"'],
  ['an added member', exchange({ body: { items: [] } }), exchange({ body: { items: [], next: null } }), 'body.next: added, null'],
  ['a removed member', exchange({ body: { count: 1 } }), exchange({ body: {} }), 'body.count: removed, 1'],
  ['a value inside a list', exchange({ body: { items: [{ a: 1 }] } }), exchange({ body: { items: [{ a: 2 }] } }), 'body.items[].a: 1 → 2'],
  ['a longer list', exchange({ body: [1] }), exchange({ body: [1, 2] }), 'body: 1 → 2 elements'],
  ['another order of members', exchange({ body: { a: 1, b: 2 } }), exchange({ body: { b: 2, a: 1 } }), 'body: order of members a,b → b,a'],
  [
    'another index',
    exchange({}, ['select jobs by jobs_of_owner']),
    exchange({}, ['select jobs by scan']),
    'statements: 1 [select jobs by jobs_of_owner] → 1 [select jobs by scan]',
  ],
])('a comparison shows %s', (_, before, after, difference) => {
  expect(texts(before, after)).toEqual([`GET /v1/api-keys/:id?page ${difference}`]);
});

test('a request that only one recording has is a difference', () => {
  expect(compareExchanges([exchange({})], []).map(({ text }) => text)).toEqual(['GET /v1/api-keys/:id?page is not asked any more']);
});

test('a listed change covers its differences alone, and one that nothing shows is named', () => {
  const differences = compareExchanges([exchange({})], [exchange({ status: 404, headers: { etag: '<tag>' } })]);
  const listed = [
    { difference: 'header etag: none', reason: 'lists have tags' },
    { difference: 'header vary', reason: 'responses differ by caller' },
  ];
  const { unexpected, unused } = judge(differences, listed);
  expect(unexpected.map(({ text }) => text)).toEqual(['GET /v1/api-keys/:id?page status: 200 → 404']);
  expect(unused).toEqual([listed[1]]);
});
