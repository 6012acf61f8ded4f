import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { modelResource } from '../../kit/src/admin/index.ts';
import type { Module } from '../../kit/src/app/index.ts';
import { resource, writableBy } from '../../kit/src/crud/index.ts';
import { createTable, insert, migration, model, openDatabase, t, type Database } from '../../kit/src/db/index.ts';
import { isSuperuser } from '../../kit/src/permissions/index.ts';
import { AdminBrowser, go, logIn } from './admin-browser.ts';
import { findings } from './axe.ts';
import { NOW } from './shop/fill.ts';
import { customers, orders, ordersModule } from './shop/orders.ts';
import { PASSWORD, Shop, STAFF } from './shop/shop.ts';

const voucherColumns = {
  id: t.uuidv7().pk(),
  code: t.text({ min: 1, max: 20 }),
  percent: t.int({ min: 1, max: 100 }).nullable(),
  kind: t.enum(['gift', 'refund']).dbDefault('gift'),
  is_stackable: t.bool().dbDefault(false),
  labels: t.array(t.text()).nullable(),
};
const customerColumn = { customer_id: t.ref('customers').nullable() };
const vouchers = model('vouchers', { ...voucherColumns, ...customerColumn });
const voucherResource = resource(vouchers, {
  unscoped: true,
  fields: {
    percent: writableBy(isSuperuser),
    kind: writableBy(isSuperuser),
    is_stackable: writableBy(isSuperuser),
    labels: writableBy(isSuperuser),
    customer_id: writableBy(isSuperuser),
  },
  admin: { rows: true },
});
/** A field of every kind of input that only superusers may write. */
const vouchersModule: Module = {
  name: 'vouchers',
  models: [vouchers],
  resources: [voucherResource],
  migrations: [migration('0001_initial', [createTable('vouchers', { ...voucherColumns, ...customerColumn })])],
  admin: { resources: [modelResource(voucherResource, { singular: 'Voucher', group: 'Shop' })] },
};
const CLOSED = { percent: 'Percent', kind: 'Kind', is_stackable: 'Stackable', labels: 'Labels', customer_id: 'Customer' };
const CLOSED_REASON = 'You cannot change this field. Only users who pass isSuperuser can: the resource voucher says so in writableBy().';

let folder: string;
let db: Database;
let shop: Shop;
let admin: AdminBrowser;
let page: Page;
let customer: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'kit-saving-'));
  db = await openDatabase(`sqlite:${join(folder, 'shop.db')}`, { waitMsMax: 500 });
  const roles = {
    of: ({ username }: { username: string }) => (username === 'reader' ? ('read_only' as const) : ('administrator' as const)),
  };
  shop = await Shop.open({ now: NOW, database: db, roles, modules: [ordersModule(), vouchersModule] });
  await shop.newUser({ username: 'ada', email: 'ada@acme.example', is_staff: true });
  await shop.newUser({ username: 'reader', is_staff: true });
  await shop.newUser({ username: 'root', is_staff: true, is_superuser: true });
  ({ id: customer } = await insert(shop.db, customers, { name: 'Acme' }));
  admin = await AdminBrowser.open(shop);
});
afterAll(async () => {
  await admin?.close();
  await shop?.[Symbol.asyncDispose]();
  await db?.close();
  rmSync(folder, { recursive: true, force: true });
});
afterEach(async () => {
  await page.context().close();
  admin.expectQuiet();
});

const newOrder = async (reference: string): Promise<string> =>
  (await insert(shop.db, orders, { reference, quantity: 1, customer_id: customer })).id;
const stored = async (id: string): Promise<object | undefined> =>
  (await shop.db.query<object>('select reference, quantity, status, remark from orders where id = $1', [id]))[0];

async function loggedInAs(login: string, hash: string): Promise<Page> {
  const other = await admin.page({ anonymous: true });
  await other.goto(`${shop.address}${hash}`);
  await logIn(other, login);
  await other.getByRole('heading', { level: 1 }).waitFor();
  return other;
}

const drafts = (): Promise<string[]> =>
  page.evaluate('Object.entries({ ...localStorage }).filter(([key]) => key.includes("draft")).map(([key, value]) => key + value)');

