import { readFile } from 'node:fs/promises';
import type { Locator, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { createApiKey, verifyApiKey } from '../../kit/src/contrib/apikeys/index.ts';
import { keyringOf } from '../../kit/src/contrib/apikeys/verify/keyring.ts';
import { job, jobs, startJob } from '../../kit/src/contrib/jobs/index.ts';
import { createEndpoint, publish } from '../../kit/src/contrib/webhooks/index.ts';
import { insert, insertMany } from '../../kit/src/db/index.ts';
import { AdminBrowser, go, logIn, pick, row, settled } from './admin-browser.ts';
import { findings } from './axe.ts';
import { NOW } from './shop/fill.ts';
import { customers, orderLines, orders, ordersModule } from './shop/orders.ts';
import { Shop } from './shop/shop.ts';

const report = job('report', { input: z.object({}), run: () => Promise.resolve() });
const OPERATOR = 'omar';
const OPERATORS = new Set([OPERATOR, 'oscar']);

let shop: Shop;
let admin: AdminBrowser;
let page: Page;
let ada: string;

beforeAll(async () => {
  shop = await Shop.open({
    now: NOW,
    modules: [ordersModule(), jobs({ jobs: [report] })],
    roles: { of: ({ username }) => (OPERATORS.has(username) ? 'operator' : 'administrator') },
  });
  ada = (await insert(shop.db, customers, { name: 'Ada Lovelace' })).id;
  await insert(shop.db, customers, { name: 'Grace Hopper' });
  await insertMany(
    shop.db,
    orders,
    Array.from({ length: 6 }, (_, n) => ({
      reference: `BL-${n + 1}`,
      quantity: n + 1,
      status: n % 2 === 0 ? ('open' as const) : ('paid' as const),
      customer_id: ada,
    })),
  );
  admin = await AdminBrowser.open(shop);
  page = await admin.at('#/orders');
});
afterAll(async () => {
  await admin.close();
  await shop[Symbol.asyncDispose]();
});
afterEach(() => admin.expectQuiet());

const at = (hash: string): Promise<void> => go(page, shop, hash);
const rows = () => page.locator('tbody').getByRole('row').count();
const said = (text: string | RegExp) => page.getByRole('alert').filter({ hasText: text }).first().waitFor();
const one = async <T>(sql: string, values: unknown[] = []): Promise<T | undefined> => (await shop.db.query<T & object>(sql, values))[0];

/** Drags from a share of the width to the right end. */
async function dragOver(chart: Locator, from: number): Promise<void> {
  await chart.scrollIntoViewIfNeeded();
  const box = (await chart.boundingBox()) ?? { x: 0, y: 0, width: 0, height: 0 };
  await page.mouse.move(box.x + box.width * from, box.y + box.height / 2);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.99, box.y + box.height / 2, { steps: 4 });
  await page.mouse.up();
}

test('the list is downloaded as its filters show it', async () => {
  await at('#/orders?filter.status=paid');
  await expect.poll(rows).toBe(3);
  await page.getByRole('button', { name: 'Download or import' }).click();
  const downloading = page.waitForEvent('download');
  await page.getByRole('menuitem', { name: 'Download as CSV' }).click();
  const download = await downloading;
  expect(download.suggestedFilename()).toBe('orders.csv');
  const lines = (await readFile(await download.path(), 'utf8')).trimEnd().split('\r\n');
  expect(lines).toHaveLength(4);
  for (const line of lines.slice(1)) expect(line).toContain('paid');
});

