import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { AdminBrowser, go, settled, soon } from './admin-browser.ts';
import { findings } from './axe.ts';
import { fill, OPENED, receivers } from './shop/fill.ts';
import { Shop } from './shop/shop.ts';

/** axe looks at some twenty screens; on a busy machine that takes its time. */
const BUSY_MS = 240_000;

let shop: Shop;
let admin: AdminBrowser;

beforeAll(async () => {
  shop = await Shop.open({ now: OPENED, transport: receivers(() => shop) });
  await fill(shop);
  admin = await AdminBrowser.open(shop);
});
afterAll(async () => {
  await admin.close();
  await shop[Symbol.asyncDispose]();
});

/** Every screen of the site, opened by the steps that lead to it. */
const screens: readonly (readonly [string, (page: Page) => Promise<void>])[] = [
  ['overview', (page) => go(page, shop, '#/')],
  ...['users', 'api-keys', 'endpoints', 'deliveries', 'events', 'audit-log', 'products'].flatMap((name) => [
    [
      name,
      async (page: Page) => {
        await go(page, shop, `#/${name}`);
        await page.locator('tbody').getByRole('link').first().waitFor();
      },
    ] as const,
    [
      `${name} record`,
      async (page: Page) => {
        await page.locator('tbody').getByRole('link').first().click();
        await page.getByRole('navigation', { name: 'Where you are' }).waitFor();
        await page.getByRole('main').getByRole('heading', { level: 2 }).first().waitFor();
        const details = page.getByRole('button', { name: /^Details of/ }).first();
        if ((await details.count()) > 0) await details.click();
      },
    ] as const,
  ]),
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

for (const colorScheme of ['light', 'dark'] as const) {
  test(
    `no screen has a serious accessibility fault, ${colorScheme}`,
    async () => {
      const page = await admin.page({ colorScheme, anonymous: true });
      await page.goto(shop.address);
      await page.getByRole('button', { name: 'Log in', exact: true }).waitFor();
      const found: Record<string, string[]> = { login: await findings(page) };
      await page.context().close();
      const inside = await admin.page({ colorScheme });
      for (const [name, open] of screens) {
        await open(inside);
        await settled(inside);
        found[name] = await findings(inside);
      }
      await inside.context().close();
      expect(Object.fromEntries(Object.entries(found).filter(([, faults]) => faults.length > 0))).toEqual({});
      admin.expectQuiet();
    },
    BUSY_MS,
  );
}

test('a phone shows every screen without moving the page sideways', async () => {
  const page = await admin.page({ viewport: { width: 375, height: 740 }, hasTouch: true, isMobile: true });
  for (const [name, open] of screens.slice(0, -1)) {
    await open(page);
    await settled(page);
    const beyond = await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth');
    expect({ name, beyond }).toEqual({ name, beyond: 0 });
  }
  await go(page, shop, '#/');
  await page.getByRole('button', { name: 'Open the navigation' }).click();
  await page.getByRole('link', { name: 'Deliveries', exact: true }).click();
  await page.getByRole('heading', { name: 'Deliveries', level: 1 }).waitFor();
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
  await soon(() => page.evaluate('document.activeElement?.closest("[role=dialog]") !== null')).toBe(true);
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({ state: 'hidden' });
  await page.locator('tbody').getByRole('link', { name: 'Old scanner' }).focus();
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Old scanner', level: 1 }).waitFor();
  await page.context().close();
  admin.expectQuiet();
});
