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

test(
  'the palette offers what can be done with the record, also when it was opened before the record was there',
  { timeout: BUSY_MS },
  async () => {
    page = await admin.at('#/orders?search=JN-2');
    let answer = (): void => {};
    const held = new Promise<void>((resolve) => (answer = resolve));
    await page.route(/\/resources\/orders\/[0-9a-f-]{36}(?:\?|$)/, async (route) => {
      await held;
      await route.continue();
    });
    await page.getByRole('link', { name: 'JN-2', exact: true }).click();
    await page.getByRole('navigation', { name: 'Where you are' }).waitFor();
    await page.keyboard.press('Control+k');
    const options = page.getByRole('dialog').getByRole('option');
    await options.first().waitFor();
    expect(await options.filter({ hasText: 'JN-2' }).count()).toBe(0);
    answer();
    await expect.poll(() => options.filter({ hasText: 'JN-2' }).allInnerTexts()).toHaveLength(3);
    await page.keyboard.type('appr');
    await page.keyboard.press('Enter');
    await page.getByRole('dialog', { name: 'Approve: JN-2' }).getByRole('button', { name: 'Cancel' }).click();
  },
);

test('a link to nowhere leads on, and one with a name for an id says which filter is wrong', { timeout: BUSY_MS }, async () => {
  page = await admin.at('#/nowhere');
  await page.getByRole('heading', { name: 'Page not found', level: 1 }).waitFor();
  await page.getByRole('main').getByRole('link', { name: 'Go to the overview' }).click();
  await page.getByRole('heading', { name: 'Bean & Leaf', level: 1 }).waitFor();
  await page.goto(`${shop.address}#/orders?filter.customer_id=Grace`);
  await page.getByText('The filter "Customer: Grace" is ignored. Use the id of a record.').waitFor();
  await row(page, 'JN-1').waitFor();
  await expect.poll(() => page.evaluate('location.hash')).toBe('#/orders');
});

test('a file without rows is not imported, and the page says what it needs', { timeout: BUSY_MS }, async () => {
  page = await admin.at('#/orders/-/import');
  const choose = (text: string) =>
    page.locator('input[type=file]').setInputFiles({ name: 'orders.csv', mimeType: 'text/csv', buffer: Buffer.from(text) });
  await choose('');
  await page.getByText('The file is empty. Choose a file with a header and at least one row.').waitFor();
  await choose('Reference,Quantity,Customer\n');
  await page.getByText('The file has no rows. Choose a file with a header and at least one row.').waitFor();
  expect(await page.getByRole('button', { name: 'Import', exact: true }).isDisabled()).toBe(true);
  expect(await findings(page)).toEqual([]);
});

test('what is wrong with a field is a sentence below it, and nothing covers it', { timeout: BUSY_MS }, async () => {
  page = await admin.at('#/orders/-/new');
  await page.getByLabel('Reference').fill('JN-3');
  await page.getByLabel('Quantity').fill('0');
  await page.getByRole('button', { name: 'Create order' }).click();
  await page.getByText('Required', { exact: true }).waitFor();
  // The focus is there, and the records that could be chosen do not hide the sentence.
  await expect.poll(() => page.evaluate('document.activeElement?.getAttribute("role")')).toBe('combobox');
  expect(await page.getByRole('option', { name: 'Grace Hopper' }).count()).toBe(0);
  await page.keyboard.type('Grace');
  await page.getByRole('option', { name: 'Grace Hopper' }).click();
  await page.getByRole('button', { name: 'Create order' }).click();
  await page.getByText('Must be at least 1', { exact: true }).waitFor();
  await page.getByLabel('Quantity').fill('1');
  await page.getByRole('button', { name: 'Create order' }).click();
  await page.getByRole('heading', { name: 'JN-3', level: 1, exact: true }).waitFor();
});

test('an edit of a selection asks for a value that the field needs', { timeout: BUSY_MS }, async () => {
  page = await admin.at('#/orders?search=JN-1');
  await page.getByRole('checkbox', { name: 'Select JN-1' }).check();
  await page.getByRole('button', { name: 'Edit selected' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Field to change').selectOption('status');
  await dialog.getByText('Enter status.').waitFor();
  await dialog.getByLabel('Status').selectOption('paid');
  await dialog.getByText('Sets status to "paid" on 1 order.').waitFor();
  await dialog.getByRole('button', { name: 'Cancel' }).click();
});
