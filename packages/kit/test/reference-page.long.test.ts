import { execFile } from 'node:child_process';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest';
import * as z from 'zod';
import { launchChromium } from '../../../test/provision/chromium.ts';
import { AccountController, accounts, accountsOf, createUser } from '../src/contrib/accounts/index.ts';
import { apiKeys, createApiKey } from '../src/contrib/apikeys/index.ts';
import { Controller } from '../src/http/compile/controller.ts';
import { route } from '../src/http/declare/route.ts';
import { allowAny, isAuthenticated } from '../src/permissions/built-ins.ts';
import { generateClient } from '../src/openapi/index.ts';
import { testApp, type TestApp } from '../src/testing/test-app.ts';
import { OrderController } from './sample-app/order-controller.ts';
import { sampleOptions } from './sample-app/app.ts';

const HOSTILE = '<img src=x onerror="window.hacked = true"> `code`';

/** A field of a schema that contains itself, and texts that would be markup if they were not escaped. */
class HostileController extends Controller {
  markup = route.get(
    '/:id',
    {
      params: z.strictObject({ id: z.string().describe(HOSTILE) }),
      summary: HOSTILE,
      description: HOSTILE,
      permission: allowAny,
      response: z.strictObject({ name: z.string().describe(HOSTILE) }),
    },
    () => ({ name: '' }),
  );
}

class NoteController extends Controller {
  create = route.post(
    '/',
    {
      // What is made up for them must be accepted: a number near zero, and no id that nothing has.
      body: z.strictObject({ text: z.string(), count: z.int().refine((count) => count >= 0), parent: z.uuid().nullable() }),
      response: z.strictObject({ parent: z.null() }),
      status: 201,
      permission: isAuthenticated,
    },
    ({ body }) => ({ parent: body.parent as null }),
  );
}

const PASSWORD = 'correct horse battery';
/** Its samples are run where it has httpx. */
const PYTHON = ['/usr/bin/python3', 'python3'].find((each) => spawnSync(each, ['-c', 'import httpx']).status === 0);

/** What a shell gets when a command is pasted into it: the status of the answer. */
async function pastedInto(env: Readonly<Record<string, string>>, command: string): Promise<string> {
  const script = `${command} --silent --output /dev/null --write-out '%{http_code}'`;
  const { stdout } = await promisify(execFile)('bash', ['-c', script], { env: { PATH: process.env['PATH'] ?? '', ...env } });
  return stdout;
}

let browser: Browser;
let app: TestApp;
let address: string;
let page: Page;
let complaints: string[];
let requested: string[];

beforeAll(async () => {
  browser = await launchChromium();
  const { database: _, log: __, ...options } = sampleOptions({ description: 'Orders of a shop.' });
  app = await testApp({ ...options, mount: { '/v1': { '/orders': OrderController, '/hostile': HostileController } } });
  address = await app.listen();
});
afterAll(async () => {
  await browser.close();
  await app.close();
});
beforeEach(async () => {
  const context = await browser.newContext({ permissions: ['clipboard-read', 'clipboard-write'] });
  page = await context.newPage();
  complaints = [];
  requested = [];
  page.on('console', (message) => void (message.type() === 'error' && complaints.push(message.text())));
  page.on('pageerror', (error) => void complaints.push(String(error)));
  page.on('request', (request) => void requested.push(request.url()));
});
// Whatever a test did: the page logged no error, and sent requests only to its own server.
afterEach(async () => {
  expect(complaints).toEqual([]);
  expect(requested.filter((url) => !url.startsWith(address) && !url.startsWith('data:'))).toEqual([]);
  await page.context().close();
});

const open = async (fragment = ''): Promise<void> => {
  await page.goto(`${address}/docs${fragment}`);
  await page.locator('#list details').first().waitFor();
};

test('the page shows every operation of the document and nothing else', async () => {
  await open();
  const document = (await (await fetch(`${address}/openapi.json`)).json()) as { paths: Record<string, object> };
  const methods = Object.values(document.paths).flatMap((item) => Object.keys(item).filter((key) => key !== 'parameters'));
  const count = methods.length;
  expect(count).toBeGreaterThan(10);
  await expect.poll(() => page.locator('#list details[id^="op-"]').count()).toBe(count);
  await expect.poll(() => page.getByRole('heading', { level: 1 }).textContent()).toBe('Sample');
  await expect.poll(() => page.getByRole('status').textContent()).toBe(`${count} operations`);
  await expect.poll(() => page.getByText('Orders of a shop.').isVisible()).toBe(true);
});