test('a file is checked as it is chosen: what its columns are, each row with its errors, and nothing is written until it is imported', async () => {
  await at('#/orders/-/import');
  const choose = (text: string) =>
    page.locator('input[type=file]').setInputFiles({ name: 'orders.csv', mimeType: 'text/csv', buffer: Buffer.from(text) });
  await choose(`Order,Quantity,Customer\nIM-1,0,Ada Lovelace\nIM-2,2,Nobody\n`);
  await page.getByText('The file has', { exact: false }).waitFor();
  const columns = page.getByRole('region', { name: 'Columns of the file' });
  await expect.poll(() => columns.getByLabel('Customer').inputValue()).toBe('customer_id');
  await columns.getByLabel('Order').selectOption({ label: 'Reference' });
  await page.getByText('The file has 2 errors; nothing was imported.', { exact: false }).waitFor();
  const table = page.getByRole('region', { name: 'Rows of the file' });
  await expect
    .poll(() => table.getByRole('row').allInnerTexts())
    .toEqual([
      expect.stringMatching(/^Row\s+Errors\s+Reference\s+Quantity\s+Customer/),
      expect.stringMatching(/^2\s+Quantity: .*\s+IM-1\s+0\s+Ada Lovelace$/),
      expect.stringMatching(/^3\s+Customer: No record has the name "Nobody"[^]*Nobody$/),
    ]);
  expect(await findings(page)).toEqual([]);
  await choose(`reference,quantity,customer_id\nIM-1,1,Ada Lovelace\nIM-2,2,${ada}\nBL-1,50,Ada Lovelace\n`);
  await table.getByText('A record with this value already exists.', { exact: false }).waitFor();
  await page.getByRole('checkbox', { name: 'Update records that have the same reference' }).check();
  await page.getByText('The file is valid. Result of the import: 2 orders created, 1 order updated.').waitFor();
  expect(await one("select id from orders where reference = 'IM-1'")).toBeUndefined();
  await page.getByRole('button', { name: 'Import 3 rows' }).click();
  await said('Imported: 2 orders created, 1 order updated.');
  await row(page, 'IM-2').waitFor();
  expect(await one("select quantity from orders where reference = 'BL-1'")).toEqual({ quantity: 50 });
  expect(await one("select customer_id from orders where reference = 'IM-1'")).toEqual({ customer_id: ada });
});

