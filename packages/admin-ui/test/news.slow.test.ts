import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { crudOf } from '../../kit/src/crud/index.ts';
import { insert } from '../../kit/src/db/index.ts';
import { AdminBrowser, row } from './admin-browser.ts';
import { findings } from './axe.ts';
import { NOW } from './shop/fill.ts';
import { customerResource, customers, orderResource, ordersModule } from './shop/orders.ts';
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

const caller = () => {
  const user = { ...ada, email: null, is_active: true, is_staff: true, is_superuser: false };
  return { user, audience: 'staff' } as const;
};
/** What ada does meanwhile, elsewhere. */
const adaWrites = () => crudOf(shop.app, orderResource).as(caller()).write();
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
    .filter({ hasText: /Changed by ada just now: Quantity\. Your input is kept/ })
    .waitFor();
  expect(await page.getByLabel('Remark').inputValue()).toBe('Ring twice');
  expect(await findings(page)).toEqual([]);
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('dialog').getByText('11').first().waitFor();
});

test('a record whose readings are recorded is read when somebody asks for it, not when it changes or its tab is looked at again', async () => {
  const { id } = await insert(shop.db, customers, { name: 'Lovelace' });
  const readings = async () =>
    (await shop.db.query("select seq from audit_entries where action like '%.read' and target_id = $1", [id])).length;
  page = await admin.at(`#/customers/${id}`);
  await page.getByRole('heading', { name: 'Lovelace', level: 1 }).waitFor();
  await expect.poll(readings).toBe(1);
  const note = page.getByRole('note').filter({ hasText: 'This record may have changed since you read it.' });
  const rename = (name: string) => crudOf(shop.app, customerResource).as(caller()).write().update(id, { name });
  // The stream may begin after the first of them.
  await expect
    .poll(async () => {
      await rename('Byron');
      await rename('King');
      return note.count();
    })
    .toBe(1);
  expect(await findings(page)).toEqual([]);
  await page.evaluate("window.dispatchEvent(new Event('visibilitychange'))");
  await page.getByRole('heading', { name: 'Lovelace', level: 1 }).waitFor();
  expect(await readings()).toBe(1);
  await note.getByRole('button', { name: 'Load again' }).click();
  await page.getByRole('heading', { name: 'King', level: 1 }).waitFor();
  await note.waitFor({ state: 'detached' });
  expect(await readings()).toBe(2);
  await page.getByRole('link', { name: 'Edit' }).click();
  await page.getByRole('heading', { name: 'Edit King', level: 1 }).waitFor();
  await expect.poll(readings).toBe(3);
  const warning = page.getByRole('note').filter({ hasText: 'may have changed since you opened the form' });
  await expect
    .poll(async () => {
      await rename('Noel');
      await rename('King');
      return warning.count();
    })
    .toBe(1);
  expect(await readings()).toBe(3);
});
