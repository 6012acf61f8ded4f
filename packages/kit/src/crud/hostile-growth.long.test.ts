import { expect, test } from 'vitest';
import { startDesk } from '../../test/crud/desk.ts';
import { describeDatabases } from '../testing/databases.ts';
import { limits } from './declare/limits.ts';

const REQUESTS = 30_000;
const FIELDS = [
  'id',
  'org',
  'owner_id',
  'firm_id',
  'sku',
  'title',
  'discount',
  'status',
  'extra',
  'created_at',
  'updated_at',
  'version',
  'deleted_at',
];
/** Never the same shape twice: a number says which fields, filters, order and conditions. */
function shapeOf(index: number): { readonly method: string; readonly url: string; readonly payload?: object } {
  // At least one of them: an empty list is rejected.
  const chosen = 1 + (index % (2 ** FIELDS.length - 1));
  const fields = FIELDS.filter((_, bit) => (chosen >> bit) % 2 === 1);
  if (index % 3 === 0) return { method: 'GET', url: `tickets?fields=${fields.join()}&limit=1` };
  const filters = [
    `title__contains=a${index}`,
    'status=open',
    'created_at__gte=2026-01-01T00:00:00Z',
    'firm__name=x',
    'status__in=open,paid',
  ];
  if (index % 3 === 1) {
    const some = filters.filter((_, bit) => ((index / 3) >> bit) % 2 === 1).join('&');
    return { method: 'GET', url: `tickets?${some}&fields=${fields.join()}&ordering=${index % 2 === 0 ? 'title' : '-created_at'}&limit=1` };
  }
  const leaves = Array.from({ length: 1 + (index % 20) }, (_, leaf) => ({ title: { contains: `x${leaf}` } }));
  return { method: 'POST', url: 'tickets/query', payload: { where: { or: leaves, not: { status: 'paid' } }, fields, limit: 1 } };
}

describeDatabases('a caller who never asks the same thing twice', (database) => {
  test('grows neither plans nor statements nor memory without bound', { timeout: 1_200_000 }, async () => {
    await using desk = await startDesk({ database: database.db });
    await desk.call('ann', 'POST', 'tickets', { sku: 'one' });
    const ask = async (index: number) => {
      const { method, url, payload } = shapeOf(index);
      const response = await desk.inject({
        method: method as 'GET',
        url: `/v1/${url}`,
        headers: { 'x-user': 'ann' },
        ...(payload === undefined ? {} : { payload }),
      });
      expect([url, response.statusCode]).toEqual([url, 200]);
    };
    const heap = () => {
      (globalThis as { gc?: () => void }).gc?.();
      return process.memoryUsage().heapUsed / 2 ** 20;
    };
    const half = Math.floor(REQUESTS / 2);
    for (let index = 0; index < half; index += 1) await ask(index);
    const before = heap();
    for (let index = half; index < REQUESTS; index += 1) await ask(index);
    // Half of the requests have filled what is kept: the other half replaces it.
    const grown = half > limits.plans * 2 ? heap() - before : 0;
    expect(grown).toBeLessThan(32);
    const held =
      database.db.dialect === 'sqlite' ? [] : await database.db.query<{ name: string }>('select name from pg_prepared_statements');
    expect(held.length).toBeLessThanOrEqual(1_500);
  });
});
