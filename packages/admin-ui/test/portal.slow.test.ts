import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { requestLogs } from '../../kit/src/contrib/requests/log/log.ts';
import { deliverDue, publish } from '../../kit/src/contrib/webhooks/index.ts';
import { PortalShop } from './shop/portal-shop.ts';

/** A customer's own server, which can break. */
let receiver: Server;
let breaks = false;
const received: Received[] = [];
let portal: PortalShop;

interface Received {
  readonly headers: string;
  readonly body: string;
}

beforeAll(async () => {
  receiver = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const headers = Object.entries(request.headers).map(([name, value]) => `${name}: ${String(value)}`);
      if (!breaks) received.push({ headers: headers.join('\n'), body: Buffer.concat(chunks).toString() });
      response.writeHead(breaks ? 500 : 204).end();
    });
  });
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
  portal = await PortalShop.open({ title: 'Bean & Leaf for developers' });
});
afterAll(async () => {
  await portal[Symbol.asyncDispose]();
  receiver.close();
});

test("a customer's developer: a key, its first request, an endpoint, an event that fails, the repair, the usage", async () => {
  const { page, shop, browser } = portal;
  const stored = () => page.getByRole('button', { name: 'I have stored it' }).click();
  const shown = (label: string) => page.getByRole('dialog').getByRole('textbox', { name: label });

  await page.getByRole('region', { name: 'First steps' }).getByText('0 of 4 done').waitFor();
  await page.getByRole('link', { name: 'Create an API key' }).click();
  await page.getByRole('heading', { name: 'New API key', level: 1 }).waitFor();
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
  const secret = await shown('Signing secret').inputValue();
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

  await portal.go('Overview');
  await page.getByRole('figure', { name: 'Requests' }).waitFor();
  expect(await page.getByText('First steps').count(), 'all of them are done').toBe(0);

  await portal.go('Event types');
  await page.getByRole('link', { name: 'order.paid' }).click();
  await page.getByText('An order was <b>paid</b>.').waitFor();
  await page.getByRole('button', { name: 'Send an example' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('combobox', { name: 'Endpoint' }).click();
  await page.getByRole('option').first().click();
  await dialog.getByRole('button', { name: 'Send an example' }).click();
  await page.getByRole('heading', { name: 'order.paid', level: 1 }).waitFor();
  await deliverDue(shop.db);
  await page.getByText('204 No Content').first().waitFor();
  const [, example] = received as [Received, Received];
  expect(JSON.parse(example.body)).toMatchObject({ type: 'order.paid', data: { id: 7 } });

  await portal.go('Signature check');
  await page.getByLabel('Headers').fill(example.headers);
  await page.getByLabel('Body').fill(example.body);
  await page.getByLabel('Signing secret', { exact: true }).fill(secret);
  await page.getByRole('button', { name: 'Check the signature' }).click();
  await page.getByText('The signature is right').waitFor();

  await portal.go('Usage');
  await page.getByRole('cell', { name: '/v1/requests', exact: true }).first().waitFor();
  const others = browser.answers.filter(({ url, body }) => body.includes(key) && !url.endsWith('/api/resources/api-keys'));
  expect(others).toEqual([]);
  browser.expectQuiet();
});
