import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { createInterface } from 'node:readline';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openDatabase, type Database } from '../../kit/src/db/index.ts';
import { launchChromium } from '../../../test/provision/chromium.ts';
import { logIn } from './admin-browser.ts';

// The clock of the page is turned forward, so that nothing here waits: what the page does after 5, 15 or 30 seconds of silence is seen at once.
let folder: string;
let server: ChildProcess;
let address: string;
let browser: Browser;
let page: Page;
let db: Database;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'kit-silent-'));
  const url = `sqlite:${join(folder, 'shop.db')}`;
  const program = join(import.meta.dirname, 'shop/serve.ts');
  server = spawn(process.execPath, ['--conditions=source', program, url], { stdio: ['ignore', 'pipe', 'inherit'] });
  [address] = (await once(createInterface(server.stdout as NodeJS.ReadableStream), 'line')) as [string];
  db = await openDatabase(url);
  browser = await launchChromium();
  page = await (await browser.newContext({ reducedMotion: 'reduce' })).newPage();
  await page.clock.install();
  await page.goto(address);
  await logIn(page);
  await page.getByRole('heading', { name: 'Bean & Leaf', level: 1, exact: true }).waitFor();
});
afterAll(async () => {
  server?.kill('SIGCONT');
  server?.kill('SIGKILL');
  await browser?.close();
  await db?.close();
  rmSync(folder, { recursive: true, force: true });
});

const bar = () => page.getByRole('region', { name: 'Site health' });
const tone = () => bar().getAttribute('data-tone');

test('a server that hangs turns the bar amber, then red and the page grey; its answer turns it green', async () => {
  await expect.poll(tone).toBe('good');
  await expect.poll(() => bar().textContent()).toContain('Database');
  await bar().getByText('Data of this page:').waitFor();
  server.kill('SIGSTOP');
  await page.clock.fastForward(11_000);
  await page.clock.fastForward(6_000);
  await expect.poll(tone).toBe('warning');
  await bar().getByText('The server has not answered for').waitFor();
  await page.clock.fastForward(20_000);
  await expect.poll(tone).toBe('bad');
  await bar().getByText('Nothing on this page can be trusted to be current.').waitFor();
  await expect.poll(() => page.locator('[data-stale]').count()).toBe(1);
  server.kill('SIGCONT');
  await page.clock.fastForward(6_000);
  await expect.poll(tone).toBe('good');
  await expect.poll(() => page.locator('[data-stale]').count()).toBe(0);
});

test('a device without network is said at once, and the bar turns green as soon as it is back', async () => {
  await page.context().setOffline(true);
  await bar().getByText('You are offline: this device has no network.').waitFor();
  expect(await tone()).toBe('warning');
  await page.context().setOffline(false);
  await expect.poll(tone).toBe('good');
});

test('a save without an answer says that it may have been saved, is sent again, and is done once', async () => {
  await page.goto(`${address}#/products/-/new`);
  await page.getByLabel('Name').fill('Once only');
  await page.getByLabel('SKU').fill('once');
  await page.getByLabel('Price').fill('1.00');
  await page.getByLabel('Stock').fill('1');
  const sent: (string | undefined)[] = [];
  page.on('request', (request) => {
    if (request.method() === 'POST' && request.url().endsWith('/resources/products')) sent.push(request.headers()['idempotency-key']);
  });
  server.kill('SIGSTOP');
  await page.getByRole('button', { name: 'Create product' }).click();
  await expect.poll(() => Promise.resolve(sent.length)).toBe(1);
  await page.clock.fastForward(6_000);
  await page.getByText('No answer yet; it may have been saved.').waitFor();
  await expect.poll(() => page.getByLabel('Name').isDisabled()).toBe(true);
  expect(await page.getByRole('button', { name: 'Stop waiting' }).isEnabled()).toBe(true);
  // The limit of the first attempt, and the pause before the next.
  await page.clock.fastForward(10_000);
  await page.clock.fastForward(3_000);
  await expect.poll(() => Promise.resolve(sent.length)).toBe(2);
  server.kill('SIGCONT');
  // The first attempt may still be at work: then the page asks again until it is done.
  await expect
    .poll(async () => {
      await page.clock.fastForward(5_000);
      return page.getByRole('heading', { level: 1 }).textContent();
    })
    .toMatch(/^(?:Once only|Products)$/);
  expect(new Set(sent).size).toBe(1);
  expect(sent[0]).toMatch(/^[0-9a-f]{32}$/);
  expect(await db.query("select name from products where sku = 'once'")).toEqual([{ name: 'Once only' }]);
});

test('a list without a stream of its changes looks for them, and offers them', async () => {
  await page.goto(`${address}#/products`);
  await page.getByRole('link', { name: 'Once only', exact: true }).waitFor();
  await db.query("update products set name = 'Renamed' where name = 'Once only'");
  const offer = page.getByRole('button', { name: '1 changed: show' });
  await expect
    .poll(async () => {
      await page.clock.fastForward(20_000);
      return offer.count();
    })
    .toBe(1);
  await page.getByRole('link', { name: 'Once only', exact: true }).waitFor();
  await offer.click();
  await page.getByRole('link', { name: 'Renamed', exact: true }).waitFor();
});

test('who stops waiting can send the same form again, and it is done once', async () => {
  await page.goto(`${address}#/customers/-/new`);
  await page.getByLabel('Name').fill('Twice pressed');
  server.kill('SIGSTOP');
  await page.getByRole('button', { name: 'Create customer' }).click();
  await page.getByRole('button', { name: 'Stop waiting' }).click();
  await page.getByRole('alert').filter({ hasText: 'It may have been saved' }).waitFor();
  // The outcome is not known: another form would be another customer.
  await expect.poll(() => page.getByLabel('Name').isDisabled()).toBe(true);
  server.kill('SIGCONT');
  await page.getByRole('button', { name: 'Try again' }).click();
  await expect
    .poll(async () => {
      await page.clock.fastForward(5_000);
      return page.getByRole('heading', { level: 1 }).textContent();
    })
    .toMatch(/^(?:Twice pressed|Customers)$/);
  expect(await db.query("select name from customers where name = 'Twice pressed'")).toHaveLength(1);
});
