import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { job, jobs, runDueJobs, startJob, startJobs } from '../../kit/src/contrib/jobs/index.ts';
import { insert, insertMany } from '../../kit/src/db/index.ts';
import { AdminBrowser, go, pick, row, settled } from './admin-browser.ts';
import { findings } from './axe.ts';
import { NOW } from './shop/fill.ts';
import { customers, orders, ordersModule } from './shop/orders.ts';
import { Shop } from './shop/shop.ts';

const PHONE = { viewport: { width: 375, height: 740 }, hasTouch: true, isMobile: true } as const;

let isBroken = true;
const report = job('report', {
  input: z.object({}),
  retry: { attempts: 1 },
  run() {
    if (isBroken) throw new Error('The printer is out of paper.');
  },
});
const clean = job('clean', { input: z.object({}), schedule: { cron: '0 3 * * *', input: {} }, run: () => Promise.resolve() });

let shop: Shop;
let admin: AdminBrowser;
let page: Page;

beforeAll(async () => {
  shop = await Shop.open({ now: NOW, modules: [ordersModule(), jobs({ jobs: [report, clean] })] });
  const ada = (await insert(shop.db, customers, { name: 'Ada Lovelace' })).id;
  const grace = (await insert(shop.db, customers, { name: 'Grace Hopper' })).id;
  await insertMany(
    shop.db,
    orders,
    Array.from({ length: 6 }, (_, n) => ({
      reference: `BL-${n + 1}`,
      quantity: (n + 1) * 10,
      status: n % 2 === 0 ? ('open' as const) : ('paid' as const),
      approval: n < 4 ? ('asked' as const) : ('approved' as const),
      remark: n === 0 ? 'Leave at the door' : null,
      customer_id: n === 5 ? grace : ada,
    })) as never,
  );
  await shop.db.transaction((tx) =>
    startJobs(
      tx,
      report,
      Array.from({ length: 130 }, () => ({})),
    ),
  );
  await runDueJobs(shop.db);
  admin = await AdminBrowser.open(shop);
  page = await admin.at('#/orders');
});
afterAll(async () => {
  await admin.close();
  await shop[Symbol.asyncDispose]();
});
afterEach(() => admin.expectQuiet());

const at = (hash: string): Promise<void> => go(page, shop, hash);
const dialog = () => page.getByRole('dialog');
const said = (text: string | RegExp) => page.getByRole('alert').filter({ hasText: text }).first().waitFor();
const titles = () => page.locator('tbody').getByRole('link', { name: /^BL-/ }).allInnerTexts();
const hash = () => page.evaluate('location.hash') as Promise<string>;
const count = async (sql: string) => Number((await shop.db.query<{ n: number }>(sql))[0]?.n);

test('schedules are run now, paused and resumed; failed jobs are retried by their error; a job is cancelled without "Cancel | Cancel"', async () => {
  await at('#/job-schedules');
  await row(page, 'clean').getByText('active').waitFor();
  expect(await findings(page)).toEqual([]);
  await row(page, 'clean').getByRole('link').click();
  await page.getByRole('button', { name: 'Run now' }).click();
  await dialog().getByRole('button', { name: 'Run now' }).click();
  await said('1 schedule started.');
  expect(await count("select count(*) as n from jobs where name = 'clean'")).toBe(1);
  await page.getByRole('button', { name: 'Pause' }).click();
  await dialog().getByRole('button', { name: 'Pause' }).click();
  await said('1 schedule paused.');
  await page.getByText('paused', { exact: true }).first().waitFor();
  await page.getByRole('button', { name: 'Resume' }).click();
  await dialog().getByRole('button', { name: 'Resume' }).click();
  await said('1 schedule resumed.');

  await at('#/job-failures');
  await page.locator('tbody').getByText('130', { exact: true }).waitFor();
  expect(await findings(page)).toEqual([]);
  await page.getByRole('checkbox', { name: 'Select report: job_failed' }).check();
  await page.getByRole('button', { name: 'Retry all' }).click();
  await dialog().getByText('130 jobs are queued again.').waitFor();
  isBroken = false;
  await dialog().getByRole('button', { name: 'Retry all' }).click();
  await said('130 jobs queued again.');
  expect(await count("select count(*) as n from jobs where status = 'queued' and name = 'report'")).toBe(130);

  const { id } = await shop.db.transaction((tx) => startJob(tx, report, {}));
  await at(`#/jobs/${id}`);
  await page.getByRole('button', { name: 'Cancel the job' }).click();
  await dialog().getByRole('button', { name: 'Keep running' }).waitFor();
  await expect.poll(() => dialog().getByRole('button', { name: 'Cancel', exact: true }).count()).toBe(0);
  await dialog().getByRole('button', { name: 'Keep running' }).click();
  await dialog().waitFor({ state: 'hidden' });
  expect(await count(`select count(*) as n from jobs where status = 'cancelled'`)).toBe(0);
  await page.getByRole('button', { name: 'Cancel the job' }).click();
  await dialog().getByRole('button', { name: 'Cancel the job' }).click();
  await said('1 job cancelled');
  expect(await count(`select count(*) as n from jobs where status = 'cancelled'`)).toBe(1);
});

