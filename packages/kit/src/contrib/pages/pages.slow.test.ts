import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { betterAuth as createAuth } from 'better-auth';
import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { launchChromium } from '../../../../../test/provision/chromium.ts';
import { freePort } from '../../../../../test/provision/free-port.ts';
import { instanceOptions, type Mail } from '../../../test/better-auth/auth-app.ts';
import { admin } from '../../admin/index.ts';
import { type App, createApp, migrateApp } from '../../app/index.ts';
import { openDatabase } from '../../db/index.ts';
import { isAuthenticated } from '../../permissions/index.ts';
import { AccountController, accounts, accountsOf, createUser, type MailMessage } from '../accounts/index.ts';
import { audit } from '../audit/index.ts';
import { betterAuth } from '../better-auth/index.ts';
import { jobs } from '../jobs/index.ts';
import { addMember, TenantController, tenants } from '../tenants/index.ts';
import { pages } from './index.ts';

const PASSWORD = 'correct horse battery';
const STEP_MS = 60_000;

let browser: Browser;
const folder = mkdtempSync(join(tmpdir(), 'kit-pages-'));
const running: App[] = [];
const complaints: string[] = [];

beforeAll(async () => {
  browser = await launchChromium();
}, 300_000);
afterEach(async () => {
  for (const app of running.splice(0)) await app.close();
  expect(complaints.splice(0)).toEqual([]);
});
afterAll(async () => {
  await browser.close();
  rmSync(folder, { recursive: true });
});

/** A person's browser, on a phone. What a page complains about fails the test. */
async function person(): Promise<Page> {
  const context = await browser.newContext({ viewport: { width: 390, height: 800 }, locale: 'en-GB' });
  context.setDefaultTimeout(STEP_MS);
  const page = await context.newPage();
  page.on('pageerror', (error) => void complaints.push(String(error)));
  page.on('console', (message) => {
    const isAnswer = /^Failed to load resource: the server responded with a status of 4\d\d/.test(message.text());
    if (['error', 'warning'].includes(message.type()) && !isAnswer) complaints.push(message.text());
  });
  return page;
}

const fill = (page: Page, label: string, value: string) =>
  page.locator('main').getByLabel(label, { exact: true }).filter({ visible: true }).first().fill(value);
const press = (page: Page, name: string) =>
  page.locator('main').getByRole('button', { name, exact: true }).filter({ visible: true }).first().click();
async function heading(page: Page, name: string): Promise<void> {
  await page.getByRole('heading', { name, level: 1, exact: true }).waitFor();
  await page.locator('body[data-ready]').waitFor();
}

async function fitsThePhone(page: Page): Promise<void> {
  expect(await page.evaluate<number>('document.documentElement.scrollWidth')).toBeLessThanOrEqual(390);
}

async function logIn(page: Page, login: string, label: string): Promise<void> {
  await fill(page, label, login);
  await fill(page, 'Password', PASSWORD);
  await press(page, 'Log in');
}

