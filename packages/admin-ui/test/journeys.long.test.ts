import { readFile } from 'node:fs/promises';
import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { insert } from '../../kit/src/db/index.ts';
import { AdminBrowser, row } from './admin-browser.ts';
import { findings } from './axe.ts';
import { fill, OPENED, receivers } from './shop/fill.ts';
import { customers, orders, ordersModule } from './shop/orders.ts';
import { Shop, STAFF } from './shop/shop.ts';

const BUSY_MS = 300_000;
const PHONE = { viewport: { width: 390, height: 800 }, hasTouch: true, isMobile: true } as const;

let shop: Shop;
let admin: AdminBrowser;
let page: Page;
let grace: string;

beforeAll(async () => {
  shop = await Shop.open({ now: OPENED, transport: receivers(() => shop), modules: [ordersModule()] });
  await fill(shop);
  grace = (await insert(shop.db, customers, { name: 'Grace Hopper' })).id;
  for (const reference of ['JN-1', 'JN-2']) await insert(shop.db, orders, { reference, quantity: 2, customer_id: grace });
  admin = await AdminBrowser.open(shop);
}, BUSY_MS);
afterAll(async () => {
  await admin.close();
  await shop[Symbol.asyncDispose]();
});
afterEach(async () => {
  await page.context().close();
  admin.expectQuiet();
});

const stored = async (reference: string) =>
  (await shop.db.query<{ quantity: number }>('select quantity from orders where reference = $1', [reference]))[0]?.quantity;

test('a link with a filter that is wrong says which one, leaves it out and shows the rest', { timeout: BUSY_MS }, async () => {
  page = await admin.at('#/orders?filter.status=opne&filter.colour=red&search=JN');
  const note = page.getByRole('note').filter({ hasText: 'The filter "Status: opne" is ignored.' });
  await note.getByText('The filter "colour: red" is ignored. This list has no such filter.').waitFor();
  await row(page, 'JN-1').waitFor();
  await expect.poll(() => page.evaluate('location.hash')).toBe('#/orders?search=JN');
  expect(await findings(page)).toEqual([]);
});

test('the keyboard says what it does, and lets go', { timeout: BUSY_MS }, async () => {
  page = await admin.at('#/orders');
  await page.keyboard.press('?');
  const sheet = page.getByRole('dialog', { name: 'Keyboard shortcuts' });
  await sheet.getByText('Edit the row in the list').waitFor();
  expect(await findings(page)).toEqual([]);
  await page.keyboard.press('Escape');
  await expect.poll(() => sheet.count()).toBe(0);
  // A question mark that is typed is a question mark.
  const search = page.getByRole('search').getByLabel('Search');
  await search.press('?');
  await expect.poll(() => search.inputValue()).toBe('?');
  expect(await sheet.count()).toBe(0);
  await search.fill('');
});

test('of what opens over a page there is one: the palette takes the place of the sheet and of menus, and waits for questions', async () => {
  page = await admin.at('#/orders');
  const palette = page.getByLabel('Search screens, records and actions');
  await page.keyboard.press('?');
  await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).waitFor();
  await page.keyboard.press('Control+k');
  await palette.waitFor();
  await expect.poll(() => page.getByRole('dialog').count()).toBe(1);
  await page.keyboard.press('Escape');
  await expect.poll(() => page.getByRole('dialog').count()).toBe(0);
  for (const opens of [page.getByRole('button', { name: STAFF }), page.getByRole('button', { name: 'Add filter' })]) {
    await opens.click();
    await page.locator('[role=menu], [role=dialog]').waitFor();
    await page.keyboard.press('Control+k');
    await palette.waitFor();
    await expect.poll(() => page.locator('[role=menu], [role=dialog]').count()).toBe(1);
    await page.keyboard.press('Escape');
    await expect.poll(() => page.locator('[role=menu], [role=dialog]').count()).toBe(0);
  }
  await page.getByRole('checkbox', { name: 'Select JN-1' }).check();
  await page.getByRole('button', { name: 'Delete selected' }).click();
  const question = page.getByRole('dialog').getByRole('button', { name: 'Cancel' });
  await question.waitFor();
  await page.keyboard.press('Control+k');
  await page.keyboard.press('/');
  await question.click();
  await expect.poll(() => page.getByRole('dialog').count()).toBe(0);
  expect(await palette.count()).toBe(0);
});

