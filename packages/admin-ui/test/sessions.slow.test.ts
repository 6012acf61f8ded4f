import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { accountsOf, changeStaff } from '../../kit/src/contrib/accounts/index.ts';
import { AdminBrowser, go, logIn } from './admin-browser.ts';
import { NOW } from './shop/fill.ts';
import { PASSWORD, Shop, STAFF } from './shop/shop.ts';

const DAY_MS = 24 * 3_600_000;

let shop: Shop;
let admin: AdminBrowser;
let page: Page;

beforeAll(async () => {
  shop = await Shop.open({ now: NOW });
  await shop.newUser({ username: 'ada', email: 'ada@acme.example' });
  admin = await AdminBrowser.open(shop);
});
afterAll(async () => {
  await admin.close();
  await shop[Symbol.asyncDispose]();
});
afterEach(async () => {
  await page.context().close();
  admin.expectQuiet();
});

describe('getting in', () => {
  test('a staff member logs in and out, and the way back shows nothing', async () => {
    page = await admin.page({ anonymous: true });
    await page.goto(`${shop.address}#/users`);
    await logIn(page);
    await page.getByRole('heading', { name: 'Users', level: 1, exact: true }).waitFor();
    await page.getByRole('button', { name: STAFF }).click();
    await page.getByRole('menuitem', { name: 'Log out' }).click();
    await page.getByText('Log in with your staff account.').waitFor();
    await page.goto(`${shop.address}#/users`);
    await page.getByText('Log in with your staff account.').waitFor();
    await expect.poll(() => page.getByRole('table').count()).toBe(0);
  });

  test('a wrong password is said at the form, and the right one works after it', async () => {
    page = await admin.page({ anonymous: true });
    await page.goto(shop.address);
    await logIn(page, STAFF, 'not the password');
    await page.getByRole('alert').filter({ hasText: 'The user name or the password is wrong.' }).waitFor();
    await logIn(page);
    await page.getByRole('heading', { name: 'Bean & Leaf', level: 1, exact: true }).waitFor();
  });

  test('too many attempts say how long to wait', async () => {
    page = await admin.page({ anonymous: true });
    await page.route('**/api/login', (route) =>
      route.request().method() === 'GET'
        ? route.continue()
        : route.fulfill({
            status: 429,
            headers: { 'retry-after': '42', 'content-type': 'application/problem+json' },
            body: '{"code":"throttled","detail":"Too many requests."}',
          }),
    );
    await page.goto(shop.address);
    await logIn(page);
    await page.getByRole('alert').filter({ hasText: 'Try again in 42 seconds.' }).waitFor();
  });

  test('an account that is not staff is refused at the login', async () => {
    page = await admin.page({ anonymous: true });
    await page.goto(shop.address);
    await logIn(page, 'ada');
    await page.getByRole('alert').filter({ hasText: 'not a staff member' }).waitFor();
    expect(await page.context().cookies()).toEqual([]);
  });

  test('who loses the staff flag is told on the next request, sees no data and can log out', async () => {
    const user = await shop.newUser({ username: 'temp', is_staff: true });
    page = await admin.page({ anonymous: true });
    await page.goto(`${shop.address}#/users`);
    await logIn(page, 'temp');
    await page.getByRole('heading', { name: 'Users', level: 1, exact: true }).waitFor();
    await changeStaff(shop.db, user.id, false, accountsOf(shop.app.db).management('test'));
    await page.getByRole('button', { name: 'Load the list again' }).click();
    await page.getByRole('heading', { name: 'Staff only', exact: true }).waitFor();
    await expect.poll(() => page.getByText(STAFF).count()).toBe(0);
    await page.getByRole('button', { name: 'Log out' }).click();
    await page.getByText('Log in with your staff account.').waitFor();
    await page.goto(shop.address);
    await page.getByText('Log in with your staff account.').waitFor();
  });
});

