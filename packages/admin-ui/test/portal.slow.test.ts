import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { requestLogs } from '../../kit/src/contrib/requests/log.ts';
import { deliverDue, publish } from '../../kit/src/contrib/webhooks/index.ts';
import { PortalShop } from './shop/portal-shop.ts';

/** A customer's own server, which can break. */
let receiver: Server;
let breaks = false;
const received: string[] = [];
let portal: PortalShop;

beforeAll(async () => {
  receiver = createServer((request, response) => {
    if (!breaks) received.push(String(request.headers['webhook-id']));
    request.resume().on('end', () => response.writeHead(breaks ? 500 : 204).end());
  });
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
  portal = await PortalShop.open('Bean & Leaf for developers');
});
afterAll(async () => {
  await portal[Symbol.asyncDispose]();
  receiver.close();
});

test("a customer's developer: a key, its first request, an endpoint, an event that fails, the repair, the usage", async () => {
  const { page, shop, browser } = portal;
  const stored = () => page.getByRole('button', { name: 'I have stored it' }).click();
  const shown = (label: string) => page.getByRole('dialog').getByRole('textbox', { name: label });

  await portal.go('API keys');
  await page.getByRole('link', { name: 'New API key' }).click();
  await page.locator('#field-name').fill('CI');
  await page.locator('#field-scopes').fill('requests:read');
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'Create API key' }).click();
  const key = await shown('API key').inputValue();
  await stored();
  expect((await fetch(new URL('/v1/requests', shop.address), { headers: { 'x-api-key': key } })).status).toBe(200);
  await requestLogs.of(shop.db).flush();
  await portal.go('Requests');
  await page.getByRole('cell', { name: '/v1/requests', exact: true }).first().waitFor();

  await portal.go('Endpoints');
  await page.getByRole('link', { name: 'New endpoint' }).click();
  await page.locator('#field-url').fill(`http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hooks`);
  await page.locator('#field-events').fill('*');
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'Create endpoint' }).click();
  await shown('Signing secret').waitFor();
  await stored();

  breaks = true;
  await shop.db.transaction((tx) => publish(tx, 'order.paid', { id: 1 }, { owner: portal.customerId }));
  await deliverDue(shop.db);
  expect(received).toEqual([]);
  await portal.go('Deliveries');
  await page.getByRole('link', { name: 'order.paid' }).click();
  breaks = false;
  await page.getByRole('button', { name: 'Send again' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Send again' }).click();
  await page.getByText('The delivery is sent again.').first().waitFor();
  await deliverDue(shop.db);
  expect(received).toHaveLength(1);
  await portal.go('Deliveries');
  await page.getByRole('cell').getByText('succeeded').waitFor();

  await portal.go('Usage');
  await page.getByRole('cell', { name: '/v1/requests', exact: true }).first().waitFor();
  const others = browser.answers.filter(({ url, body }) => body.includes(key) && !url.endsWith('/api/resources/api-keys'));
  expect(others).toEqual([]);
  browser.expectQuiet();
});