test('filters have operators, ranges and pickers; each is a chip that can be changed and removed, and the address is the list', async () => {
  await at('#/orders');
  const add = async (field: string, comparison?: string): Promise<void> => {
    await page.getByRole('button', { name: 'Add filter' }).click();
    await page.getByLabel('Filter by').selectOption({ label: field });
    if (comparison !== undefined) await page.getByLabel('Comparison').selectOption({ label: comparison });
  };
  const apply = () => page.getByRole('button', { name: 'Apply' }).click();
  const chips = () => page.getByRole('list', { name: 'Filters that are set' });

  await add('Quantity');
  await page.getByLabel('From', { exact: true }).fill('20');
  await page.getByLabel('To', { exact: true }).fill('50');
  expect(await findings(page)).toEqual([]);
  await apply();
  await expect.poll(titles).toEqual(['BL-5', 'BL-4', 'BL-3', 'BL-2']);
  await expect.poll(hash).toBe('#/orders?filter.quantity.from=20&filter.quantity.to=50');
  await add('Status', 'is one of');
  await page.getByRole('checkbox', { name: 'paid' }).check();
  await apply();
  await expect.poll(titles).toEqual(['BL-4', 'BL-2']);
  await chips().getByText('Quantity from 20 to 50').waitFor();
  expect(await findings(page)).toEqual([]);

  // A chip is changed in place.
  await chips().getByRole('button', { name: 'Change the filter: Status is one of paid' }).click();
  await page.getByLabel('Comparison').selectOption({ label: 'is not' });
  await page.getByLabel('Value').selectOption('paid');
  await apply();
  await expect.poll(titles).toEqual(['BL-5', 'BL-3']);
  await page.reload();
  await chips().getByText('Status is not paid').waitFor();
  await chips().getByRole('button', { name: 'Remove the filter: Quantity from 20 to 50' }).click();
  await expect.poll(titles).toEqual(['BL-5', 'BL-3', 'BL-1']);
  await chips().getByRole('button', { name: 'Remove the filter: Status is not paid' }).click();

  await add('Customer', 'is not');
  await pick(page, 'Value', 'ada', 'Ada Lovelace');
  await apply();
  await expect.poll(titles).toEqual(['BL-6']);
  await chips().getByText('Customer is not Ada Lovelace').waitFor();
  await page.getByRole('button', { name: 'Clear', exact: true }).click();

  await add('Remark', 'is empty');
  await page.getByLabel('Value').selectOption('no');
  await apply();
  await expect.poll(titles).toEqual(['BL-1']);
  await page.getByRole('button', { name: 'Clear', exact: true }).click();

  await add('Created');
  await page.getByRole('button', { name: 'Today' }).click();
  await apply();
  await expect.poll(titles).toHaveLength(6);
  await chips().getByText('Created on 12 Mar 2026').waitFor();
  await add('Created');
  await page.getByRole('button', { name: 'Yesterday' }).click();
  await apply();
  await page.getByText('No orders match.').waitFor();
});

test('a number stands on the right, a state has its color, and headings that sort are column headers', async () => {
  await at('#/orders');
  const heading = page.getByRole('columnheader', { name: 'Quantity' });
  await heading.waitFor();
  await expect.poll(() => heading.getAttribute('aria-sort')).toBe('none');
  expect(await heading.evaluate((element) => (element as unknown as { style: { textAlign: string } }).style.textAlign)).toBe('end');
  await heading.getByRole('button').click();
  await expect.poll(() => heading.getAttribute('aria-sort')).toBe('ascending');
  await expect.poll(titles).toEqual(['BL-1', 'BL-2', 'BL-3', 'BL-4', 'BL-5', 'BL-6']);
  await heading.getByRole('button').press('Enter');
  await expect.poll(() => heading.getAttribute('aria-sort')).toBe('descending');
  await expect.poll(async () => (await titles())[0]).toBe('BL-6');
  const tone = (title: string) => row(page, title).locator('[data-tone]').first().getAttribute('data-tone');
  expect([await tone('BL-1'), await tone('BL-2')]).toEqual(['info', 'good']);
});

