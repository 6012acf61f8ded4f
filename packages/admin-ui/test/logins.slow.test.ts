import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { folderMail } from '../../kit/src/contrib/accounts/index.ts';
import { jobs, runDueJobs } from '../../kit/src/contrib/jobs/index.ts';
import { oneTimeCode } from '../../kit/src/testing/one-time-code.ts';
import { AdminBrowser, logIn } from './admin-browser.ts';
import { NOW } from './shop/fill.ts';
import { PASSWORD, Shop, STAFF } from './shop/shop.ts';

const folder = mkdtempSync(join(tmpdir(), 'kit-admin-mail-'));
const mail = { ...folderMail({ folder }), linkUrl: 'http://127.0.0.1/admin/' };

let shop: Shop;
let admin: AdminBrowser;
let page: Page;
let secret = '';

beforeAll(async () => {
  shop = await Shop.open({ now: NOW, accounts: { secondFactor: 'required', signUp: 'invitation', mail }, modules: [jobs()] });
  admin = await AdminBrowser.open(shop);
});
afterAll(async () => {
  await admin.close();
  await shop[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});
afterEach(async () => {
  await page.context().close();
  admin.expectQuiet();
});

const code = (): string => oneTimeCode(secret, shop.clock.now());
const enterCode = async (button: string, dialog = page.locator('body')): Promise<void> => {
  await dialog.getByLabel('One-time code').fill(code());
  await dialog.getByRole('button', { name: button }).click();
};
const overview = (): Promise<void> => page.getByRole('heading', { name: 'Overview', level: 1, exact: true }).waitFor();

test('staff set up one-time codes at the first login, and nothing else is open before', async () => {
  page = await admin.page({ anonymous: true });
  await page.goto(`${shop.address}#/users`);
  await logIn(page);
  await page.getByRole('heading', { name: 'Set up one-time codes', exact: true }).waitFor();
  await page.getByRole('img', { name: 'QR code with the key below' }).waitFor();
  secret = (await page.getByTestId('factor-secret').textContent()) ?? '';
  // Another page of the same session is no way around it.
  await page.goto(`${shop.address}#/api-keys`);
  await page.reload();
  await page.getByRole('heading', { name: 'Set up one-time codes', exact: true }).waitFor();
  await page.getByTestId('factor-secret').waitFor();
  secret = (await page.getByTestId('factor-secret').textContent()) ?? '';
  await enterCode('Confirm the code');
  await page.getByText('Store these recovery codes now').waitFor();
  await page.getByRole('button', { name: 'I have stored them' }).click();
  await page.getByRole('heading', { name: 'API keys', level: 1, exact: true }).waitFor();
});

test('a login asks for the code after the password, and says when it is wrong', async () => {
  shop.clock.advance(30_000);
  page = await admin.page({ anonymous: true });
  await page.goto(shop.address);
  await logIn(page);
  await page.getByLabel('One-time code').fill('not a code');
  await page.getByRole('button', { name: 'Log in' }).click();
  await page.getByRole('alert').filter({ hasText: 'The one-time code is wrong, or was used before.' }).waitFor();
  await enterCode('Log in');
  await overview();

  // The own account: sessions, and a new password.
  await page.getByRole('button', { name: STAFF }).click();
  await page.getByRole('menuitem', { name: 'Your account' }).click();
  await page.getByRole('heading', { name: 'Your account', level: 1, exact: true }).waitFor();
  await page.getByText('This session').waitFor();
  await page.getByText('recovery codes are left').waitFor();
  await page.getByRole('button', { name: 'End all others' }).click();
  await page.getByText('All other sessions ended.').waitFor();

  // After ten minutes the site asks in place, and goes on with what was asked for.
  shop.clock.advance(11 * 60_000);
  await page.getByRole('button', { name: 'New recovery codes' }).click();
  const dialog = page.getByRole('dialog', { name: 'Confirm that it is you' });
  await dialog.getByLabel('Password', { exact: true }).fill(PASSWORD);
  await dialog.getByRole('button', { name: 'Confirm' }).click();
  await enterCode('Confirm', dialog);
  await page.getByText('Store these recovery codes now').waitFor();
  await page.getByRole('button', { name: 'I have stored them' }).click();

  // An invitation, its mail in the folder, and the page that takes the link.
  await page.goto(`${shop.address}#/users/-/new`);
  await page.getByLabel('User name').fill('grace');
  await page.getByLabel('E-mail').fill('grace@example.com');
  await page.getByRole('button', { name: 'Create' }).click();
  await page.getByText('the invitation to grace@example.com is queued').waitFor();
  await runDueJobs(shop.db);
  await page.goto(`${shop.address}#/mails`);
  await page.getByRole('link', { name: /Your account at/ }).click();
  await page.getByText('Choose a password here:').waitFor();
  const link = /#invitation=[A-Za-z0-9_-]+/.exec((await page.locator('main').textContent()) ?? '')?.[0] ?? '';
  expect(link).not.toBe('');
  await page.goto('about:blank');
  await page.goto(`${shop.address}${link}`);
  await page.getByRole('heading', { name: 'Choose a password', exact: true }).waitFor();
  expect(page.url()).not.toContain('invitation');
  await page.getByLabel('New password').fill('a password for grace');
  await page.getByRole('button', { name: 'Save the password' }).click();
  await page.getByText('The password is set.').waitFor();
});