test(
  'accounts: log in, create an organization, invite; a new person accepts with the link of the mail and leaves',
  { timeout: 600_000 },
  async () => {
    const mails: MailMessage[] = [];
    const port = { send: async (mail: MailMessage) => void mails.push(mail), linkUrl: 'http://127.0.0.1/account/link' };
    const app = createApp({
      title: 'Orders & more',
      database: `sqlite:${join(folder, 'accounts.db')}`,
      modules: [
        accounts({ mail: port, signUp: 'invitation', passwordCost: { logN: 4, r: 8, p: 1 }, secureCookies: false }),
        tenants({ create: isAuthenticated, mail: port }),
        jobs({ worker: true, pollIntervalMs: 200 }),
        pages(),
      ],
      mount: { '/v1': { '/account': AccountController, '/tenants': TenantController } },
      log: { level: 'silent' },
    });
    running.push(app);
    await app.openDatabases();
    await migrateApp(app);
    await app.ready();
    await createUser(app.db, { username: 'ada', email: 'ada@example.com', password: PASSWORD }, accountsOf(app.db).management(null));
    const address = await app.listen({ port: 0 });

    const ada = await person();
    await ada.goto(`${address}/account/tenants`);
    await heading(ada, 'Log in');
    await fitsThePhone(ada);
    await fill(ada, 'User name or e-mail address', 'ada');
    await fill(ada, 'Password', 'wrong');
    await press(ada, 'Log in');
    await ada.locator('form#sign-in .fault:visible').waitFor();
    await logIn(ada, 'ada', 'User name or e-mail address');
    // Back on the page that had sent her to the login.
    await heading(ada, 'Your organizations');
    await fill(ada, 'Name of the organization', 'Nördlicht <b>');
    await press(ada, 'Create');
    await ada.getByText('Nördlicht <b>').waitFor();
    // More than one page of the API has.
    const [tenant] = await app.db.query<{ id: string }>('select id from tenants');
    for (let count = 0; count < 101; count += 1) {
      const { id: user } = await createUser(app.db, { username: `member${count}` }, accountsOf(app.db).management(null));
      await addMember(app.db, { tenant: tenant?.id ?? '', user, roles: ['member'] });
    }
    await ada.getByRole('link', { name: 'Members' }).click();
    await ada.locator('#members li').nth(101).waitFor();
    await heading(ada, 'Nördlicht <b>');
    await fitsThePhone(ada);
    await fill(ada, 'E-mail address', 'bob@example.com');
    await press(ada, 'Invite');
    await ada.getByText('bob@example.com').waitFor();
    await expect.poll(() => mails.length, { timeout: STEP_MS }).toBe(1);
    const [, fragment = ''] = /link(#tenant-invitation=[\w-]+)/.exec(mails[0]?.text ?? '') ?? [];

    const bob = await person();
    await bob.goto(`${address}/account/link${fragment}`);
    await heading(bob, 'Accept the invitation');
    expect(bob.url()).not.toContain('tenant-invitation');
    await fill(bob, 'User name', 'bob');
    await fill(bob, 'Password', 'short');
    await press(bob, 'Create an account and accept');
    // What is wrong with a field is said, not only that something is.
    await bob
      .locator('.fault:visible')
      .filter({ hasText: /characters/ })
      .waitFor();
    await fill(bob, 'Password', PASSWORD);
    await press(bob, 'Create an account and accept');
    await heading(bob, 'Your organizations');
    await bob.getByRole('link', { name: 'Members' }).click();
    await heading(bob, 'Nördlicht <b>');
    await bob.locator('#members li').nth(1).waitFor();
    // He is an ordinary member: nothing here is his to change.
    expect(await bob.getByRole('button', { name: 'Invite' }).count()).toBe(0);
    await press(bob, 'Leave');
    await bob.getByRole('dialog').getByRole('button', { name: 'Continue' }).click();
    await bob.getByText('You are in no organization yet.').waitFor();
    await bob.getByRole('link', { name: 'Your account' }).first().click();
    await bob.getByText('this browser').waitFor();
    await bob.getByRole('button', { name: 'Log out' }).click();
    await heading(bob, 'Log in');
    // An invitation that was used is no way on, and is not waited for after the next login.
    await bob.goto(`${address}/account/link${fragment}`);
    await heading(bob, 'Accept the invitation');
    await fill(bob, 'User name', 'bobby');
    await fill(bob, 'Password', PASSWORD);
    await press(bob, 'Create an account and accept');
    await bob.locator('[data-purpose="dead"]').filter({ visible: true }).waitFor();
    await bob.goto(`${address}/account/sign-in`);
    await heading(bob, 'Log in');
    await logIn(bob, 'bob', 'User name or e-mail address');
    await heading(bob, 'Your account');
  },
);

test('better-auth: sign up, verify, log in to the admin site as staff', { timeout: 600_000 }, async () => {
  const mails: Mail[] = [];
  const database = await openDatabase(`sqlite:${join(folder, 'better-auth.db')}`);
  const port = await freePort();
  const address = `http://127.0.0.1:${port}`;
  const auth = createAuth({ ...instanceOptions(database, mails), baseURL: address });
  const app = createApp({
    title: 'Orders',
    database,
    modules: [betterAuth(auth), audit(), admin(), pages()],
    mount: {},
    log: { level: 'silent' },
  });
  running.push(app);
  await app.openDatabases();
  await migrateApp(app);
  await app.listen({ port });

  const ada = await person();
  await ada.goto(`${address}/account/sign-in`);
  await ada.getByRole('link', { name: 'Create an account' }).click();
  await fill(ada, 'Name', 'Ada');
  await fill(ada, 'E-mail address', 'ada@example.com');
  await fill(ada, 'Password', PASSWORD);
  await press(ada, 'Create an account');
  await ada.getByText('open the link in the mail').waitFor();
  await ada.goto(mails.find(({ kind }) => kind === 'verify')?.url ?? '');
  await heading(ada, 'Log in');
  await app.db.query(`update "user" set "role" = 'admin'`, []);
  await ada.goto(`${address}/admin/#/users`);
  await ada.getByRole('link', { name: 'Log in' }).click();
  await heading(ada, 'Log in');
  await logIn(ada, 'ada@example.com', 'E-mail address');
  await ada.waitForURL(`${address}/admin/**`);
  await ada.getByRole('button', { name: 'ada@example.com' }).waitFor();
});
