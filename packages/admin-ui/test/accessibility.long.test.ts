import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { createGroup } from '../../kit/src/contrib/accounts/index.ts';
import { grant, objectActions, objectGrants } from '../../kit/src/contrib/grants/index.ts';
import { job, jobs, runDueJobs, startJob } from '../../kit/src/contrib/jobs/index.ts';
import { diskStore, uploads } from '../../kit/src/contrib/uploads/index.ts';
import { insert } from '../../kit/src/db/index.ts';
import { AdminBrowser, go, settled } from './admin-browser.ts';
import { findings } from './axe.ts';
import { fill, OPENED, receivers } from './shop/fill.ts';
import { customers, orders, ordersModule } from './shop/orders.ts';
import { Shop, STAFF } from './shop/shop.ts';

/** axe looks at some thirty screens; on a busy machine that takes its time. */
const BUSY_MS = 300_000;

const report = job('report', {
  input: z.object({}),
  retry: { attempts: 1 },
  async run({ step }) {
    await step('render', () => 1);
    throw new Error('The printer is out of paper.');
  },
});
const clean = job('clean', { input: z.object({}), schedule: { cron: '0 3 * * *', input: {} }, run: () => Promise.resolve() });
const orderActions = objectActions(orders, { actions: ['view', 'share'], sets: { viewer: ['view'], manager: ['viewer', 'share'] } });
const folder = mkdtempSync(join(tmpdir(), 'kit-admin-files-'));

let shop: Shop;
let admin: AdminBrowser;