test('search narrows the list, the menu and the count', async () => {
  await open();
  await page.keyboard.press('/');
  await page.keyboard.type('create order');
  await expect.poll(() => page.getByRole('searchbox', { name: 'Search operations' }).inputValue()).toBe('create order');
  await expect.poll(() => page.locator('#list details[id^="op-"]:visible').count()).toBe(1);
  expect(
    await page
      .getByRole('navigation', { name: 'Operations' })
      .getByRole('link', { name: /Create an order/ })
      .isVisible(),
  ).toBe(true);
  await expect.poll(() => page.getByRole('status').textContent()).toMatch(/^1 of \d+ operations$/);
});

test('an operation opens by keyboard and shows parameters, body, answers with codes and a curl command that works', async () => {
  await open();
  await page.locator('#op-order_create > summary').focus();
  await page.keyboard.press('Enter');
  const operation = page.locator('#op-order_create');
  await expect.poll(() => operation.getByText('Sign in with').textContent()).toContain('test_user');
  await expect.poll(() => operation.getByText('sensitive').isVisible()).toBe(true);
  await operation.locator('summary', { hasText: '409' }).click();
  expect(
    await operation
      .locator('code', { hasText: /^conflict$/ })
      .first()
      .isVisible(),
  ).toBe(true);
  await operation.getByRole('button', { name: 'Copy the sample' }).click();
  await operation.getByText('Copied').waitFor();
  const command = await page.evaluate('navigator.clipboard.readText()');
  expect(command).toContain(`curl -X POST '${address}/v1/orders'`);
  expect(command).toContain('-H "X-Test-User: $CREDENTIAL"');
  const body = /--data '(.*)'$/s.exec(String(command))?.[1];
  expect(JSON.parse(String(body))).toMatchObject({ lines: [{ sku: 'AB-1', quantity: 2 }] });
});

test('samples carry the chosen credential: as a variable, or as it was pasted; responses are open with an example', async () => {
  await open('#op-order_create');
  const operation = page.locator('#op-order_create');
  const command = operation.locator('.sample code').filter({ hasText: 'curl' });
  await expect.poll(() => command.textContent()).toContain('-H "X-Test-User: $CREDENTIAL"');
  await operation.getByText('set CREDENTIAL first').waitFor();
  await page.getByPlaceholder('Paste a key to fill the samples').fill('ann"$(id)');
  await expect.poll(() => command.textContent()).toContain('-H "X-Test-User: ann\\"\\$(id)"');
  const success = operation.locator('details.answer[open]');
  await expect.poll(() => success.locator('summary').textContent()).toMatch(/^2\d\d/);
  await expect.poll(() => success.locator('pre').count()).toBeGreaterThan(0);
});

