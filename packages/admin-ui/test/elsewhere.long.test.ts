import { createServer, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { createApiKey } from '../../kit/src/contrib/apikeys/index.ts';
import { createPostgresDatabase, type DatabasePlace } from '../../kit/src/testing/test-database.ts';
import { AdminBrowser, go, logIn, row, settled } from './admin-browser.ts';
import { NOW } from './shop/fill.ts';
import { Shop } from './shop/shop.ts';

let place: DatabasePlace;
let shop: Shop;
let admin: AdminBrowser;
let proxy: Server;

beforeAll(async () => {
  place = await createPostgresDatabase(inject('postgresUrl'));
  shop = await Shop.open({ now: NOW, database: place.url, prefix: '/ops/console' });
  const user = await shop.newUser({ username: 'ada' });
  for (const name of ['First', 'Second']) await createApiKey(shop.db, { user, name, scopes: ['orders:read'] });
  admin = await AdminBrowser.open(shop);
  proxy = createServer((incoming, outgoing) => {
    // One address with a prefix more, and one of another name.
    const path = (incoming.url ?? '').replace(/^\/behind\/proxy/, '').replace(/^\/staff-room/, '/ops/console');
    const target = new URL(path, shop.address);
    incoming.pipe(
      request(target, { method: incoming.method, headers: incoming.headers }, (answer) => {
        outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(outgoing);
      }),
    );
  });
  await new Promise<void>((done) => proxy.listen(0, '127.0.0.1', done));
});
afterAll(async () => {
  proxy.close();
  await admin.close();
  await shop[Symbol.asyncDispose]();
  await place.remove();
});

test('on PostgreSQL and below another prefix, an operator looks, revokes and reads who did it', async () => {
  const page = await admin.at('#/api-keys');
  await page.getByRole('checkbox', { name: 'Select First' }).check();
  await page.getByRole('button', { name: 'Revoke selected keys' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke', exact: true }).click();
  await row(page, 'First').getByText('revoked').waitFor();
  await go(page, shop, '#/audit-log?filter.action=api_key.revoked');
  await page.locator('tbody').getByRole('link', { name: 'olivia', exact: true }).waitFor();
  for (const name of ['', 'users', 'endpoints', 'deliveries', 'events', 'products']) {
    await go(page, shop, `#/${name}`);
    await settled(page);
    expect(
      await page
        .getByRole('alert')
        .filter({ hasText: /error|refused|not (?:found|allowed|possible|reachable)/i })
        .count(),
    ).toBe(0);
  }
  await page.context().close();
  admin.expectQuiet();
});

test.each([
  ['with a prefix more, without the slash', '/behind/proxy/ops/console', '/behind/proxy/ops/console/'],
  ['by another name', '/staff-room/', '/staff-room/'],
])('behind a proxy that shows it %s, it loads, logs in and works', async (_how, typed, shown) => {
  const origin = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
  const page = await admin.page({ anonymous: true });
  await page.goto(`${origin}${typed}#/api-keys`);
  await logIn(page);
  await row(page, 'Second').waitFor();
  expect(page.url()).toBe(`${origin}${shown}#/api-keys`);
  await page.getByRole('link', { name: 'Second' }).click();
  await page.getByRole('heading', { name: 'Second', level: 1, exact: true }).waitFor();
  await page.context().close();
  // Every address it asked for is below the one it is shown at.
  const known = [`asked ${origin}${shown}`, `asked ${origin}${typed}`];
  expect(admin.complaints.splice(0).filter((complaint) => !known.some((start) => complaint.startsWith(start)))).toEqual([]);
});
