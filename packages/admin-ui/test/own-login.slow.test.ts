import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { launchChromium } from '../../../test/provision/chromium.ts';
import { admin } from '../../kit/src/admin/index.ts';
import { createApp, migrateApp, type App } from '../../kit/src/app/index.ts';
import type { Authenticator } from '../../kit/src/auth/index.ts';
import { audit } from '../../kit/src/contrib/audit/index.ts';
import { coreErrors } from '../../kit/src/errors/index.ts';
import { Controller, jsonSchema, raw, route } from '../../kit/src/http/index.ts';
import { allowAny } from '../../kit/src/permissions/index.ts';

// The site of an application with its own login page: no accounts(), no form of the site.

const CSRF = 'a token of the session';
const isLoggedIn = (cookie: string | string[] | undefined) => cookie?.includes('member=ada') === true;

const member: Authenticator = {
  name: 'member',
  securityScheme: { type: 'apiKey', in: 'cookie', name: 'member' },
  authenticate({ headers }) {
    const user = { id: '1', username: 'ada', email: null, is_active: true, is_staff: true, is_superuser: true };
    return isLoggedIn(headers['cookie']) ? { user, scheme: 'member', scopes: null } : null;
  },
  verifyCsrf({ headers }) {
    if (headers['x-csrf-token'] !== CSRF) throw coreErrors.csrf_failed();
  },
};

const Query = jsonSchema<{ return_to?: string }>({ type: 'object', properties: { return_to: { type: 'string', maxLength: 2000 } } });

class LoginController extends Controller {
  page = route.get('/', { permission: allowAny, auth: [], query: Query, response: raw('text/html') }, ({ query, reply }) => {
    void reply.header('set-cookie', 'member=ada; Path=/; HttpOnly');
    // A path of this site only.
    const back = /^\/(?![/\\])/.test(query.return_to ?? '') ? String(query.return_to) : '/';
    return `<!doctype html><title>Shop login</title><a href="${back.replaceAll('"', '&quot;')}">Back to where you were</a>`;
  });
}

let app: App;
let browser: Browser;
let address = '';

beforeAll(async () => {
  app = createApp({
    title: 'Shop',
    database: 'sqlite::memory:',
    authenticators: [member],
    login: {
      authenticators: ['member'],
      loginUrl: '/login',
      accountUrl: '/me',
      csrfToken: () => CSRF,
      logOut: ({ reply }) => void reply.header('set-cookie', 'member=; Path=/; Max-Age=0'),
    },
    modules: [audit(), admin()],
    mount: { '/': { '/login': LoginController } },
    log: { level: 'silent' },
  });
  await app.openDatabases();
  await migrateApp(app);
  address = `${await app.listen({ port: 0 })}/admin/`;
  browser = await launchChromium();
}, 300_000);
afterAll(async () => {
  await browser.close();
  await app.close();
});

test('staff log in at the application’s page, come back to where they were, and log out', { timeout: 300_000 }, async () => {
  const page = await browser.newPage();
  page.setDefaultTimeout(45_000);
  await page.goto(`${address}#/audit-log`);
  await page.getByText('Log in with your staff account.').waitFor();
  await expect.poll(() => page.getByLabel('Password').count()).toBe(0);
  await expect.poll(() => page.getByText('Forgot your password?').count()).toBe(0);
  await page.getByRole('link', { name: 'Log in' }).click();
  await page.getByRole('link', { name: 'Back to where you were' }).click();
  await page.getByRole('heading', { name: 'Audit log', level: 1, exact: true }).waitFor();
  await page.getByRole('button', { name: 'ada' }).click();
  const account = page.getByRole('menuitem', { name: 'Your account' });
  await expect.poll(() => account.getAttribute('href')).toBe('/me');
  await page.getByRole('menuitem', { name: 'Log out' }).click();
  await page.getByText('Log in with your staff account.').waitFor();
});
