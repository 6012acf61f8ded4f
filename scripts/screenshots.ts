// `npm run screenshots`: the screens of the admin site and the developers' portal, from a shop whose data and clock are the same at every run. Those that a page
// shows are written to docs/images/, where a new one begins as an empty file; all of them are in .data/screenshots/ to look at.
import { copyFileSync, existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { launchChromium } from '../test/provision/chromium.ts';
import { fill, NOW, OPENED, receivers } from '../packages/admin-ui/test/shop/fill.ts';
import { fillRequests } from '../packages/admin-ui/test/shop/fill-requests.ts';
import { PortalShop } from '../packages/admin-ui/test/shop/portal-shop.ts';
import { PASSWORD, Shop, STAFF } from '../packages/admin-ui/test/shop/shop.ts';
import { eventType } from '../packages/kit/src/contrib/webhooks/index.ts';
import { buildAdminSite } from './admin-site.ts';

const shown = join(import.meta.dirname, '../docs/images');
const folder = join(import.meta.dirname, '../.data/screenshots');

const looks: Readonly<Record<string, BrowserContextOptions>> = {
  light: { colorScheme: 'light', viewport: { width: 1280, height: 860 } },
  dark: { colorScheme: 'dark', viewport: { width: 1280, height: 860 } },
  phone: { colorScheme: 'light', viewport: { width: 375, height: 760 }, deviceScaleFactor: 2, isMobile: true, hasTouch: true },
};

const at = async (page: Page, shop: Shop, hash: string): Promise<void> => {
  await page.goto(`${shop.address}${hash}`);
  await page.waitForLoadState('networkidle');
};
const firstRow = async (page: Page): Promise<void> => {
  await page.locator('tbody, [data-cards]').getByRole('link').first().click();
  await page.getByRole('navigation', { name: 'Where you are' }).waitFor();
  await page.getByRole('main').getByRole('heading', { level: 2 }).first().waitFor();
};

/** In this order: the last ones change the shop, or leave a dialog open. */
const screens: readonly (readonly [string, (page: Page, shop: Shop) => Promise<void>])[] = [
  ['overview', (page, shop) => at(page, shop, '#/')],
  ['api-keys', (page, shop) => at(page, shop, '#/api-keys')],
  ['api-key', async (page, shop) => (await at(page, shop, '#/api-keys?search=CRM'), firstRow(page))],
  ['endpoints', (page, shop) => at(page, shop, '#/endpoints')],
  ['endpoint', async (page, shop) => (await at(page, shop, '#/endpoints?search=warehouse'), firstRow(page))],
  ['deliveries', (page, shop) => at(page, shop, '#/deliveries')],
  [
    'delivery',
    async (page, shop) => {
      await at(page, shop, '#/deliveries?filter.status=retrying');
      await firstRow(page);
      const attempt = page.getByRole('button', { name: /^Details of/ }).first();
      await attempt.click();
      await attempt.evaluate((element) => element.scrollIntoView({ block: 'center' }));
    },
  ],
  ['events', (page, shop) => at(page, shop, '#/events')],
  ['event', async (page, shop) => (await at(page, shop, '#/events?filter.type=order.paid'), firstRow(page))],
  ['users', (page, shop) => at(page, shop, '#/users')],
  ['audit-log', (page, shop) => at(page, shop, '#/audit-log')],
  ['own-table', (page, shop) => at(page, shop, '#/products')],
  [
    'own-form',
    async (page, shop) => (
      await at(page, shop, '#/products?search=Huila'),
      await firstRow(page),
      page.getByRole('link', { name: 'Edit' }).click()
    ),
  ],
  [
    'revoke',
    async (page, shop) => {
      await at(page, shop, '#/api-keys?filter.owner=ada');
      await page
        .getByRole('checkbox', { name: /^Select/ })
        .first()
        .check();
      await page.getByRole('button', { name: 'Revoke selected keys' }).click();
      await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).waitFor();
    },
  ],
  [
    'secret',
    async (page, shop) => {
      await page.keyboard.press('Escape');
      await at(page, shop, '#/endpoints?search=hooks');
      await firstRow(page);
      await page.getByRole('button', { name: 'Rotate the signing secret' }).click();
      await page.getByRole('dialog').getByRole('button', { name: 'Rotate', exact: true }).click();
      // No picture shows a secret that was one, however briefly.
      await page
        .getByRole('dialog')
        .getByRole('textbox')
        .evaluate((field) => void Object.assign(field, { value: 'whsec_anExampleThatIsNobodysSecret0123456789=' }));
    },
  ],
];