test('the command of a change works as it is copied: with an API key first, and with a session and its CSRF token', async () => {
  await using shop = await testApp({
    modules: [accounts({ secureCookies: false, passwordCost: { logN: 4, r: 8, p: 1 } }), apiKeys()],
    mount: { '/v1': { '/notes': NoteController, '/account': AccountController } },
  });
  const { db } = shop.app;
  const user = await createUser(db, { username: 'ada', password: PASSWORD }, accountsOf(db).management('setup'));
  const { raw } = await createApiKey(db, { user: user.id, name: 'Shell', scopes: [] });
  const usual = address;
  onTestFinished(() => void (address = usual));
  address = await shop.listen();
  await open('#op-note_create');
  const operation = page.locator('#op-note_create');
  const command = async () => String(await operation.locator('.sample code').filter({ hasText: 'curl' }).textContent());
  const schemes = page.getByLabel('Credentials');
  await expect.poll(() => schemes.inputValue()).toBe('api_key');
  expect(await command()).toContain('-H "X-API-Key: $CREDENTIAL"');
  expect(await pastedInto({ CREDENTIAL: raw }, await command())).toBe('201');
  await page.getByPlaceholder('Paste a key to fill the samples').fill(raw);
  expect(await pastedInto({}, await command())).toBe('201');

  // The same call with a generated client, as it is copied.
  const folder = mkdtempSync(join(tmpdir(), 'kit-samples-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const sample = operation.locator('.sample code').filter({ hasText: 'client' });
  for (const [language, client, main] of [
    ['TypeScript', 'api.ts', 'main.ts'],
    ['Python', 'api.py', 'main.py'],
  ] as const) {
    await operation.getByRole('button', { name: language }).click();
    const text = String(await sample.textContent());
    expect(text).toContain(raw);
    writeFileSync(
      join(folder, client),
      generateClient(shop.app.routes, { language: language === 'Python' ? 'python' : 'typescript', title: 'Notes', version: '1' }),
    );
    writeFileSync(join(folder, main), text);
    const program = language === 'Python' ? PYTHON : process.execPath;
    const { stdout } = program === undefined ? { stdout: 'parent' } : await promisify(execFile)(program, [main], { cwd: folder });
    expect(stdout).toContain('parent');
  }
  await operation.getByRole('button', { name: 'curl' }).click();

  // And from the page: with the pasted key, without credentials, and with a session.
  const tries = operation.locator('details', { hasText: 'Try it' }).last();
  await tries.locator('summary').click();
  const result = tries.locator('.try-result .status');
  const attempt = async () => {
    await tries.locator('.try-result').evaluate((node) => node.replaceChildren());
    await tries.getByRole('button', { name: 'Send' }).click();
    return result.textContent();
  };
  expect(await attempt()).toBe('201');
  await page.getByPlaceholder('Paste a key to fill the samples').fill('');
  expect(await attempt()).toBe('401');
  complaints.length = 0;
  await page.evaluate(
    `fetch('/v1/account/login', { method: 'POST', headers: { 'content-type': 'application/json' }, body: ${JSON.stringify(JSON.stringify({ login: 'ada', password: PASSWORD }))} })`,
  );
  expect(await attempt()).toBe('201');
  await tries.getByLabel('Body').last().fill('{"text":1}');
  expect(await attempt()).toBe('422');
  await expect.poll(() => tries.locator('.try-result pre').textContent()).toContain('"validation_error"');
  complaints.length = 0;
  await page.context().clearCookies();

  const login = await fetch(`${address}/v1/account/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ login: 'ada', password: PASSWORD }),
  });
  const { csrf_token: token } = (await login.json()) as { csrf_token: string };
  const session = /=([^;]+)/.exec(login.headers.get('set-cookie') ?? '')?.[1] ?? '';
  await page.getByPlaceholder('Paste a key to fill the samples').fill('');
  await schemes.selectOption('session');
  expect(await command()).toContain('-H "X-CSRF-Token: $CSRF_TOKEN"');
  await operation.getByText('CSRF_TOKEN (the csrf_token that the login answers)').waitFor();
  expect(await pastedInto({ CREDENTIAL: session, CSRF_TOKEN: token }, await command())).toBe('201');
});

test('on a phone nothing is wider than the screen, with every operation open', async () => {
  await page.setViewportSize({ width: 375, height: 740 });
  await open();
  await page.getByRole('button', { name: 'Expand all' }).click();
  await page.locator('#op-order_create .sample').first().waitFor();
  expect(await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth')).toBe(0);
});

test('a link to an operation or a schema opens it', async () => {
  await open('#op-order_retrieve');
  await expect.poll(() => page.locator('#op-order_retrieve').getAttribute('open')).not.toBeNull();
  await page.getByRole('navigation', { name: 'Operations' }).getByRole('link', { name: 'OrderInput' }).click();
  await page.locator('#schema-OrderInput[open]').waitFor();
  await expect.poll(() => page.locator('#schema-OrderInput').getByText('no other fields').first().isVisible()).toBe(true);
});

test('texts of the document are text: markup in them is shown, never run', async () => {
  await open('#op-hostile_markup');
  await expect.poll(() => page.locator('#op-hostile_markup').getByText('<img src=x').first().isVisible()).toBe(true);
  await expect.poll(() => page.locator('#list img').count()).toBe(0);
  expect(await page.evaluate('window.hacked')).toBeUndefined();
});

test('every control has a name, every field a label, and the page has one main and one navigation', async () => {
  await open();
  await page.getByRole('button', { name: 'Expand all' }).click();
  const nameless = await page.evaluate(
    `[...document.querySelectorAll('button, a:not([hidden]), input, summary')].filter((node) => !(node.getAttribute('aria-label') || node.textContent.trim() || node.labels?.length)).map((node) => node.outerHTML)`,
  );
  expect(nameless).toEqual([]);
  await expect.poll(() => page.getByRole('main').count()).toBe(1);
  await expect.poll(() => page.locator('html').getAttribute('lang')).toBe('en');
  await expect.poll(() => page.locator('th:not([scope])').count()).toBe(0);
});
