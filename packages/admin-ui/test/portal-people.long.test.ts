import type { Page, Route } from 'playwright-core';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { createApiKey } from '../../kit/src/contrib/apikeys/index.ts';
import { requestLogs } from '../../kit/src/contrib/requests/log/log.ts';
import { addMember, createTenant, resumeTenant, suspendTenant } from '../../kit/src/contrib/tenants/index.ts';
import { createEndpoint, publish } from '../../kit/src/contrib/webhooks/index.ts';
import { revokePortalLink } from '../../kit/src/portal/index.ts';
import { settled } from './admin-browser.ts';
import { findings } from './axe.ts';
import { PortalShop } from './shop/portal-shop.ts';

const TITLE = 'Bean & Leaf for developers';
const TENANTS = ['north', 'south'] as const;

let portal: PortalShop;
const ids: Record<string, string> = {};

/** Two tenants with the same things, named after their tenant, and somebody who is a member of both. */
beforeAll(async () => {
  portal = await PortalShop.open({
    title: TITLE,
    logo: '/logo.svg',
    colors: { accent: '#00563f', accentDark: '#9fe0c4' },
    locale: 'de',
    links: [{ label: 'Status page', href: 'https://status.example.com/' }],
    tenants: true,
    anonymous: true,
  });
  const { shop, customerId } = portal;
  const owner = await shop.newUser({ username: 'owner', email: 'owner@customer.example' });
  for (const slug of TENANTS) {
    const { id } = await createTenant(shop.db, { name: `The ${slug}`, slug, owner: owner.id });
    ids[slug] = id;
    await addMember(shop.db, { tenant: id, user: customerId, roles: ['member'] });
    const scopes = ['requests:read', 'webhooks:read'];
    const { raw } = await createApiKey(shop.db, { user: customerId, tenant: id, name: `key-of-${slug}`, scopes, quota: '10000/month' });
    await shop.db.transaction(async (tx) => {
      const endpoint = { owner: customerId, tenantKey: id, url: `http://127.0.0.1:9/of-${slug}`, events: ['*'] };
      await createEndpoint(tx, { ...endpoint, description: `of-${slug}` });
      await publish(tx, 'order.paid', { id: 1, note: `of-${slug}` }, { tenantKey: id });
    });
    for (const path of ['/v1/requests', '/v1/usage', `/v1/hooks/of-${slug}`])
      await fetch(new URL(path, shop.address), { headers: { 'x-api-key': raw } });
  }
  await requestLogs.of(shop.db).flush();
});
afterAll(() => portal[Symbol.asyncDispose]());

const other = (slug: (typeof TENANTS)[number]) => TENANTS.find((each) => each !== slug) ?? '';

async function enter(given: Parameters<PortalShop['link']>[0]): Promise<Page> {
  const page = await portal.browser.page({ anonymous: true });
  await page.goto(portal.addressOf(await portal.link(given)));
  await page.getByRole('button', { name: 'Open' }).click();
  await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor();
  await settled(page);
  return page;
}

test('a link opens by a click, once, and leaves nothing in the address', async () => {
  const { browser } = portal;
  const link = await portal.link({ tenant: 'north' });
  const page = await browser.page({ anonymous: true });
  await page.goto(portal.addressOf(link));
  await page.getByRole('heading', { level: 1 }).waitFor();
  expect(await findings(page)).toEqual([]);
  expect(page.url()).toBe(portal.shop.address);
  // Whatever loads the address clicks nothing: the link still opens.
  await fetch(portal.addressOf(link));
  await page.getByRole('button', { name: 'Open' }).click();
  await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor();
  const [cookie, ...more] = await page.context().cookies();
  expect(more).toEqual([]);
  expect(cookie).toMatchObject({ httpOnly: true, sameSite: 'Strict', path: '/portal' });
  await page.reload();
  await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor();
  expect(JSON.stringify(await page.evaluate('[{ ...localStorage }, { ...sessionStorage }, location.href]'))).not.toContain(link.token);
  await page.context().close();
  browser.expectQuiet();
});

