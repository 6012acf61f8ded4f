import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startShop, type ShopApp } from '../../test/crud/shop.ts';
import { scaled } from '../../../../test/provision/scale.ts';
import { describeDatabases } from '../testing/databases.ts';

/** Each is a process that starts an application. */
const PROCESSES = scaled(2, 5);
const WRITERS = 10;
const script = join(import.meta.dirname, '../../test/crud/patch-with-tag.ts');

describeDatabases('writers in several processes', (database) => {
  let shop: ShopApp;
  beforeAll(async () => {
    shop = await startShop({ database: database.db });
  });
  afterAll(() => shop.close());

  test('53: of ten PATCHes with one tag, sent by several processes, exactly one succeeds', { timeout: 600_000 }, async () => {
    const { body, headers } = await shop.call('ann', 'POST', 'orders', { item: 'one', quantity: 1, total: '1.00' });
    const children = Array.from({ length: PROCESSES }, () =>
      spawn(
        process.execPath,
        ['--conditions=source', script, database.url, body.id, String(headers['etag']), String(WRITERS / PROCESSES)],
        {
          stdio: ['pipe', 'pipe', 'inherit'],
        },
      ),
    );
    const outputs = children.map(() => '');
    for (const [index, child] of children.entries()) child.stdout.on('data', (chunk: Buffer) => (outputs[index] += chunk.toString()));
    await Promise.all(children.map((child) => once(child.stdout, 'data')));
    for (const child of children) child.stdin.write('go\n');
    const codes = await Promise.all(children.map(async (child) => (await once(child, 'close'))[0] as number));
    expect(codes).toEqual(children.map(() => 0));
    const statuses = outputs.flatMap((text) => text.replace('ready\n', '').trim().split(',').map(Number));
    expect(statuses.sort((a, b) => a - b)).toEqual([200, ...Array.from({ length: WRITERS - 1 }, () => 412)]);
    expect((await shop.call('ann', 'GET', `orders/${body.id}`)).body.version).toBe(2);
  });
});
