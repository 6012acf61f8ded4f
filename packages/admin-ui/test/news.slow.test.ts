import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { crudOf } from '../../kit/src/crud/index.ts';
import { insert } from '../../kit/src/db/index.ts';
import { AdminBrowser, row } from './admin-browser.ts';
import { findings } from './axe.ts';
import { NOW } from './shop/fill.ts';
import { customers, orderResource, ordersModule } from './shop/orders.ts';
import { Shop } from './shop/shop.ts';

let shop: Shop;
let admin: AdminBrowser;
let page: Page;
let customer: string;
let ada: { readonly id: string; readonly username: string };

beforeAll(async () => {
  shop = await Shop.open({ now: NOW, modules: [ordersModule({ live: true })] });
  ada = await shop.newUser({ username: 'ada', is_staff: true });
  ({ id: customer } = await insert(shop.db, customers, { name: 'Acme' }));
  admin = await AdminBrowser.open(shop);
});
afterAll(async () => {
  await admin?.close();
  await shop?.[Symbol.asyncDispose]();
});
afterEach(async () => {
  await page.context().close();
  admin.expectQuiet();
});

/** What ada does meanwhile, elsewhere. */
function adaWrites() {
  const user = { ...ada, email: null, is_active: true, is_staff: true, is_superuser: false };
  return crudOf(shop.app, orderResource).as({ user, audience: 'staff' }).write();
}
const newOrder = async (reference: string): Promise<string> =>
  (await adaWrites().create({ reference, quantity: 1, customer_id: customer })).id;

test('a list shows changes where they are, marks them, and offers new records', async () => {
  const id = await newOrder('LN-1');
  page = await admin.at('#/orders');
  await row(page, 'LN-1').waitFor();
  await page.getByRole('switch', { name: 'Live' }).waitFor();
  await adaWrites().update(id, { quantity: 7 });
  const cell = page.locator('td[data-changed]').filter({ hasText: /^7$/ });
  await cell.waitFor();
  await page.getByRole('status').filter({ hasText: '1 order changed.' }).waitFor({ state: 'attached' });
  await newOrder('LN-2');
  const offer = page.getByRole('button', { name: '1 new: show' });
  await offer.waitFor();
  expect(await row(page, 'LN-2').count()).toBe(0);
  expect(await findings(page)).toEqual([]);
  await offer.click();
  await row(page, 'LN-2').waitFor();
  // Without it, what is being read stays; the page says what is different.
  await page.getByRole('switch', { name: 'Live' }).press('Space');
  await adaWrites().update(id, { quantity: 8 });
  await newOrder('LN-2b');
  const news = page.getByRole('button', { name: '1 changed, 1 new: show' });
  await news.waitFor();
  await row(page, 'LN-1').getByText('7', { exact: true }).waitFor();
  expect(await findings(page)).toEqual([]);
  await news.click();
  await row(page, 'LN-1').getByText('8', { exact: true }).waitFor();
  await row(page, 'LN-2b').waitFor();
  await expect.poll(() => news.count()).toBe(0);
});

test('the page of a record shows its changes, and the form says who changed what before it is saved', async () => {
  const id = await newOrder('LN-3');
  page = await admin.at(`#/orders/${id}`);
  await adaWrites().update(id, { quantity: 9 });
  await page.locator('[data-changed] dd').filter({ hasText: '9' }).first().waitFor();
  await page.getByRole('link', { name: 'Edit' }).click();
  await page.getByRole('heading', { name: 'Edit LN-3', level: 1 }).waitFor();
  await page.getByLabel('Remark').fill('Ring twice');
  await adaWrites().update(id, { quantity: 11 });
  await page
    .getByRole('note')
    .filter({ hasText: /Changed by ada just now: Quantity\. What you typed stays/ })
    .waitFor();
  expect(await page.getByLabel('Remark').inputValue()).toBe('Ring twice');
  expect(await findings(page)).toEqual([]);
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('dialog').getByText('11').first().waitFor();
});