test('a link that was opened before, was revoked, or has expired, does not open, and says so', async () => {
  const { browser, shop } = portal;
  const [used, revoked, expired] = [await portal.link({ tenant: 'north' }), await portal.link(), await portal.link({ expiresIn: 60 })];
  const opened = await browser.page({ anonymous: true });
  await opened.goto(portal.addressOf(used));
  await opened.getByRole('button', { name: 'Open' }).click();
  await opened.getByRole('heading', { name: 'Overview', level: 1 }).waitFor();
  await revokePortalLink(shop.db, revoked.id);
  shop.clock.advance(61_000);
  for (const link of [used, revoked, expired]) {
    const page = await browser.page({ anonymous: true });
    await page.goto(portal.addressOf(link));
    await page.getByRole('button', { name: 'Open' }).click();
    await page.getByText('This link does not work any more.').waitFor();
    expect(await page.getByRole('button', { name: 'Open' }).count()).toBe(0);
    await page.context().close();
  }
  // The session of a link ends with it, on the page that is open.
  await revokePortalLink(shop.db, used.id);
  await opened.getByRole('link', { name: 'Deliveries', exact: true }).click();
  await opened.getByRole('dialog', { name: 'Your session has ended' }).waitFor();
  await opened.context().close();
  browser.expectQuiet();
});

test('a link shows the pages that it names, and without manage it changes nothing', async () => {
  const { browser } = portal;
  const page = await enter({ tenant: 'north', pages: ['endpoints', 'deliveries'] });
  expect(await portal.screens(page)).toEqual(['Overview', 'Endpoints', 'Deliveries', 'Status page']);
  await portal.go('Endpoints', page);
  expect(await page.getByRole('link', { name: 'New endpoint' }).count()).toBe(0);
  await page.getByRole('link', { name: 'http://127.0.0.1:9/of-north', exact: true }).click();
  await page.getByRole('heading', { name: 'http://127.0.0.1:9/of-north', level: 1 }).waitFor();
  await settled(page);
  expect(await page.getByRole('link', { name: 'Edit' }).count()).toBe(0);
  await page.goto(`${portal.shop.address}#/api-keys`);
  await page.getByRole('heading', { name: 'Page not found', level: 1 }).waitFor();
  await page.context().close();
  browser.expectQuiet();
});

test.each(TENANTS)('twins: no page, no record and no file shows %s anything of the other', async (slug) => {
  const { browser } = portal;
  const page = await enter({ tenant: slug, manage: true });
  const screens = (await portal.screens(page)).filter((label) => !['Overview', 'Status page', 'API reference'].includes(label));
  expect(screens).toEqual(expect.arrayContaining(['API keys', 'Endpoints', 'Deliveries', 'Requests', 'Usage', 'Quotas', 'Agents']));
  const strange = new RegExp(`-of-${other(slug)}|of-${other(slug)}|${ids[other(slug)]}`);
  browser.answers.splice(0);
  let own = '';
  for (const screen of screens) {
    await portal.go(screen, page);
    own += await page.getByRole('main').innerText();
    const first = page.getByRole('main').locator('tbody, [data-cards]').getByRole('link').first();
    if ((await first.count()) === 0) continue;
    await first.click();
    await page.getByRole('navigation', { name: 'Where you are' }).waitFor();
    await settled(page);
    own += await page.getByRole('main').innerText();
  }
  await page.goto(`${portal.shop.address}#/`);
  await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor();
  await settled(page);
  // What the pages show, and what they were sent.
  for (const marker of [`key-of-${slug}`, `http://127.0.0.1:9/of-${slug}`]) expect(own).toContain(marker);
  expect(own).not.toMatch(strange);
  for (const { url, body } of browser.answers) expect(body, `the answer of ${url}`).not.toMatch(strange);
  await page.context().close();
  browser.expectQuiet();
});