describe('a record that somebody else changed', () => {
  test('is merged field by field, with who changed what, and nothing is lost', async () => {
    const id = await newOrder('M-1');
    page = await admin.at(`#/orders/${id}/edit`);
    await page.getByLabel('Quantity').fill('9');
    await page.getByLabel('Remark').fill('mine');
    const other = await loggedInAs('ada', `#/orders/${id}/edit`);
    await other.getByLabel('Quantity').fill('5');
    await other.getByLabel('Reference').fill('M-1b');
    await other.getByRole('button', { name: 'Save' }).click();
    await other.getByRole('heading', { name: 'M-1b', level: 1, exact: true }).waitFor();
    await other.context().close();
    await page.getByRole('button', { name: 'Save' }).click();
    const dialog = page.getByRole('dialog', { name: 'This record has changed' });
    await dialog.waitFor();
    expect(await findings(page)).toEqual([]);
    const save = dialog.getByRole('button', { name: 'Save' });
    await expect.poll(() => save.isDisabled()).toBe(true);
    const quantity = dialog.getByRole('radiogroup', { name: 'Quantity' });
    await expect.poll(() => quantity.getByRole('radio').count()).toBe(2);
    await quantity.getByLabel('Take theirs: 5 (ada, just now)').waitFor();
    await quantity.getByLabel('Keep yours: 9').check();
    expect(await dialog.getByRole('radiogroup', { name: 'Reference' }).getByLabel('Take theirs: M-1b').isChecked()).toBe(true);
    await expect.poll(() => dialog.getByRole('radiogroup', { name: 'Remark' }).count()).toBe(0);
    await save.click();
    await page.getByRole('heading', { name: 'M-1b', level: 1, exact: true }).waitFor();
    await expect.poll(() => stored(id)).toEqual({ reference: 'M-1b', quantity: 9, status: 'open', remark: 'mine' });
    // And a value of before comes back from the timeline.
    await page.getByRole('button', { name: 'Restore the value of Quantity before' }).first().click();
    await page.getByRole('dialog', { name: 'Restore Quantity?' }).getByText('Restored: 5').waitFor();
    await page.getByRole('dialog').getByRole('button', { name: 'Restore' }).click();
    await expect.poll(() => stored(id)).toMatchObject({ quantity: 5 });
  });

  test('is edited in the list, where it stands, with the same question', async () => {
    const id = await newOrder('M-3');
    page = await admin.at('#/orders?search=M-3');
    await page.getByRole('link', { name: 'M-3', exact: true }).press('F2');
    const editor = page.getByRole('dialog', { name: 'Edit M-3' });
    await editor.getByLabel('Quantity').waitFor();
    await page.keyboard.press('Escape');
    await expect.poll(() => editor.count()).toBe(0);
    await page.getByRole('button', { name: 'Edit Quantity of M-3' }).click();
    await expect.poll(() => editor.getByLabel('Quantity').evaluate((input) => input === input.ownerDocument.activeElement)).toBe(true);
    await page.keyboard.type('8');
    await shop.db.query('update orders set quantity = 4, version = version + 1 where id = $1', [id]);
    await page.keyboard.press('Enter');
    const question = page.getByRole('dialog', { name: 'This record has changed' });
    await question.getByLabel('Keep yours: 8').check();
    await question.getByRole('button', { name: 'Save' }).click();
    await expect.poll(() => stored(id)).toMatchObject({ quantity: 8 });
    await expect.poll(() => editor.count()).toBe(0);
    await page.getByRole('cell', { name: /^8/ }).waitFor();
    expect(await findings(page)).toEqual([]);
  });

  test('taken whole leaves nothing to save, and the form shows it', async () => {
    const id = await newOrder('M-2');
    page = await admin.at(`#/orders/${id}/edit`);
    await page.getByLabel('Quantity').fill('9');
    await shop.db.query('update orders set quantity = 4, version = version + 1 where id = $1', [id]);
    await page.getByRole('button', { name: 'Save' }).click();
    const dialog = page.getByRole('dialog', { name: 'This record has changed' });
    await dialog.getByLabel('Take theirs: 4').check();
    await dialog.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Nothing was changed, so there is nothing to save.').waitFor();
    await expect.poll(() => page.getByLabel('Quantity').inputValue()).toBe('4');
  });
});