test('a bulk action says before what it will do and to which it cannot; a deleted selection is restored by Undo', async () => {
  await at('#/orders');
  await page.getByRole('checkbox', { name: 'Select all on this page' }).check();
  await page.getByRole('button', { name: 'Approve' }).click();
  await dialog()
    .getByText(/^4 orders will be approved, 2 cannot: /)
    .waitFor();
  await dialog().getByText('Show which cannot').click();
  await dialog().getByText('BL-5').last().waitFor();
  expect(await findings(page)).toEqual([]);
  expect(await count(`select count(*) as n from orders where approval = 'approved'`)).toBe(2);
  await dialog().getByRole('button', { name: 'Approve 4 orders' }).click();
  await said('4 orders approved.');
  expect(await count(`select count(*) as n from orders where approval = 'approved'`)).toBe(6);

  await page.getByRole('checkbox', { name: 'Select BL-2' }).check();
  await page.getByRole('checkbox', { name: 'Select BL-4' }).click({ modifiers: ['Shift'] });
  await page.getByText('3 selected').waitFor();
  await page.getByRole('button', { name: 'Delete selected' }).click();
  await dialog().getByText('3 orders will be deleted.').waitFor();
  await dialog().getByRole('button', { name: 'Delete 3 orders' }).click();
  await said('3 orders deleted.');
  await expect.poll(titles).toEqual(['BL-6', 'BL-5', 'BL-1']);
  await page.getByRole('button', { name: 'Undo' }).click();
  await said('3 orders restored.');
  await expect.poll(titles).toHaveLength(6);
});

test('the palette has a button; it finds screens, records and actions, and an action begins with its question', async () => {
  await at('#/');
  await page.getByRole('button', { name: 'Search and actions' }).click();
  const box = page.getByRole('combobox', { name: 'Search screens, records and actions' });
  await box.fill('new order');
  await page.getByRole('option', { name: /^New order/ }).click();
  await page.getByRole('heading', { name: 'New order', level: 1, exact: true }).waitFor();
  await page.keyboard.press('Control+k');
  await box.fill('BL-4');
  await page.getByRole('option', { name: /^BL-4/ }).click();
  await page.getByRole('heading', { name: 'BL-4', level: 1, exact: true }).waitFor();
  await page.keyboard.press('Control+k');
  await box.fill('retry failed jobs');
  await page.getByRole('option', { name: /^Retry failed jobs/ }).click();
  await said('No jobs match.');
  await expect.poll(hash).toBe('#/jobs?filter.status=failed');
  isBroken = true;
  await runDueJobs(shop.db);
  await page.keyboard.press('Control+k');
  await box.fill('retry failed jobs');
  expect(await findings(page)).toEqual([]);
  await box.press('Enter');
  await dialog()
    .getByText(/^\d+ jobs will be queued again\.$/)
    .waitFor();
  await dialog().getByRole('button', { name: 'Cancel', exact: true }).click();
});

test('a phone shows cards: name, state and values with their labels, and they are selected and sorted', async () => {
  const phone = await admin.at('#/orders', PHONE);
  const cards = phone.getByRole('list', { name: 'Orders' });
  await cards.getByRole('link', { name: 'BL-1', exact: true }).waitFor();
  await expect.poll(() => phone.getByRole('table').count()).toBe(0);
  await cards.getByText('Quantity').first().waitFor();
  await phone.getByLabel('Sort by').selectOption('quantity');
  await expect.poll(() => cards.getByRole('link').first().innerText()).toBe('BL-1');
  await phone.getByRole('checkbox', { name: 'Select BL-1' }).check();
  await phone.getByText('1 selected').waitFor();
  expect(await findings(phone)).toEqual([]);
  // The heading is not broken into letters.
  const box = await phone.getByRole('heading', { level: 1 }).boundingBox();
  expect(box?.height).toBeLessThan(60);
  await phone.context().close();
});

test('the page has its landmarks, and the form of a new order reads as a form', async () => {
  await at('#/orders/-/new');
  for (const landmark of ['banner', 'navigation', 'main'] as const)
    await expect.poll(() => page.getByRole(landmark).count()).toBeGreaterThan(0);
  await settled(page);
  expect(await page.getByRole('main').locator('form').ariaSnapshot()).toMatchInlineSnapshot(`
    "- group:
      - text: Reference
      - textbox "Reference"
      - text: Quantity
      - textbox "Quantity"
      - text: Status
      - combobox "Status":
        - option "–" [selected]
        - option "open"
        - option "paid"
        - option "shipped"
      - img
      - text: Remark
      - textbox "Remark"
      - text: Customer
      - combobox "Customer"
      - img
    - button "Cancel"
    - button "Create order""
  `);
});
