import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Locator, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { folderMail } from '../../kit/src/contrib/accounts/index.ts';
import { jobs, runDueJobs } from '../../kit/src/contrib/jobs/index.ts';
import { createTenant, tenants } from '../../kit/src/contrib/tenants/index.ts';
import { Controller, jsonSchema, route } from '../../kit/src/http/index.ts';
import { isAuthenticated } from '../../kit/src/permissions/index.ts';
import { oneTimeCode } from '../../kit/src/testing/one-time-code.ts';
import { AdminBrowser, logIn } from './admin-browser.ts';
import { NOW } from './shop/fill.ts';
import { PASSWORD, Shop, STAFF } from './shop/shop.ts';

/** Who the application sees. */
class Me extends Controller {
  me = route.get('/', { permission: isAuthenticated, response: jsonSchema<object>({}) }, async ({ user, caller }) => ({
    user: user.username,
    tenant: (await caller()).tenant,
  }));
}

const folder = mkdtempSync(join(tmpdir(), 'kit-admin-mail-'));
const mail = { ...folderMail({ folder }), linkUrl: 'http://127.0.0.1/admin/' };

let shop: Shop;
let admin: AdminBrowser;
let page: Page;
let secret = '';

beforeAll(async () => {
  shop = await Shop.open({
    now: NOW,
    accounts: { secondFactor: 'required', signUp: 'invitation', mail },
    modules: [jobs(), tenants()],
    mount: { '/v1': { '/me': Me } },
    viewAs: true,
  });
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
/** Of the mail that the page shows: its place in the site. */
const shownLink = async (): Promise<string> => {
  await page.getByRole('button', { name: 'Show the link' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Show the link' }).click();
  const secret = page.getByRole('dialog', { name: 'Link, shown once' });
  await secret.getByText('It works once.').waitFor();
  const link = /#(?:invitation|reset|email)=[\w-]+$/.exec(await secret.getByRole('textbox').inputValue())?.[0] ?? '';
  expect(link).not.toBe('');
  await secret.getByRole('button', { name: 'I have stored it' }).click();
  return link;
};
const overview = (): Promise<void> => page.getByRole('heading', { name: 'Bean & Leaf', level: 1, exact: true }).waitFor();

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
  // The link itself is shown to an administrator who asks for it.
  await expect.poll(() => page.getByText('#invitation=(hidden)').count()).toBe(1);
  const link = await shownLink();
  await page.goto('about:blank');
  await page.goto(`${shop.address}${link}`);
  await page.getByRole('heading', { name: 'Choose a password', exact: true }).waitFor();
  expect(page.url()).not.toContain('invitation');
  await page.getByLabel('New password').fill('a password for grace');
  await page.getByRole('button', { name: 'Save the password' }).click();
  await page.getByText('The password is set.').waitFor();
});

test('a forgotten password: the page says that a link is on its way, and the link sets a new one', async () => {
  await shop.newUser({ username: 'nora', email: 'nora@example.com' });
  page = await admin.page({ anonymous: true });
  await page.goto(shop.address);
  await page.getByText('Forgot your password?').click();
  await page.getByLabel('User name or e-mail address').fill('nora');
  await page.getByRole('button', { name: 'Send the link' }).click();
  await page.getByText('a link is on its way. It works for an hour.').waitFor();
  expect(await page.getByRole('alert').count()).toBe(0);
  await page.getByRole('button', { name: 'Back to the login' }).click();
  await page.getByText('Log in with your staff account.').waitFor();

  await page.goto('about:blank');
  await page.goto(`${shop.address}${await linkIn('Set a new password')}`);
  await page.getByRole('heading', { name: 'Set a new password', exact: true }).waitFor();
  await page.getByLabel('New password').fill('a new password for nora');
  await page.getByRole('button', { name: 'Save the password' }).click();
  await page.getByText('The password is set.').waitFor();
  await page.getByRole('button', { name: 'Go to the login' }).click();
  await page.getByText('Log in with your staff account.').waitFor();
});

test('another e-mail address: the page says that a link is on its way, and the link changes the address', async () => {
  shop.clock.advance(60_000);
  page = await admin.page({ anonymous: true });
  await page.goto(shop.address);
  await logIn(page);
  await enterCode('Log in');
  await overview();
  await page.getByRole('button', { name: STAFF }).click();
  await page.getByRole('menuitem', { name: 'Your account' }).click();
  await page.getByLabel('New e-mail address').fill('olivia@new.example');
  await page.getByRole('button', { name: 'Send the link' }).click();
  await page.getByText('A link is on its way to the new address.').waitFor();
  expect(await page.getByRole('alert').filter({ hasText: 'cannot be read' }).count()).toBe(0);

  await page.goto('about:blank');
  await page.goto(`${shop.address}${await linkIn('Confirm your e-mail address')}`);
  await page.getByRole('button', { name: 'Use this address' }).click();
  await page.getByText('The address is changed.').waitFor();
  await expect.poll(() => shop.db.query('select email from users where username = $1', [STAFF])).toEqual([{ email: 'olivia@new.example' }]);
});

/** From the newest mail with this subject, as the receiver reads it. */
async function linkIn(subject: string): Promise<string> {
  await runDueJobs(shop.db);
  const sent = (await mail.sent?.list(10))?.find((each) => each.subject.startsWith(subject));
  return /#(?:reset|email)=[A-Za-z0-9_-]+/.exec(sent?.text ?? '')?.[0] ?? '';
}

test('an administrator looks at the application as a user, from the page of the user or of the member, until it is ended', async () => {
  const vera = await shop.newUser({ username: 'vera' });
  const tenant = await createTenant(shop.db, { name: 'North Studio', slug: 'north', owner: vera.id });
  shop.clock.advance(30_000);
  page = await admin.page({ anonymous: true });
  await page.goto(`${shop.address}#/users/${vera.id}`);
  await logIn(page);
  await enterCode('Log in');
  const me = async () => (await page.request.get(new URL('/v1/me', shop.address).href)).json() as Promise<object>;
  const banner = page.getByRole('region', { name: 'View as a user' });
  const begin = async (fields: (dialog: Locator) => Promise<unknown>): Promise<void> => {
    await page.getByRole('button', { name: 'View as', exact: true }).click();
    const dialog = page.getByRole('dialog');
    await fields(dialog);
    await dialog.getByRole('button', { name: 'Begin' }).click();
    // The message of the view before may still be there.
    await page.getByText('This browser shows the application as vera sees it.').first().waitFor();
    await banner.waitFor();
  };
  await begin(async (dialog) => {
    await dialog.getByRole('button', { name: 'Begin' }).click();
    await dialog.getByText('Required').waitFor();
    await dialog.getByLabel('Tenant').selectOption({ label: 'North Studio' });
    await dialog.getByLabel('Reason').fill('Ticket 7');
  });
  await banner.getByText('sees in North Studio').waitFor();
  expect(await me()).toEqual({ user: 'vera', tenant: tenant.id });
  await banner.getByRole('button', { name: 'End the view' }).click();
  await banner.waitFor({ state: 'detached' });
  expect(await me()).toMatchObject({ user: STAFF });
  await page.goto(`${shop.address}#/tenant-members/${(await shop.db.query<{ id: string }>('select id from tenant_members'))[0]?.id}`);
  await begin(async (dialog) => {
    await expect.poll(() => dialog.getByLabel('Tenant').count()).toBe(0);
    await dialog.getByLabel('Reason').fill('Ticket 8');
  });
  expect(await me()).toEqual({ user: 'vera', tenant: tenant.id });
  await banner.getByRole('button', { name: 'End the view' }).click();
  await banner.waitFor({ state: 'detached' });
  // Nobody looks as a member of staff.
  const olivia = await shop.app.users?.findByLogin(shop.db, STAFF);
  await page.goto(`${shop.address}#/users/${olivia?.id}`);
  await page.getByRole('heading', { name: STAFF, level: 1, exact: true }).waitFor();
  await expect.poll(() => page.getByRole('button', { name: 'View as', exact: true }).count()).toBe(0);
});
