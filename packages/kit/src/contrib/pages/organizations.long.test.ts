import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { betterAuth as createAuth } from 'better-auth';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { launchChromium } from '../../../../../test/provision/chromium.ts';
import { freePort } from '../../../../../test/provision/free-port.ts';
import { instanceOptions, type Mail } from '../../../test/better-auth/auth-app.ts';
import { type App, createApp, migrateApp } from '../../app/index.ts';
import { openDatabase } from '../../db/index.ts';
import { oneTimeCode } from '../../testing/index.ts';
import { betterAuth } from '../better-auth/index.ts';
import { pages } from './index.ts';

// The pages on better-auth: what the short test of accounts() shows, by the routes of its plugins.

const PASSWORD = 'correct horse battery';
const mails: Mail[] = [];
const folder = mkdtempSync(join(tmpdir(), 'kit-pages-'));
const complaints: string[] = [];
let app: App;
let browser: Browser;
let address = '';

beforeAll(async () => {
  const port = await freePort();
  address = `http://127.0.0.1:${port}`;
  const database = await openDatabase(`sqlite:${join(folder, 'app.db')}`);
  const auth = createAuth({ ...instanceOptions(database, mails), baseURL: address });
  app = createApp({ title: 'Teams', database, modules: [betterAuth(auth), pages()], mount: {}, log: { level: 'silent' } });
  await app.openDatabases();
  await migrateApp(app);
  await app.listen({ port });
  browser = await launchChromium();
}, 300_000);
afterAll(async () => {
  await browser?.close();
  await app?.close();
  rmSync(folder, { recursive: true, force: true });
});

async function person(): Promise<Page> {
  const context = await browser.newContext({ viewport: { width: 390, height: 800 }, colorScheme: 'dark' });
  context.setDefaultTimeout(60_000);
  const page = await context.newPage();
  page.on('pageerror', (error) => void complaints.push(String(error)));
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

const said = (page: Page, text: string) => page.getByText(text).filter({ visible: true }).first().waitFor();

const newest = (kind: Mail['kind'], to: string) => {
  const mail = mails.findLast((each) => each.kind === kind && each.to === to);
  if (mail === undefined) throw new Error(`no ${kind} mail to ${to}`);
  return mail.url;
};

async function signUp(page: Page, name: string): Promise<void> {
  await page.goto(`${address}/account/sign-up`);
  await heading(page, 'Create an account');
  await fill(page, 'Name', name);
  await fill(page, 'E-mail address', `${name}@example.com`);
  await fill(page, 'Password', PASSWORD);
  await press(page, 'Create an account');
  await said(page, 'open the link in the mail');
  await page.goto(newest('verify', `${name}@example.com`));
}

async function logIn(page: Page, name: string, password = PASSWORD): Promise<void> {
  await heading(page, 'Log in');
  await fill(page, 'E-mail address', `${name}@example.com`);
  await fill(page, 'Password', password);
  await press(page, 'Log in');
}

test('people sign up, found an organization, invite, accept, and manage members', { timeout: 600_000 }, async () => {
  const ada = await person();
  await signUp(ada, 'ada');
  await ada.goto(`${address}/account/tenants`);
  await logIn(ada, 'ada');
  await heading(ada, 'Your organizations');
  await fill(ada, 'Name of the organization', 'Nördlicht');
  await press(ada, 'Create');
  await ada.getByRole('link', { name: 'Members' }).click();
  await heading(ada, 'Nördlicht');
  await fill(ada, 'E-mail address', 'bob@example.com');
  await press(ada, 'Invite');
  await said(ada, 'The invitation is on its way.');
  await ada.locator('#invitations li').waitFor();

  const bob = await person();
  await signUp(bob, 'bob');
  await bob.goto(`${address}/account/link#tenant-invitation=${newest('invitation', 'bob@example.com')}`);
  await heading(bob, 'Accept the invitation');
  await bob.getByRole('link', { name: 'I have an account' }).click();
  await logIn(bob, 'bob');
  // Back at the invitation, which waited in the session of the browser.
  await heading(bob, 'Accept the invitation');
  await press(bob, 'Accept');
  await heading(bob, 'Your organizations');
  await press(bob, 'Work in it');
  await said(bob, 'You work in this organization now.');
  await bob.getByRole('link', { name: 'Members' }).click();
  await heading(bob, 'Nördlicht');
  expect(await bob.getByRole('button', { name: 'Invite' }).filter({ visible: true }).count()).toBe(0);

  await ada.reload();
  await heading(ada, 'Nördlicht');
  const row = ada.locator('#members li', { hasText: 'bob@example.com' });
  await row.getByLabel('Roles').selectOption('admin');
  await row.getByRole('button', { name: 'Save' }).click();
  await said(ada, 'Saved.');
  await ada.locator('#members li', { hasText: 'bob@example.com' }).locator('[data-field="roles"]', { hasText: 'admin' }).waitFor();
  await ada.locator('#members li', { hasText: 'bob@example.com' }).getByRole('button', { name: 'Remove' }).click();
  await ada.locator('dialog#sure').getByRole('button', { name: 'Continue' }).click();
  await expect.poll(() => ada.locator('#members li').count(), { timeout: 60_000 }).toBe(1);
  expect(complaints.splice(0)).toEqual([]);
});

test('a second factor is set up and asked for, and a forgotten password is replaced', { timeout: 600_000 }, async () => {
  const eve = await person();
  await signUp(eve, 'eve');
  await eve.goto(`${address}/account/`);
  await logIn(eve, 'eve');
  await heading(eve, 'Your account');
  await eve.locator('#factor-begin').getByLabel('Password').fill(PASSWORD);
  await press(eve, 'Set up one-time codes');
  const secret = await eve.locator('[data-secret]:visible').textContent();
  await fill(eve, 'One-time code', oneTimeCode(secret ?? ''));
  await press(eve, 'Confirm');
  await said(eve, 'Logins ask for a one-time code.');
  const code = (await eve.locator('[data-codes] code').first().textContent()) ?? '';
  await eve.getByRole('button', { name: 'Log out' }).click();
  await heading(eve, 'Log in');
  await eve.goto(`${address}/account/forgot`);
  await heading(eve, 'Set a new password');
  await fill(eve, 'E-mail address', 'eve@example.com');
  await press(eve, 'Send the link');
  await said(eve, 'a mail with a link is on its way');
  await eve.goto(newest('reset', 'eve@example.com'));
  await heading(eve, 'Choose a new password');
  expect(eve.url()).not.toContain('token');
  await fill(eve, 'New password', 'another horse battery');
  await press(eve, 'Save the password');
  await said(eve, 'The password is set.');
  await eve.goto(`${address}/account/sign-in`);
  await logIn(eve, 'eve', 'another horse battery');
  await fill(eve, 'One-time code', code);
  await press(eve, 'Log in');
  await heading(eve, 'Your account');
  expect(complaints.splice(0)).toEqual([]);
});