beforeAll(async () => {
  shop = await Shop.open({
    now: OPENED,
    transport: receivers(() => shop),
    modules: [
      ordersModule(),
      jobs({ jobs: [report, clean] }),
      uploads({ store: diskStore({ folder }), cleanEverySeconds: 0 }),
      objectGrants({ objects: [orderActions] }),
    ],
  });
  await fill(shop);
  await addNewer();
  admin = await AdminBrowser.open(shop);
});
afterAll(async () => {
  await admin.close();
  await shop[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

/** One record for each list that the filled shop has nothing in. */
async function addNewer(): Promise<void> {
  const { db } = shop;
  const staff = await shop.app.users?.findByLogin(db, STAFF);
  const customer = await insert(db, customers, { name: 'Grace Hopper' });
  const order = await insert(db, orders, { reference: 'BL-1', quantity: 2, customer_id: customer.id });
  await db.transaction((tx) => startJob(tx, report, {}, { serialKey: `order:${order.id}` }));
  await runDueJobs(db);
  await createGroup(db, { name: 'roasters', tenantKey: null });
  await grant(db, { subject: `user:${staff?.id ?? ''}`, set: 'manager', object: { type: orders, id: order.id } });
  await db.query(
    `insert into uploads (id, owner_id, tenant_key, state, filename, content_type, size, pending_key, created_at, expires_at, complete_by, scan_attempts)
     select id, id, '', 'rejected', 'invoice.pdf', 'application/pdf', 52000, 'a', created_at, created_at, created_at, 0 from users where id = $1`,
    [staff?.id ?? ''],
  );
}

type Screen = readonly [string, (page: Page) => Promise<void>];

/** Of a table, or of the cards on a phone. */
const firstRow = (page: Page) => page.getByRole('main').locator('tbody a, [data-cards] a').first();

/** On a phone they are folded. */
async function openFilters(page: Page): Promise<void> {
  const fold = page.getByRole('button', { name: /^Filters/, expanded: false });
  if (await fold.isVisible()) await fold.click();
}

/** A list, and the page of its first record with everything opened. */
const listAndRecord = (name: string): readonly Screen[] => [
  [
    name,
    async (page: Page) => {
      await go(page, shop, `#/${name}`);
      // The rows of the list before are there until those of this one have come.
      await settled(page);
      await firstRow(page).waitFor();
    },
  ] as const,
  [
    `${name} record`,
    async (page: Page) => {
      await firstRow(page).click();
      await page.getByRole('navigation', { name: 'Where you are' }).waitFor();
      await page.getByRole('main').getByRole('heading', { level: 2 }).first().waitFor();
      const details = page.getByRole('button', { name: /^Details of/ }).first();
      if ((await details.count()) > 0) await details.click();
    },
  ] as const,
];

/** Every screen of the site, opened by the steps that lead to it. */
const screens: readonly Screen[] = [
  ['overview', (page) => go(page, shop, '#/')],
  ...['users', 'api-keys', 'endpoints', 'deliveries', 'events', 'audit-log', 'products'].flatMap(listAndRecord),
  ['endpoint form', (page) => go(page, shop, '#/endpoints/-/new')],
  [
    'selection and dialog',
    async (page) => {
      await go(page, shop, '#/api-keys');
      await page.getByRole('checkbox', { name: 'Select all on this page' }).check();
      await page.getByRole('button', { name: 'Revoke selected keys' }).click();
      await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).waitFor();
    },
  ],
];

/** What a list can do besides showing rows, pickers, ranges and the other modules. */
const more: readonly Screen[] = [
  ...['orders', 'jobs', 'job-failures', 'job-schedules', 'uploads', 'grants', 'groups'].flatMap(listAndRecord),
  [
    'import',
    async (page) => {
      await go(page, shop, '#/orders/-/import');
      const buffer = Buffer.from('Order,Quantity,Customer\nA-1,0,Nobody\nA-2,two,Grace Hopper\n');
      await page.locator('input[type=file]').setInputFiles({ name: 'orders.csv', mimeType: 'text/csv', buffer });
      await page.getByRole('region', { name: 'Rows of the file' }).waitFor();
    },
  ],
  [
    'shortcuts',
    async (page) => {
      await go(page, shop, '#/orders');
      await page.keyboard.press('?');
      await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).waitFor();
    },
  ],
  [
    'a cell that is edited',
    async (page) => {
      await page.keyboard.press('Escape');
      await go(page, shop, '#/orders?search=BL-1');
      await page.getByRole('link', { name: 'BL-1', exact: true }).press('F2');
      await page.getByRole('dialog', { name: 'Edit BL-1' }).getByLabel('Quantity').waitFor();
    },
  ],
  ['grant form', (page) => go(page, shop, '#/grants/-/new')],
  [
    'picker',
    async (page) => {
      await go(page, shop, '#/orders/-/new');
      await page.getByLabel('Customer').first().click();
      await page.getByRole('option', { name: 'Grace Hopper' }).waitFor();
    },
  ],
  [
    'saved views',
    async (page) => {
      await go(page, shop, '#/orders?filter.status=open');
      await openFilters(page);
      await page.getByRole('button', { name: 'Saved views' }).click();
      await page.getByRole('button', { name: 'Save the current view …' }).waitFor();
    },
  ],
  [
    'a view that is saved',
    async (page) => {
      await page.getByRole('button', { name: 'Save the current view …' }).click();
      await page.getByRole('dialog').getByLabel('Who sees it').waitFor();
    },
  ],
  [
    'filter',
    async (page) => {
      await page.keyboard.press('Escape');
      await go(page, shop, '#/orders?filter.status.not=paid');
      await openFilters(page);
      await page.getByRole('button', { name: 'Add filter' }).click();
      await page.getByLabel('Filter by').selectOption({ label: 'Created' });
      await page.getByRole('button', { name: 'Last 7 days' }).waitFor();
    },
  ],
  [
    'custom range',
    async (page) => {
      await go(page, shop, '#/');
      await page.getByText('Custom', { exact: true }).click();
      await page.getByLabel('From', { exact: true }).waitFor();
    },
  ],
  [
    'bulk edit',
    async (page) => {
      await go(page, shop, '#/orders');
      await page.getByRole('checkbox', { name: 'Select BL-1' }).check();
      await page.getByRole('button', { name: 'Edit selected' }).click();
      await page.getByRole('dialog').getByLabel('Field to change').selectOption('status');
    },
  ],
  [
    'palette',
    async (page) => {
      await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click();
      await page.getByRole('dialog').waitFor({ state: 'hidden' });
      await page.keyboard.press('Control+k');
      await page.getByRole('dialog').waitFor();
    },
  ],
];

for (const colorScheme of ['light', 'dark'] as const) {
  test(
    `no screen has a serious accessibility fault, ${colorScheme}`,
    async () => {
      const page = await admin.page({ colorScheme, anonymous: true });
      await page.goto(shop.address);
      await page.getByRole('button', { name: 'Log in', exact: true }).waitFor();
      // Between the two only colours differ.
      const rules = colorScheme === 'light' ? 'all' : 'colours';
      const found: Record<string, string[]> = { login: await findings(page, rules) };
      await page.context().close();
      const inside = await admin.page({ colorScheme });
      for (const [name, open] of [...screens, ...more]) {
        await open(inside);
        await settled(inside);
        found[name] = await findings(inside, rules);
      }
      expect(await storedIn(inside)).toEqual({ local: [], elsewhere: [] });
      await inside.context().close();
      expect(Object.fromEntries(Object.entries(found).filter(([, faults]) => faults.length > 0))).toEqual({});
      admin.expectQuiet();
    },
    BUSY_MS,
  );
}

/** What a page has stored in the browser; the session cookie is not for scripts. */
function storedIn(page: Page): Promise<{ local: string[]; elsewhere: unknown[] }> {
  return page.evaluate(`(async () => ({
    local: Object.keys(localStorage).sort(),
    elsewhere: [
      ...Object.keys(sessionStorage),
      ...(await indexedDB.databases()).map(({ name }) => name),
      ...(await caches.keys()),
      ...(await navigator.serviceWorker.getRegistrations()).map(({ scope }) => scope),
      ...document.cookie.split('; ').filter((cookie) => cookie !== ''),
    ],
  }))()`);
}

test('nothing but preferences is stored in the browser: columns, exact times, and the colour scheme', async () => {
  const page = await admin.at('#/users');
  await page.getByRole('button', { name: 'Choose the columns' }).click();
  await page.getByRole('checkbox', { name: 'E-mail' }).uncheck();
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: STAFF }).click();
  await page.getByRole('menuitem', { name: 'Show exact times' }).click();
  await page.getByRole('button', { name: /^Colours:/ }).click();
  await expect
    .poll(() => storedIn(page))
    .toEqual({
      local: ['kit-admin-colours', 'kit-admin-exact-times', 'kit-admin-hidden-columns'],
      elsewhere: [],
    });
  const kept = (await page.evaluate('JSON.stringify({ ...localStorage })')) as string;
  expect(JSON.parse(kept)).toEqual({
    'kit-admin-colours': expect.stringMatching(/^(?:dark|light|auto)$/),
    'kit-admin-exact-times': 'yes',
    'kit-admin-hidden-columns': '{"users":["email"]}',
  });
  await page.context().close();
  admin.expectQuiet();
});