test('a member of both chooses in the menu which tenant the pages are about; nothing of the other one stays', async () => {
  const { browser, shop } = portal;
  const page = await browser.page({ anonymous: true });
  await page.goto(shop.address);
  await page.getByLabel('User name or e-mail address').fill('dana');
  await page.getByRole('textbox', { name: 'Password' }).fill('correct horse battery');
  await page.getByRole('button', { name: 'Log in', exact: true }).click();
  await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor();
  const choice = page.getByRole('combobox', { name: 'Organization' });
  for (const slug of [...TENANTS, 'north'] as const) {
    await choice.selectOption(`The ${slug}`);
    await expect.poll(() => choice.inputValue().catch(() => ''), { timeout: 30_000 }).toBe(ids[slug]);
    await portal.go('Endpoints', page);
    await page.getByRole('link', { name: `http://127.0.0.1:9/of-${slug}`, exact: true }).waitFor();
    for (const screen of ['Endpoints', 'Deliveries', 'Requests', 'Usage']) {
      await portal.go(screen, page);
      expect(await page.getByRole('main').innerText(), `the page ${screen}`).not.toContain(`of-${other(slug as 'north')}`);
    }
  }
  expect(await findings(page)).toEqual([]);
  // In another tab the person goes to the other one: this one says so, and shows nothing of it.
  const tab = await page.context().newPage();
  await tab.goto(shop.address);
  await tab.getByRole('combobox', { name: 'Organization' }).selectOption('The south');
  await expect
    .poll(
      () =>
        tab
          .getByRole('combobox', { name: 'Organization' })
          .inputValue()
          .catch(() => ''),
      { timeout: 30_000 },
    )
    .toBe(ids['south']);
  await tab.getByRole('navigation', { name: 'Screens' }).getByRole('link', { name: 'Endpoints', exact: true }).click();
  await tab.getByRole('link', { name: 'http://127.0.0.1:9/of-south', exact: true }).waitFor();
  await page.getByRole('navigation', { name: 'Screens' }).getByRole('link', { name: 'Deliveries', exact: true }).click();
  await page.getByText('You chose another organization in another tab.').first().waitFor();
  expect(await page.getByRole('main').innerText()).not.toContain('of-south');
  await page.reload();
  await portal.go('Endpoints', page);
  await page.getByRole('link', { name: 'http://127.0.0.1:9/of-south', exact: true }).waitFor();
  await page.context().close();
  browser.expectQuiet();
});

test('a page that is open when its tenant is suspended shows nothing of it any more and says why, to a link and to a login', async () => {
  const { browser, shop } = portal;
  const of = (page: Page) => page.getByRole('link', { name: 'http://127.0.0.1:9/of-north', exact: true });
  const byLink = await enter({ tenant: 'north', manage: true });
  const byLogin = await browser.page({ anonymous: true });
  await byLogin.goto(shop.address);
  await byLogin.getByLabel('User name or e-mail address').fill('dana');
  await byLogin.getByRole('textbox', { name: 'Password' }).fill('correct horse battery');
  await byLogin.getByRole('button', { name: 'Log in', exact: true }).click();
  await byLogin.getByRole('combobox', { name: 'Organization' }).selectOption('The north');
  for (const page of [byLink, byLogin]) {
    await portal.go('Endpoints', page);
    await of(page).waitFor();
  }
  await suspendTenant(shop.db, ids['north'] as string);
  onTestFinished(async () => void (await resumeTenant(shop.db, ids['north'] as string)));
  for (const page of [byLink, byLogin]) await page.getByRole('button', { name: 'Load the list again' }).click();
  await byLink.getByRole('heading', { name: 'Suspended', level: 1 }).waitFor();
  await byLogin.getByRole('alert').filter({ hasText: 'Suspended' }).waitFor();
  for (const page of [byLink, byLogin]) {
    await page.getByText('This organization is suspended: nobody can work in it for now.').waitFor();
    expect(await page.locator('body').innerText()).not.toContain('of-north');
    expect(await findings(page)).toEqual([]);
  }
  // Who is a member of another one goes there.
  await byLogin.getByRole('combobox', { name: 'Organization' }).selectOption('The south');
  await portal.go('Endpoints', byLogin);
  await byLogin.getByRole('link', { name: 'http://127.0.0.1:9/of-south', exact: true }).waitFor();
  await resumeTenant(shop.db, ids['north'] as string);
  await byLink.getByRole('button', { name: 'Try again' }).click();
  await portal.go('Endpoints', byLink);
  await of(byLink).waitFor();
  for (const page of [byLink, byLogin]) await page.context().close();
  browser.expectQuiet();
});

const BUTTONS = { light: 'rgb(0, 86, 63)', dark: 'rgb(0, 86, 63)' } as const;

test.each(['light', 'dark'] as const)('the look of the app in %s colours: name, picture, colour, numbers, links', async (colorScheme) => {
  const { browser } = portal;
  const page = await enter({ tenant: 'north', manage: true });
  await page.emulateMedia({ colorScheme });
  await page.getByRole('banner').getByText(TITLE).waitFor();
  expect(await page.title()).toContain(TITLE);
  expect(await page.locator('header img').getAttribute('src')).toBe('/logo.svg');
  expect(await page.locator('header img').evaluate((image) => (image as unknown as { naturalWidth: number }).naturalWidth)).toBeGreaterThan(
    0,
  );
  const link = page.getByRole('link', { name: 'Status page' });
  expect(await link.getAttribute('href')).toBe('https://status.example.com/');
  await portal.go('API keys', page);
  const background = await page.evaluate(
    `getComputedStyle([...document.querySelectorAll('a')].find((each) => each.textContent.trim() === 'New API key')).backgroundColor`,
  );
  // White text on the colour of the app; on dark surfaces it is the colour of links.
  expect(background).toBe(BUTTONS[colorScheme]);
  expect(await findings(page, 'colours')).toEqual([]);
  await portal.go('Quotas', page);
  // 10000 as German pages write it.
  await page.getByText('10.000').first().waitFor();
  await page.context().close();
  browser.expectQuiet();
});