test(
  'a change is one entry of the timeline, in the words of the form; on a phone before stands above after',
  { timeout: BUSY_MS },
  async () => {
    page = await admin.at('#/orders?search=JN-1');
    await page.getByRole('link', { name: 'JN-1', exact: true }).click();
    await page.getByRole('link', { name: 'Edit' }).click();
    await page.getByLabel('Quantity').fill('7');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('heading', { name: 'JN-1', level: 1, exact: true }).waitFor();
    const changes = page.getByRole('region', { name: /^Changes: / });
    await expect.poll(() => changes.count()).toBe(1);
    await expect.poll(() => changes.getByRole('rowheader').allInnerTexts()).toEqual(['Quantity']);
    const phone = await admin.at(new URL(page.url()).hash, PHONE);
    const cells = phone.getByRole('region', { name: /^Changes: / }).locator('td');
    const [before, after] = [await cells.nth(0).boundingBox(), await cells.nth(1).boundingBox()];
    expect(after?.y).toBeGreaterThan(before?.y ?? Infinity);
    expect(await phone.evaluate('document.documentElement.scrollWidth <= document.documentElement.clientWidth')).toBe(true);
    expect(await findings(phone)).toEqual([]);
    await phone.context().close();
  },
);

test('the orders of a customer are edited on the page of the customer', { timeout: BUSY_MS }, async () => {
  page = await admin.at(`#/customers/${grace}`);
  await page.getByRole('button', { name: 'Edit Quantity of JN-2' }).click();
  const input = page.getByRole('dialog', { name: 'Edit JN-2' }).getByLabel('Quantity');
  await expect.poll(() => input.evaluate((each) => each === each.ownerDocument.activeElement)).toBe(true);
  await page.keyboard.type('9');
  await page.keyboard.press('Enter');
  await expect.poll(() => stored('JN-2')).toBe(9);
  await page.getByRole('cell', { name: /^9/ }).waitFor();
  expect(await findings(page)).toEqual([]);
});

test('the numbers of the overview are a file, and its paper has neither buttons nor navigation', { timeout: BUSY_MS }, async () => {
  page = await admin.at('#/');
  const downloading = page.waitForEvent('download');
  await page.getByRole('link', { name: 'Download the numbers' }).click();
  const download = await downloading;
  expect(download.suggestedFilename()).toBe('overview.csv');
  const [header, ...lines] = (await readFile(await download.path(), 'utf8')).trimEnd().split('\r\n');
  expect(header).toBe('part,chart,unit,series,from,value');
  expect(lines.length).toBeGreaterThan(20);
  expect(await findings(page)).toEqual([]);
  await page.emulateMedia({ colorScheme: 'dark' });
  await page.locator('html[data-mantine-color-scheme=dark]').waitFor();
  await page.emulateMedia({ media: 'print' });
  await expect.poll(() => page.getByRole('navigation').filter({ visible: true }).count()).toBe(0);
  expect(await page.getByRole('button').filter({ visible: true }).count()).toBe(0);
  // Ink for paper, also from a dark screen.
  const colours = (await page.evaluate(
    '[document.body, document.querySelector("h1")].map((each, index) => getComputedStyle(each)[index === 0 ? "backgroundColor" : "color"])',
  )) as string[];
  expect(colours[0]).toBe('rgb(255, 255, 255)');
  expect(Math.max(...(colours[1]?.match(/\d+/g) ?? ['255']).slice(0, 3).map(Number))).toBeLessThan(90);
});