describe('a session that ends', () => {
  test('is asked for on top of the page, and the page goes on where it was', async () => {
    page = await admin.page({ anonymous: true });
    await page.goto(`${shop.address}#/users?search=ada&filter.active=yes`);
    await logIn(page);
    await page.getByRole('link', { name: 'ada', exact: true }).waitFor();
    await page.context().clearCookies();
    await page.getByRole('button', { name: 'Load the list again' }).click();
    const dialog = page.getByRole('dialog', { name: 'Your session has ended' });
    await dialog.waitFor();
    await page.keyboard.press('Escape');
    await expect.poll(() => dialog.isVisible()).toBe(true);
    await page.getByRole('textbox', { name: 'Password' }).fill(PASSWORD);
    await page.getByRole('button', { name: 'Log in', exact: true }).click();
    await dialog.waitFor({ state: 'hidden' });
    expect(new URL(page.url()).hash).toBe('#/users?search=ada&filter.active=yes');
    await page.getByRole('link', { name: 'ada', exact: true }).waitFor();
  });

  test('is said by the bar without a click, and the bar asks no more until somebody logs in', async () => {
    page = await admin.page({ anonymous: true });
    await page.goto(`${shop.address}#/users`);
    await logIn(page);
    await page.getByRole('link', { name: 'ada', exact: true }).waitFor();
    await page.getByText('working').waitFor();
    const asked: number[] = [];
    page.on('response', (response) => {
      if (new URL(response.url()).pathname.endsWith('/api/state')) asked.push(response.status());
    });
    await page.context().clearCookies();
    await page.getByRole('dialog', { name: 'Your session has ended' }).waitFor();
    const bar = page.locator('section[aria-label="Site health"]');
    await expect.poll(() => bar.textContent()).toContain('Your session has ended. Log in again to see current data.');
    expect(await bar.getAttribute('data-tone')).toBe('bad');
    await page.getByRole('textbox', { name: 'Password' }).fill(PASSWORD);
    await page.getByRole('button', { name: 'Log in', exact: true }).click();
    await expect.poll(() => bar.textContent()).toContain('working');
    expect(asked.filter((status) => status === 401)).toHaveLength(1);
  });

  test('by its lifetime is over permanently, whatever the page still holds', async () => {
    page = await admin.page({ anonymous: true });
    await page.goto(`${shop.address}#/users`);
    await logIn(page);
    await page.getByRole('link', { name: 'ada', exact: true }).click();
    // Of a single record the dialog shows nothing of its dry run: the answer is what there is to wait for.
    const preview = page.waitForResponse((response) => new URL(response.url()).pathname.endsWith('/preview'));
    await page.getByRole('button', { name: 'Deactivate' }).click();
    expect((await preview).status()).toBe(200);
    const before = shop.clock.now();
    shop.clock.advance(15 * DAY_MS);
    // On a busy machine the bar finds out first, and its dialog covers the button: the change is sent all the same.
    await page.getByRole('dialog').getByRole('button', { name: 'Deactivate' }).dispatchEvent('click');
    await page.getByRole('dialog', { name: 'Your session has ended' }).waitFor();
    shop.clock.set(before);
    expect(await shop.db.query("select is_active from users where username = 'ada'")).toEqual([{ is_active: expect.toBeOneOf([true, 1]) }]);
  });
});