/** Of the portal, as a customer sees it. */
const portalScreens: readonly (readonly [string, (page: Page, shop: Shop) => Promise<void>])[] = [
  ['overview', (page, shop) => at(page, shop, '#/')],
  ['keys', (page, shop) => at(page, shop, '#/api-keys')],
  ['deliveries', (page, shop) => at(page, shop, '#/deliveries')],
  ['requests', (page, shop) => at(page, shop, '#/requests')],
  ['event-type', async (page, shop) => (await at(page, shop, '#/event-types'), firstRow(page))],
];

await buildAdminSite((line) => console.log(line));
mkdirSync(folder, { recursive: true });
/** All screens of a site in one look. */
async function picture(
  { browser, shop, site, look }: { readonly browser: Browser; readonly shop: Shop; readonly site: string; readonly look: string },
  user: string,
  list: typeof screens,
): Promise<void> {
  const context = await browser.newContext({ ...looks[look], locale: 'en-GB', timezoneId: 'UTC', reducedMotion: 'reduce' });
  context.setDefaultTimeout(15_000);
  const page = await context.newPage();
  await page.clock.setFixedTime(NOW);
  const take = async (name: string): Promise<void> => {
    await page.waitForLoadState('networkidle');
    await page.getByText('Loading …').first().waitFor({ state: 'hidden' });
    // The pointer rests where nothing lights up, and what fades has faded.
    await page.mouse.move(0, 0);
    await page.waitForTimeout(400);
    const file = `${site}-${name}-${look}.png`;
    await page.screenshot({ path: join(folder, file), animations: 'disabled', caret: 'hide' });
    if (existsSync(join(shown, file))) copyFileSync(join(folder, file), join(shown, file));
  };
  await page.goto(shop.address);
  await page.getByLabel('User name or e-mail address').fill(user);
  if (site === 'admin') await take('login');
  await page.getByRole('textbox', { name: 'Password' }).fill(PASSWORD);
  await page.getByRole('button', { name: 'Log in', exact: true }).click();
  await page.getByRole('heading', { name: site === 'admin' ? 'Bean & Leaf' : 'Overview', level: 1 }).waitFor();
  for (const [name, open] of list) {
    await open(page, shop);
    await take(name);
  }
  await context.close();
  console.log(`${site}, ${look}: ${list.length} screens`);
}

async function admin(): Promise<void> {
  let shop: Shop;
  shop = await Shop.open({ now: OPENED, transport: receivers(() => shop) });
  await fill(shop);
  const browser = await launchChromium();
  try {
    for (const look of Object.keys(looks)) await picture({ browser, shop, site: 'admin', look }, STAFF, screens);
  } finally {
    await browser.close();
    await shop[Symbol.asyncDispose]();
  }
}

const order = z.object({ order: z.string(), item: z.string(), quantity: z.number(), total: z.string() });
const example = { order: 'BL-1041', item: 'Yirgacheffe', quantity: 2, total: '31.90' };
const eventTypes = [
  ['order.placed', 'A customer has placed an order.'],
  ['order.paid', 'The payment of an order has arrived.'],
  ['order.shipped', 'The parcel is on its way.'],
  ['order.cancelled', 'An order was cancelled, by the customer or by us.'],
].map(([name = '', description = '']) => eventType(name, order, { description, example }));

async function portal(): Promise<void> {
  let shop: Shop;
  const open = { title: 'Bean & Leaf for developers', now: OPENED, anonymous: true, eventTypes };
  await using made = await PortalShop.open({ ...open, transport: receivers(() => shop) });
  ({ shop } = made);
  await fill(shop);
  const [ada] = await shop.db.query<{ id: string }>("select id from users where username = 'ada'");
  await fillRequests(shop, ada?.id ?? '');
  for (const look of ['light', 'dark']) await picture({ browser: made.browser.browser, shop, site: 'portal', look }, 'ada', portalScreens);
}

// Both, or the one that is named: `npm run screenshots portal`.
const [only] = process.argv.slice(2);
if (only !== 'portal') await admin();
if (only !== 'admin') await portal();