test('selected records get the same value; the dialog says which, how many and what that means', async () => {
  await at('#/orders?search=BL-');
  for (const title of ['BL-2', 'BL-4']) await page.getByRole('checkbox', { name: `Select ${title}` }).check();
  await page.getByRole('button', { name: 'Edit selected' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByText('The old values are only in the audit log.').waitFor();
  await expect.poll(() => dialog.getByRole('button', { name: 'Change 2 orders' }).isDisabled()).toBe(true);
  await dialog.getByLabel('Field to change').selectOption('status');
  await dialog.getByRole('combobox', { name: 'Status' }).selectOption('shipped');
  await dialog.getByText('Sets status to "shipped" on 2 orders.').waitFor();
  expect(await findings(page)).toEqual([]);
  await dialog.getByRole('button', { name: 'Change 2 orders' }).click();
  await said('2 orders changed.');
  const changed = await shop.db.query<{ reference: string }>("select reference from orders where status = 'shipped' order by reference");
  expect(changed.map(({ reference }) => reference)).toEqual(['BL-2', 'BL-4']);
});

test('filters are saved for the person, not for the browser', async () => {
  await at('#/orders?filter.status=open&sort=-quantity');
  await page.getByRole('button', { name: 'Saved views' }).click();
  await page.getByRole('button', { name: 'Save the current view …' }).click();
  await page.getByRole('dialog').getByRole('textbox', { name: 'Name' }).fill('Open, largest first');
  await page.getByRole('dialog').getByRole('button', { name: 'Save', exact: true }).click();
  await said('The view "Open, largest first" is saved.');
  const elsewhere = await admin.at('#/orders');
  await elsewhere.getByRole('button', { name: 'Saved views' }).click();
  expect(await findings(elsewhere)).toEqual([]);
  await elsewhere.getByRole('button', { name: 'Open, largest first', exact: true }).click();
  await expect.poll(() => elsewhere.evaluate('location.hash')).toBe('#/orders?filter.status=open&sort=-quantity');
  await expect.poll(() => elsewhere.locator('tbody').getByRole('link').first().innerText()).toBe('BL-1');
  await elsewhere.getByRole('button', { name: 'Saved views' }).click();
  await elsewhere.getByRole('button', { name: 'Delete the saved view Open, largest first' }).click();
  await elsewhere.getByText('None yet. Set filters, an order or columns, then save them.').waitFor();
  await elsewhere.context().close();
});

test('a view is shared with a role: others find it, with its columns, and only administrators delete it', async () => {
  await at('#/orders?filter.status=open');
  await page.getByRole('button', { name: 'Choose the columns' }).click();
  await page.getByRole('checkbox', { name: 'Remark' }).uncheck();
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'Saved views' }).click();
  await page.getByRole('button', { name: 'Save the current view …' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('textbox', { name: 'Name' }).fill('To be paid');
  await dialog.getByLabel('Who sees it').selectOption({ label: 'Operators and administrators' });
  expect(await findings(page)).toEqual([]);
  await dialog.getByRole('button', { name: 'Save', exact: true }).click();
  await said('The view "To be paid" is saved.');
  await shop.newUser({ username: 'oscar', is_staff: true });
  const operator = await admin.page({ anonymous: true });
  await operator.goto(`${shop.address}#/orders`);
  await logIn(operator, 'oscar');
  await operator.getByRole('columnheader', { name: 'Remark' }).waitFor();
  await operator.getByRole('button', { name: 'Saved views' }).click();
  await operator.getByText('Shared by somebody else').waitFor();
  expect(await operator.getByRole('button', { name: 'Delete the saved view To be paid' }).count()).toBe(0);
  await operator.getByRole('button', { name: 'To be paid', exact: true }).click();
  await operator.getByRole('columnheader', { name: 'Remark' }).waitFor({ state: 'detached' });
  await expect.poll(() => operator.evaluate('location.hash')).toMatch(/filter\.status=open&columns=reference/);
  await operator.context().close();
  // The choice of columns is this person's own, and stays in the browser.
  await page.getByRole('button', { name: 'Choose the columns' }).click();
  await page.getByRole('checkbox', { name: 'Remark' }).check();
  await page.keyboard.press('Escape');
});

test('a reference is picked by typing what people call the record, in a form and in a filter', async () => {
  await at('#/orders/-/new');
  await page.getByRole('textbox', { name: 'Reference' }).fill('PK-1');
  await page.getByRole('textbox', { name: 'Quantity' }).fill('3');
  await pick(page, 'Customer', 'hopp', 'Grace Hopper');
  await page.getByRole('button', { name: 'Create order' }).click();
  await page.getByRole('heading', { name: 'PK-1', level: 1, exact: true }).waitFor();
  await page.getByRole('link', { name: 'Grace Hopper' }).waitFor();
  await at('#/orders');
  await pick(page.getByRole('search'), 'Customer', 'grace', 'Grace Hopper');
  await expect.poll(rows).toBe(1);
  await row(page, 'PK-1').waitFor();
  await page.reload();
  await expect.poll(() => page.getByRole('search').getByLabel('Customer').first().inputValue()).toBe('Grace Hopper');
});

test('what was deleted softly comes back by the button beside the message', async () => {
  await at('#/orders?search=BL-6');
  await page.getByRole('link', { name: 'BL-6', exact: true }).click();
  await page.getByRole('heading', { name: 'BL-6', exact: true }).waitFor();
  await page.getByRole('button', { name: 'Delete' }).click();
  await page.getByRole('dialog').getByText('The record is hidden from lists and can be restored.').waitFor();
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
  await said('BL-6 deleted.');
  await expect.poll(rows).not.toBe(0);
  expect(await one("select deleted_at from orders where reference = 'BL-6'")).not.toEqual({ deleted_at: null });
  await page.getByRole('button', { name: 'Undo' }).click();
  await said('1 order restored.');
  await page.getByRole('heading', { name: 'BL-6', level: 1, exact: true }).waitFor();
  expect(await one("select deleted_at from orders where reference = 'BL-6'")).toEqual({ deleted_at: null });
});

test('the page of a record shows what the declaration adds: computed fields and the rows of relations', async () => {
  const [order] = await shop.db.query<{ id: string }>("select id from orders where reference = 'BL-5'");
  await insertMany(
    shop.db,
    orderLines,
    ['Filter paper', 'Huila'].map((sku, index) => ({ sku, amount: index + 1, order_id: order?.id ?? '' })),
  );
  await at(`#/orders/${order?.id ?? ''}`);
  const lines = page.getByRole('region', { name: 'Lines' });
  await lines.waitFor();
  await expect
    .poll(() => lines.locator('tbody').getByRole('row').allInnerTexts())
    .toEqual([expect.stringMatching(/^Filter paper\s+1/), expect.stringMatching(/^Huila\s+2/)]);
  await page.getByText('large', { exact: true }).waitFor();
});

test('a transition is a button while its state allows it, and moves the record', async () => {
  await at('#/orders?search=BL-3');
  await page.getByRole('link', { name: 'BL-3', exact: true }).click();
  await page.getByRole('heading', { name: 'BL-3', exact: true }).waitFor();
  await page.getByRole('button', { name: 'Approve' }).click();
  await page.getByRole('dialog').getByText('The state becomes approved.').waitFor();
  await page.getByRole('dialog').getByRole('button', { name: 'Approve' }).click();
  await said('1 order approved.');
  await page.getByText('approved', { exact: true }).first().waitFor();
  const why = () => page.getByRole('button', { name: 'Approve' }).getAttribute('aria-description');
  await expect.poll(why).toBe('Possible from asked; the state is approved.');
  expect(await one("select approval from orders where reference = 'BL-3'")).toEqual({ approval: 'approved' });
});

test('an operator sees what the role may not do disabled, with the reason; reading and reasons are in the audit log', async () => {
  await shop.newUser({ username: OPERATOR, is_staff: true });
  const [owner] = await shop.db.query<{ id: string }>('select id from users limit 1');
  const { endpoint } = await shop.db.transaction((tx) =>
    createEndpoint(tx, { owner: owner?.id ?? '', url: 'https://hooks.acme.example/roles', events: ['*'] }),
  );
  const operator = await admin.page({ anonymous: true });
  await operator.goto(`${shop.address}#/endpoints/${endpoint.id}`);
  await logIn(operator, OPERATOR);
  const disable = operator.getByRole('button', { name: 'Disable', exact: true });
  await disable.waitFor();
  await expect.poll(() => disable.getAttribute('aria-disabled')).toBe('true');
  await expect.poll(() => disable.getAttribute('aria-description')).toContain('This needs the role administrator; yours is operator.');
  await disable.hover();
  await operator.getByRole('tooltip').filter({ hasText: 'This needs the role administrator; yours is operator.' }).waitFor();
  await disable.click({ force: true });
  await expect.poll(() => operator.getByRole('dialog').count()).toBe(0);
  await expect.poll(() => operator.getByRole('link', { name: 'Edit' }).count()).toBe(0);
  await expect.poll(() => operator.getByRole('button', { name: 'Send a ping' }).getAttribute('aria-disabled')).toBeNull();
  await go(operator, shop, `#/customers/${ada}`);
  await settled(operator);
  await operator.context().close();

  await at(`#/endpoints/${endpoint.id}`);
  await page.getByRole('button', { name: 'Disable', exact: true }).click();
  await page.getByRole('dialog').getByRole('textbox', { name: 'Reason' }).fill('The receiver leaks tokens');
  await page.getByRole('dialog').getByRole('button', { name: 'Disable', exact: true }).click();
  await said('1 endpoint disabled.');
  await at('#/audit-log?filter.action=webhook_endpoint.reason_given');
  await page.locator('tbody').getByRole('link').first().click();
  await page.getByText('The receiver leaks tokens').first().waitFor();
  await at('#/audit-log?filter.action=customer.read');
  await page.locator('tbody').getByRole('link', { name: OPERATOR, exact: true }).first().waitFor();
});

test('the page of a record shows its events and the jobs that run for it', async () => {
  const [order] = await shop.db.query<{ id: string }>("select id from orders where reference = 'BL-2'");
  const id = order?.id ?? '';
  await shop.db.transaction((tx) => startJob(tx, report, {}, { serialKey: `order:${id}` }));
  await at(`#/orders/${id}`);
  const history = page.getByRole('main').locator('section', { has: page.getByRole('heading', { name: 'History', exact: true }) });
  await history.getByRole('link', { name: 'Open the job' }).waitFor();
  await history.getByRole('link', { name: 'Jobs', exact: true }).waitFor();
  // What the request that changed the record did besides is folded under its entry.
  const event = history.getByText('Event order.changed').first();
  expect(await event.isVisible()).toBe(false);
  await history.getByText('1 more entry of this request').first().click();
  await event.waitFor();
  await history.getByRole('link', { name: 'Open the event' }).first().click();
  await page.getByRole('heading', { name: 'order.changed', level: 1, exact: true }).waitFor();
});

test('a key shows how often it was used', async () => {
  const [user] = await shop.db.query<{ id: string; username: string }>('select id, username from users limit 1');
  const { apiKey, raw } = await createApiKey(shop.db, { user: user?.id ?? '', name: 'Counted', scopes: [] });
  for (let request = 0; request < 7; request += 1) await verifyApiKey(shop.db, raw);
  await keyringOf(shop.db).usage.flush();
  await at(`#/api-keys/${apiKey.id}`);
  const chart = page.getByRole('slider', { name: 'Requests' });
  await chart.focus();
  await expect.poll(() => chart.getAttribute('aria-valuetext')).toMatch(/Requests 7$/);
  // The last days of the thirty: dragging shows them alone, and the address is the view.
  await dragOver(chart, 0.9);
  await expect.poll(() => page.evaluate('location.hash')).toMatch(/\?range=2026-03-(09|10).*%2F2026-03-13T00/);
  await page.getByLabel('From', { exact: true }).waitFor();
  await chart.focus();
  await expect.poll(() => chart.getAttribute('aria-valuemax')).toMatch(/^(2\d|3[0-5])$/);
  expect(await findings(page)).toEqual([]);
  await page.getByText('24 hours', { exact: true }).click();
  await expect.poll(() => page.evaluate('location.hash')).toMatch(/\?range=24h$/);
  await chart.focus();
  await expect.poll(() => chart.getAttribute('aria-valuetext')).toMatch(/Requests 7$/);
});

test('the chart of an endpoint is zoomed by dragging, and the way back shows what was before', async () => {
  const [staff] = await shop.db.query<{ id: string }>('select id from users limit 1');
  const { endpoint } = await shop.db.transaction((tx) =>
    createEndpoint(tx, { owner: staff?.id ?? '', url: 'https://hooks.acme.example/zoom', events: ['*'] }),
  );
  await shop.db.transaction(async (tx) => void (await publish(tx, 'order.zoomed', {}, { owner: staff?.id ?? '' })));
  await shop.db.query(
    `insert into webhook_attempts (delivery_id, id, started_at, duration_ms, worker) select id, id, created_at, 5, 'worker-1' from webhook_deliveries where endpoint_id = $1`,
    [endpoint.id],
  );
  await at(`#/endpoints/${endpoint.id}`);
  const chart = page.getByRole('slider', { name: /^Attempts/ });
  await dragOver(chart, 0.8);
  await expect.poll(() => page.evaluate('location.hash')).toContain('?range=2026-03-12T');
  await chart.focus();
  await expect.poll(() => chart.getAttribute('aria-valuetext')).toContain('Succeeded');
  await page.goBack();
  await expect.poll(() => page.evaluate('location.hash')).toBe(`#/endpoints/${endpoint.id}`);
  await expect.poll(() => chart.getAttribute('aria-valuemax')).toBe('23');
});

test('a range of time is chosen by dragging over a chart, or typed', async () => {
  // What the overview counted before the tests is not kept longer.
  shop.clock.advance(60_000);
  await at('#/');
  await dragOver(page.getByRole('slider', { name: 'Events', exact: true }), 0.6);
  await expect.poll(() => page.evaluate('location.hash')).toMatch(/^#\/\?range=2026-03-1\d.*%2F2026-03-12T15/);
  await expect.poll(() => page.getByLabel('To', { exact: true }).inputValue()).toMatch(/^2026-03-12T15:00/);
  await page.getByLabel('From', { exact: true }).fill('2026-03-12T14:00:00');
  await page.getByRole('button', { name: 'Apply' }).click();
  await expect.poll(() => page.evaluate('location.hash')).toContain('range=2026-03-12T14%3A00%3A00.000Z');
  expect(await findings(page)).toEqual([]);
  await page.getByText('24 hours', { exact: true }).click();
  await expect.poll(() => page.evaluate('location.hash')).toBe('#/');
});