describe('what was typed and not saved', () => {
  test('survives a reload and a closed tab, without credentials, and is gone after a logout', async () => {
    page = await loggedInAs(STAFF, '#/endpoints/-/new');
    await page.getByLabel('URL').fill('https://example.com/hook?token=sesame');
    await page.getByLabel('Description').fill('half a thought');
    await expect.poll(drafts).toHaveLength(1);
    expect((await drafts()).join()).not.toContain('sesame');
    // The URL is not stored, so the browser asks before it is lost.
    await go(page, shop, '#/products/-/new');
    const question = page.getByRole('dialog', { name: 'Discard the changes?' });
    await question.getByRole('button', { name: 'Discard' }).click();
    await page.getByRole('heading', { name: 'New product', exact: true }).waitFor();
    expect(await drafts()).toEqual([]);
    await page.getByLabel('Name').fill('Half typed');
    await expect.poll(drafts).toHaveLength(1);
    await page.reload();
    await page.getByText('and did not save is here again').waitFor();
    await expect.poll(() => page.getByLabel('Name').inputValue()).toBe('Half typed');
    const context = page.context();
    await page.close();
    page = await context.newPage();
    await page.goto(`${shop.address}#/products/-/new`);
    await expect.poll(() => page.getByLabel('Name').inputValue()).toBe('Half typed');
    await page.getByRole('button', { name: 'Discard it' }).click();
    await expect.poll(() => page.getByLabel('Name').inputValue()).toBe('');
    expect(await drafts()).toEqual([]);
    await page.getByLabel('Name').fill('Typed before the logout');
    await expect.poll(drafts).toHaveLength(1);
    await page.getByRole('button', { name: STAFF }).click();
    await page.getByRole('menuitem', { name: 'Log out' }).click();
    await page.getByText('Log in with your staff account.').waitFor();
    expect(await drafts()).toEqual([]);
  });

  test('of a record that was changed meanwhile is merged, and nobody else finds it', async () => {
    const id = await newOrder('D-1');
    page = await loggedInAs(STAFF, `#/orders/${id}/edit`);
    await page.getByLabel('Quantity').fill('8');
    await expect.poll(drafts).toHaveLength(1);
    await shop.db.query('update orders set quantity = 3, version = version + 1 where id = $1', [id]);
    await page.reload();
    await expect.poll(() => page.getByLabel('Quantity').inputValue()).toBe('8');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('dialog', { name: 'This record has changed' }).getByLabel('Keep yours: 8').check();
    await page.getByRole('dialog').getByRole('button', { name: 'Back to the form' }).click();
    await page.context().clearCookies();
    await page.reload();
    await logIn(page, 'ada');
    await expect.poll(() => page.getByLabel('Quantity').inputValue()).toBe('3');
    expect(await drafts()).toEqual([]);
  });

  test('stays through a login on top of the page, and the form says nothing about the login', async () => {
    const sessions = async () => (await shop.db.query<{ id: string }>('select id from sessions')).map(({ id }) => id);
    const others = await sessions();
    page = await loggedInAs(STAFF, '#/customers/-/new');
    await page.getByLabel('Name').fill('Through the login');
    // Removed here as well as in the browser: a response that is on its way could bring the cookie back.
    for (const id of await sessions()) if (!others.includes(id)) await shop.db.query('delete from sessions where id = $1', [id]);
    await page.context().clearCookies();
    await page.getByRole('button', { name: 'Create customer' }).click();
    const dialog = page.getByRole('dialog', { name: 'Your session has ended' });
    await dialog.waitFor();
    await dialog.getByRole('textbox', { name: 'Password' }).fill(PASSWORD);
    await dialog.getByRole('button', { name: 'Log in', exact: true }).click();
    await dialog.waitFor({ state: 'hidden' });
    await expect.poll(() => page.getByRole('alert').count()).toBe(0);
    await expect.poll(() => page.getByText('Login failed').count()).toBe(0);
    await expect.poll(() => page.getByLabel('Name').inputValue()).toBe('Through the login');
    await page.getByRole('button', { name: 'Create customer' }).click();
    await page.getByRole('heading', { name: 'Through the login', level: 1, exact: true }).waitFor();
    expect(await shop.db.query("select name from customers where name = 'Through the login'")).toHaveLength(1);
  });
});