test('by keyboard alone: a link, the skip link, a page, a key, and the focus is where the eye is', async () => {
  const { browser } = portal;
  const page = await browser.page({ anonymous: true });
  await page.goto(portal.addressOf(await portal.link({ tenant: 'north', manage: true })));
  await page.getByRole('button', { name: 'Open' }).waitFor();
  const focused = () => page.evaluate(`document.activeElement.textContent || document.activeElement.getAttribute('aria-label') || ''`);
  /** Until this has the focus; every stop on the way shows that it has it. */
  const tabTo = async (wanted: string | RegExp): Promise<void> => {
    for (let steps = 0; steps < 80; steps += 1) {
      await page.keyboard.press('Tab');
      const now = String(await focused());
      const isSeen = await page.evaluate(`document.activeElement.matches(':focus-visible, body, [type=datetime-local]')`);
      expect(isSeen, `the focus on ${now}`).toBe(true);
      if (typeof wanted === 'string' ? now.trim() === wanted : wanted.test(now)) return;
    }
    throw new Error(`no stop is called ${String(wanted)}`);
  };
  await tabTo('Open');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor();
  await settled(page);
  await page.keyboard.press('Tab');
  expect(await focused()).toBe('Skip to the content');
  await tabTo('API keys');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'API keys', level: 1 }).waitFor();
  expect(await focused()).toBe('API keys');
  await tabTo('New API key');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'New API key', level: 1 }).waitFor();
  await settled(page);
  await page.locator('#field-name').focus();
  await page.keyboard.type('by keyboard');
  await page.keyboard.press('Tab');
  await page.keyboard.type('requests:read');
  await page.keyboard.press('Enter');
  await tabTo('Create API key');
  await page.keyboard.press('Enter');
  const dialog = page.getByRole('dialog');
  await dialog.waitFor();
  // The dialog moves the focus when it has opened.
  await expect.poll(() => page.evaluate(`document.querySelector('[role=dialog]').contains(document.activeElement)`)).toBe(true);
  await tabTo('I have stored it');
  await page.keyboard.press('Enter');
  await dialog.waitFor({ state: 'detached' });
  await page.getByRole('heading', { name: 'by keyboard', level: 1 }).waitFor();
  await page.context().close();
  browser.expectQuiet();
});

test('while a part is on its way the page says so; one that does not come leaves the rest of the site alone', async () => {
  const { browser } = portal;
  const page = await browser.page({ anonymous: true });
  const held: Route[] = [];
  await page.route(/\/assets\/(?:list-page|record-page|palette-dialog)-.*\.js$/, (route) => void held.push(route));
  await page.goto(portal.addressOf(await portal.link({ tenant: 'north', manage: true })));
  await page.getByRole('button', { name: 'Open' }).click();
  await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor();
  await page.getByRole('navigation', { name: 'Screens' }).getByRole('link', { name: 'Endpoints', exact: true }).click();
  await page.getByRole('main').getByRole('status').getByText('Loading').waitFor();
  const named = (name: string) => held.find((route) => route.request().url().includes(name));
  await expect.poll(() => named('list-page'), { timeout: 30_000 }).toBeDefined();
  await named('list-page')!.continue();
  await page.getByRole('heading', { name: 'Endpoints', level: 1 }).waitFor();
  await page.getByRole('button', { name: 'Search and actions' }).click();
  await page.getByRole('banner').getByRole('status').waitFor();
  await expect.poll(() => named('palette-dialog'), { timeout: 30_000 }).toBeDefined();
  await named('palette-dialog')!.abort();
  await page.getByRole('banner').getByRole('button', { name: 'Load again' }).waitFor();
  await page.getByRole('link', { name: 'http://127.0.0.1:9/of-north', exact: true }).click();
  await expect.poll(() => named('record-page'), { timeout: 30_000 }).toBeDefined();
  await named('record-page')!.abort();
  await page.getByRole('heading', { name: 'This page could not be shown' }).waitFor();
  expect(await portal.screens(page)).toContain('Deliveries');
  await page.context().close();
  browser.complaints.splice(0);
});