test('a phone shows every screen without moving the page sideways', { timeout: BUSY_MS }, async () => {
  const page = await admin.page({ viewport: { width: 375, height: 740 }, hasTouch: true, isMobile: true });
  // Without a keyboard there is no palette and no F2, and cards have no cells.
  const none = new Set(['shortcuts', 'a cell that is edited', 'palette', 'bulk edit']);
  for (const [name, open] of [...screens.slice(0, -1), ...more.filter(([each]) => !none.has(each))]) {
    await open(page);
    await settled(page);
    const beyond = await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth');
    expect({ name, beyond }).toEqual({ name, beyond: 0 });
  }
  await go(page, shop, '#/');
  await page.getByRole('button', { name: 'Open the navigation' }).click();
  await page.getByRole('link', { name: 'Deliveries', exact: true }).click();
  await page.getByRole('heading', { name: 'Deliveries', level: 1, exact: true }).waitFor();
  await page.getByRole('button', { name: 'Open the navigation' }).waitFor();
  await page.context().close();
  admin.expectQuiet();
});

test('the keyboard alone gets from the address to a record and through a dialog', async () => {
  const page = await admin.at('#/api-keys');
  await page.locator('tbody').getByRole('link').first().waitFor();
  await page.keyboard.press('Tab');
  expect(await page.evaluate('document.activeElement?.textContent')).toBe('Skip to the content');
  await page.keyboard.press('Enter');
  expect(await page.evaluate('document.activeElement?.tagName')).toBe('MAIN');
  await page.getByRole('checkbox', { name: /^Select Old scanner/ }).focus();
  await page.keyboard.press('Space');
  await page.getByText('1 selected').waitFor();
  await page.getByRole('button', { name: 'Revoke selected keys' }).focus();
  await page.keyboard.press('Enter');
  await page.getByRole('dialog').waitFor();
  await expect.poll(() => page.evaluate('document.activeElement?.closest("[role=dialog]") !== null')).toBe(true);
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({ state: 'hidden' });
  await page.locator('tbody').getByRole('link', { name: 'Old scanner' }).focus();
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Old scanner', level: 1, exact: true }).waitFor();
  await page.context().close();
  admin.expectQuiet();
});