describe('why not', () => {
  test('staff who only read see every button, disabled, with the reason', async () => {
    const id = await newOrder('W-1');
    page = await loggedInAs('reader', `#/orders/${id}`);
    const why = /This needs the role administrator; yours is read only/;
    for (const name of ['Edit', 'Delete', 'Approve']) {
      const button = page.getByRole('button', { name, exact: true });
      expect([name, await button.getAttribute('aria-disabled')]).toEqual([name, 'true']);
      await expect.poll(() => button.getAttribute('aria-description')).toMatch(/needs the role/);
    }
    await page.getByRole('button', { name: 'Edit' }).hover();
    await page.getByRole('tooltip').filter({ hasText: why }).waitFor();
    await expect.poll(() => page.getByRole('button', { name: /^Restore/ }).count()).toBe(0);
    expect(await findings(page)).toEqual([]);
    await go(page, shop, `#/orders/${id}/edit`);
    await page.getByRole('note').filter({ hasText: why }).waitFor();
    await go(page, shop, '#/orders');
    await expect.poll(() => page.getByRole('button', { name: 'New order' }).getAttribute('aria-description')).toMatch(why);
  });

  const input = (name: string) => page.locator(`#field-${name}`);
  /** Of each field: whether it can be changed, and whether the reason is its description. */
  const states = () =>
    Promise.all(Object.keys(CLOSED).map(async (name) => [name, await input(name).isEnabled(), await described(input(name))] as const));
  const allOf = (isEnabled: boolean, isExplained: boolean) => Object.keys(CLOSED).map((name) => [name, isEnabled, isExplained]);
  const described = async (of: ReturnType<typeof input>): Promise<boolean> => {
    const ids = ((await of.getAttribute('aria-describedby')) ?? '').split(' ').filter((id) => id !== '');
    const texts = await Promise.all(ids.map((id) => page.locator(`[id="${id}"]`).textContent()));
    return texts.some((text) => text?.includes(CLOSED_REASON));
  };

  test('fields that writableBy() closes are disabled with the rule for those who may not write them, and open for those who may', async () => {
    const { id } = await insert(shop.db, vouchers, { code: 'V-1', percent: 10, customer_id: customer });
    page = await admin.at(`#/vouchers/${id}/edit`);
    await input('code').waitFor();
    await expect.poll(states).toEqual(allOf(false, true));
    await expect.poll(() => input('code').isEnabled()).toBe(true);
    expect(await findings(page)).toEqual([]);
    // What is closed is not sent: the rest is saved.
    await input('code').fill('V-2');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('heading', { name: 'V-2', level: 1, exact: true }).waitFor();
    await go(page, shop, '#/vouchers/-/new');
    await expect.poll(states).toEqual(allOf(false, true));
    await go(page, shop, '#/vouchers');
    await page.getByRole('checkbox', { name: 'Select V-2' }).check();
    await page.getByRole('button', { name: 'Edit selected' }).click();
    const choices = page.getByRole('dialog').getByLabel('Field to change');
    await choices.waitFor();
    await expect.poll(() => choices.locator('option:disabled').allTextContents()).toEqual(Object.values(CLOSED));
    await page.getByRole('dialog').getByText(`Percent: ${CLOSED_REASON}`).waitFor();
    await page.context().close();

    page = await loggedInAs('root', `#/vouchers/${id}/edit`);
    await input('code').waitFor();
    await expect.poll(states).toEqual(allOf(true, false));
    await input('percent').fill('25');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('heading', { name: 'V-2', level: 1, exact: true }).waitFor();
    await expect
      .poll(() => shop.db.query('select code, percent from vouchers where id = $1', [id]))
      .toEqual([{ code: 'V-2', percent: 25 }]);
    await go(page, shop, '#/vouchers/-/new');
    await expect.poll(states).toEqual(allOf(true, false));
  });
});

describe('a database that another process has locked', () => {
  test('is named by the bar, and a save ends with its sentence instead of spinning', async () => {
    const id = await newOrder('L-1');
    page = await admin.at(`#/orders/${id}/edit`);
    await page.getByLabel('Quantity').fill('6');
    const lock = new DatabaseSync(join(folder, 'shop.db'));
    lock.exec('begin immediate');
    try {
      let requests = 0;
      page.on('request', (request) => (requests += request.method() === 'PATCH' ? 1 : 0));
      await page.getByRole('button', { name: 'Save' }).click();
      await page.getByRole('alert').filter({ hasText: 'The database is busy' }).waitFor();
      expect(requests).toBe(1);
      expect(await page.getByRole('button', { name: 'Save' }).isEnabled()).toBe(true);
      // Answers are kept for five seconds of the server's clock.
      shop.clock.advance(60_000);
      const bar = page.getByRole('region', { name: 'Site health' });
      await bar.getByText('The database is locked by another transaction: changes wait.').waitFor();
      await expect.poll(() => bar.getAttribute('data-tone')).toBe('warning');
    } finally {
      lock.exec('rollback');
      lock.close();
    }
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('heading', { name: 'L-1', level: 1, exact: true }).waitFor();
    await expect.poll(() => stored(id)).toMatchObject({ quantity: 6 });
    // The browser itself notes the 503.
    expect(admin.complaints.splice(0)).toEqual([expect.stringContaining('503')]);
  });
});