describe('a page of another site', () => {
  let evil: Server;
  let address: string;
  beforeAll(async () => {
    evil = createServer((_request, response) => response.setHeader('content-type', 'text/html').end('<!doctype html><title>evil</title>'));
    await new Promise<void>((done) => evil.listen(0, '127.0.0.1', done));
    // Another host name is another site to the browser; both are loopback.
    address = `http://localhost:${(evil.address() as AddressInfo).port}/`;
  });
  afterAll(() => void evil.close());

  test('changes nothing by form or by script, and reads nothing', async () => {
    const user = await shop.newUser({ username: 'victim' });
    page = await admin.at('#/users');
    const other = await page.context().newPage();
    await other.goto(address);
    const target = `${shop.address}api/resources/users/actions/deactivate`;
    const outcome = await other.evaluate(
      `(async () => {
        const body = JSON.stringify({ ids: [${JSON.stringify(user.id)}], fields: {} });
        const outcomes = [];
        for (const type of ['text/plain', 'application/json']) {
          try {
            const answer = await fetch(${JSON.stringify(target)}, { method: 'POST', credentials: 'include', headers: { 'content-type': type }, body });
            outcomes.push(String(answer.status));
          } catch { outcomes.push('unreadable'); }
        }
        try {
          await (await fetch(${JSON.stringify(`${shop.address}api/session`)}, { credentials: 'include' })).text();
          outcomes.push('read');
        } catch { outcomes.push('unreadable'); }
        return outcomes;
      })()`,
    );
    expect(outcome).toEqual(['unreadable', 'unreadable', 'unreadable']);
    await other.evaluate(
      `(() => {
        const form = document.createElement('form');
        form.method = 'post'; form.enctype = 'text/plain'; form.action = ${JSON.stringify(target)};
        const field = document.createElement('input');
        field.name = '{"ids":[${JSON.stringify(user.id).slice(1, -1)}],"x":"'; field.value = '"}';
        form.append(field); document.body.append(form); form.submit();
      })()`,
    );
    await other.waitForURL(target);
    expect(await shop.db.query('select is_active from users where id = $1', [user.id])).toEqual([
      { is_active: expect.toBeOneOf([true, 1]) },
    ]);
    await other.close();
  });

  test('cannot show the site in a frame', async () => {
    page = await admin.at('#/users');
    const other = await page.context().newPage();
    await other.goto(address);
    await other.evaluate(`document.body.append(Object.assign(document.createElement('iframe'), { src: ${JSON.stringify(shop.address)} }))`);
    await other.waitForTimeout(300);
    const inner = other.frames().find((frame) => frame !== other.mainFrame());
    expect(
      await inner
        ?.locator('#root')
        .count()
        .catch(() => 0),
    ).toBe(0);
    await other.close();
  });

  test('even the session cookie alone, without the token, changes nothing', async () => {
    page = await admin.at('#/users');
    const status = await page.evaluate(
      `fetch('api/resources/users/actions/deactivate', { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{"ids":["x"],"fields":{}}' }).then((answer) => answer.status)`,
    );
    expect(status).toBe(403);
  });

  test('a token from before another login is renewed, not complained about', async () => {
    page = await admin.page({ anonymous: true });
    await page.goto(`${shop.address}#/users`);
    await logIn(page);
    await page.getByRole('heading', { name: 'Users', level: 1, exact: true }).waitFor();
    const tab = await page.context().newPage();
    await tab.context().clearCookies();
    await tab.goto(shop.address);
    await logIn(tab);
    await tab.getByRole('heading', { name: 'Bean & Leaf', level: 1, exact: true }).waitFor();
    // A tab in the background draws once a second.
    await page.bringToFront();
    await go(page, shop, '#/users?search=victim');
    await page.getByRole('link', { name: 'victim' }).click();
    await page.getByRole('button', { name: 'Make staff' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Make staff' }).click();
    await page.getByText('made staff').first().waitFor();
  });
});

describe('without the server', () => {
  test('the page keeps what it has, says so, and recovers by itself', async () => {
    page = await admin.at('#/users');
    await page.context().setOffline(true);
    await page.getByRole('button', { name: 'Load the list again' }).click();
    await page.getByRole('status').filter({ hasText: 'You are offline' }).waitFor();
    await expect.poll(() => page.getByRole('link', { name: STAFF, exact: true }).isVisible()).toBe(true);
    await page.context().setOffline(false);
    const recovered = page.getByRole('status').filter({ hasText: 'You are offline' }).waitFor({ state: 'hidden' });
    // The page asks again by itself every few seconds: on a busy machine the button is gone before it is clicked.
    const clicked = page
      .getByRole('button', { name: 'Try now' })
      .click()
      .catch(() => {});
    await Promise.race([recovered, clicked]);
    await recovered;
  });
});
