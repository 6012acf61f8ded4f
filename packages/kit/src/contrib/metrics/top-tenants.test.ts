import { expect, test } from 'vitest';
import { TopTenants } from './top-tenants.ts';

test('the busiest are shown, the others together, and the sums are those of all requests', () => {
  const top = new TopTenants(2);
  for (const [tenant, requests] of [
    ['a', 5],
    ['b', 9],
    ['c', 1],
    ['d', 3],
  ] as const)
    for (let n = 0; n < requests; n++) top.count(tenant, n === 0 ? '4xx' : '2xx', 0.5);
  expect(top.read()).toEqual([
    {
      tenant: 'b',
      requests: new Map([
        ['4xx', 1],
        ['2xx', 8],
      ]),
      seconds: 4.5,
    },
    {
      tenant: 'a',
      requests: new Map([
        ['4xx', 1],
        ['2xx', 4],
      ]),
      seconds: 2.5,
    },
    {
      tenant: 'other',
      requests: new Map([
        ['4xx', 2],
        ['2xx', 2],
      ]),
      seconds: 2,
    },
  ]);
});

test('memory is bounded, and a busy tenant is found among any number of others', () => {
  const top = new TopTenants(3);
  for (let n = 0; n < 10_000; n++) {
    top.count(`t${n}`, '2xx', 0);
    if (n % 10 === 0) top.count('busy', '2xx', 0);
  }
  const found = top.read();
  expect(found).toHaveLength(4);
  expect(found[0]?.tenant).toBe('busy');
  const requests = found.reduce((sum, each) => sum + (each.requests.get('2xx') ?? 0), 0);
  expect(requests).toBe(11_000);
});
