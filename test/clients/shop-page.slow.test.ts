import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { launchChromium } from '../provision/chromium.ts';
import { freePort } from '../provision/free-port.ts';
import { type OrdersProcess, startOrders } from './orders-process.ts';

const folder = mkdtempSync(join(tmpdir(), 'kit-shop-'));
const FIVE_MINUTES = 300_000;
const PASSWORD = 'correct horse battery staple';
let orders: OrdersProcess;
let browser: Browser;
let page: Page;
const failures: string[] = [];

beforeAll(async () => {
  [orders, browser] = await Promise.all([startOrders(join(folder, 'data'), await freePort()), launchChromium()]);
  page = await browser.newPage();
  page.on('pageerror', (error) => failures.push(error.message));
  page.on('console', (message) => message.text().includes('Content Security Policy') && failures.push(message.text()));
  await page.goto(`${orders.url}/shop`);
}, FIVE_MINUTES);
afterAll(async () => {
  await browser?.close();
  await orders?.kill();
  rmSync(folder, { recursive: true, force: true });
});

/** Runs lines in the page, with a client that has the session of the page. */
const inPage = (lines: string): Promise<unknown> =>
  page.evaluate(`(async () => {
    const { createClient } = await import('/shop/api.js');
    const client = createClient({ session: true });
    await client.account.me();
    ${lines}
  })()`);
const notice = () => page.locator('#notice');
const rows = () => page.locator('#orders tr');

test('a customer logs in; a wrong password is explained', { timeout: FIVE_MINUTES }, async () => {
  await page.getByLabel('Username or email').fill('ann');
  await page.getByLabel('Password').fill('wrong');
  await page.getByRole('button', { name: 'Log in' }).click();
  await notice().getByText('The user name or the password is wrong.').waitFor();
  await page.getByLabel('Password').fill(PASSWORD);
  await page.getByRole('button', { name: 'Log in' }).click();
  await page.locator('#username').getByText('ann').waitFor();
});

test('orders are placed once each, and listed with filters, page by page', { timeout: FIVE_MINUTES }, async () => {
  for (const [item, quantity] of [['lamp', '2'], ['<b>chair</b>', '1']] as const) {
    await page.getByLabel('Item').fill(item);
    await page.getByLabel('Quantity').fill(quantity);
    await page.getByRole('button', { name: 'Place the order' }).click();
    await notice().getByText(`${item} was ordered for`).waitFor();
  }
  // The text of the API is text.
  await expect.poll(() => rows().nth(0).locator('td').first().textContent()).toBe('<b>chair</b>');
  await expect.poll(() => rows().count()).toBe(2);
  await page.getByLabel('Search').fill('lamp');
  await page.getByRole('button', { name: 'Show' }).click();
  await expect.poll(() => rows().count()).toBe(1);
  await page.getByLabel('Status').selectOption('paid');
  await page.getByRole('button', { name: 'Show' }).click();
  await expect.poll(() => rows().count()).toBe(0);
  await page.getByLabel('Status').selectOption('');
  await page.getByLabel('Search').fill('');
  await page.getByRole('button', { name: 'Show' }).click();
  await expect.poll(() => rows().count()).toBe(2);
  await inPage("for (let count = 0; count < 10; count += 1) await client.orders.create({ body: { item: 'shelf ' + count, quantity: 1 } });");
  await page.getByRole('button', { name: 'Show' }).click();
  await expect.poll(() => rows().count()).toBe(10);
  await page.getByRole('button', { name: 'More' }).click();
  await expect.poll(() => rows().count()).toBe(12);
}); // prettier-ignore

test('an invoice is uploaded with progress and attached; a file that is not accepted is explained', { timeout: FIVE_MINUTES }, async () => {
  // Every value that a progress bar gets.
  await page.evaluate(`globalThis.progress = [];
    Object.defineProperty(HTMLProgressElement.prototype, 'value', { set: (value) => void progress.push(value), configurable: true });`);
  const input = page.getByLabel('Invoice of shelf 9');
  await input.setInputFiles({ name: 'page.html', mimeType: 'text/html', buffer: Buffer.from('<p>') });
  await notice().getByText('Files of this type are not accepted here.').waitFor();
  const buffer = Buffer.concat([Buffer.from('%PDF-1.4 '), Buffer.alloc(3_000_000, 120)]);
  await page.getByLabel('Invoice of shelf 9').setInputFiles({ name: 'invoice.pdf', mimeType: 'application/pdf', buffer });
  await notice().getByText('invoice.pdf was attached to shelf 9.').waitFor();
  await expect.poll(() => rows().nth(0).locator('td').last().textContent()).toBe('invoice.pdf');
  const progress = await page.evaluate<number[]>('progress');
  expect(progress.at(-1)).toBe(buffer.length);
});

test('orders that a program changes are shown and marked, without a click', { timeout: FIVE_MINUTES }, async () => {
  const headers = { 'x-api-key': orders.key, 'content-type': 'application/json' };
  const placed = await fetch(`${orders.url}/v1/orders`, { method: 'POST', headers, body: JSON.stringify({ item: 'mirror', quantity: 1 }) });
  const { id } = (await placed.json()) as { id: string };
  await page.locator('#orders tr.changed').filter({ hasText: 'mirror' }).waitFor();
  await fetch(`${orders.url}/v1/orders/${id}/cancel`, { method: 'POST', headers });
  await page.locator('#orders tr.changed').filter({ hasText: 'cancelled' }).waitFor();
});

test(
  'the client of the page follows a stream; the session stays after a reload and ends with a logout',
  { timeout: FIVE_MINUTES },
  async () => {
    // The export is for staff with a second factor, or a key; its owner may follow it.
    const started = await fetch(`${orders.url}/v1/orders/export`, { method: 'POST', headers: { 'x-api-key': orders.key } });
    const { id } = (await started.json()) as { id: string };
    const last = await inPage(`let status = '';
      for await (const { data } of client.jobs.events({ id: '${id}' })) status = data.status;
      return status;`);
    expect(last).toBe('succeeded');
    await page.reload();
    await page.locator('#username').getByText('ann').waitFor();
    await page.getByRole('button', { name: 'Log out' }).click();
    await page.getByRole('heading', { name: 'Log in', exact: true }).waitFor();
    await page.reload();
    await page.getByRole('heading', { name: 'Log in', exact: true }).waitFor();
    expect(failures).toEqual([]);
  },
);
