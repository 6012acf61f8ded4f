import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { type App, createApp, migrateApp } from 'kit';
import { accountsOf, inviteUser, type MailMessage } from 'kit/contrib/accounts';
import { runDueJobs } from 'kit/contrib/jobs';
import { resumeTenant, suspendTenant } from 'kit/contrib/tenants';
import { deliverDue } from 'kit/contrib/webhooks';
import { generateClient } from 'kit/openapi';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { appOptions } from '../packages/kit/templates/b2b/src/app.ts';
import { startReceiver } from '../packages/kit/templates/b2b/test/receiver.ts';
import { findings } from '../packages/admin-ui/test/axe.ts';
import { runScript } from './clients/run-script.ts';
import { launchChromium } from './provision/chromium.ts';
import { freePort } from './provision/free-port.ts';

// The product of `kit new --template b2b`, from the first person to the end of the company, with a real browser, clients and agents.

const TEMPLATE = join(import.meta.dirname, '../packages/kit/templates/b2b');
const KIT = join(import.meta.dirname, '../packages/kit/bin/kit.js');
const PASSWORD = 'correct horse battery';
const STEP_MS = 60_000;
const PYTHON = ['/usr/bin/python3', 'python3'].find(
  (each) => spawnSync(each, ['-c', 'import httpx, sys; assert sys.version_info >= (3, 11)']).status === 0,
);

const folder = mkdtempSync(join(tmpdir(), 'kit-companies-'));
const database = `sqlite:${join(folder, 'app.db')}`;
const mails: MailMessage[] = [];
let app: App;
let browser: Browser;
let address = '';

beforeAll(async () => {
  const port = await freePort();
  process.env['PUBLIC_URL'] = address = `http://127.0.0.1:${port}`;
  app = createApp({ ...appOptions({ send: async (mail) => void mails.push(mail) }), database, log: { level: 'silent' } });
  await app.openDatabases();
  await migrateApp(app);
  await app.listen({ port });
  browser = await launchChromium();
}, 300_000);
afterAll(async () => {
  delete process.env['PUBLIC_URL'];
  await browser?.close();
  await app?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Sends the mails that are due; the link of the newest one to an address, on the server of the test. */
async function linkTo(email: string): Promise<string> {
  await runDueJobs(app.db);
  const [, path = ''] = /\/account\/link(#\S+)/.exec(mails.findLast(({ to }) => to === email)?.text ?? '') ?? [];
  expect(path).not.toBe('');
  return `${address}/account/link${path}`;
}

async function person(): Promise<Page> {
  const context = await browser.newContext({ viewport: { width: 390, height: 800 } });
  context.setDefaultTimeout(STEP_MS);
  return context.newPage();
}

const fill = (page: Page, label: string, value: string) =>
  page.locator('main').getByLabel(label, { exact: true }).filter({ visible: true }).first().fill(value);
const press = (page: Page, name: string) =>
  page.locator('main').getByRole('button', { name, exact: true }).filter({ visible: true }).first().click();
async function heading(page: Page, name: string): Promise<void> {
  await page.getByRole('heading', { name, level: 1, exact: true }).waitFor();
  await page.locator('body[data-ready]').waitFor();
  expect([name, await findings(page)]).toEqual([name, []]);
  expect(await page.evaluate<number>('document.documentElement.scrollWidth')).toBeLessThanOrEqual(390);
}

interface Answer {
  readonly status: number;
  // oxlint-disable-next-line typescript/no-explicit-any -- tests look at whatever the server answered
  readonly body: any;
}

/** A request as the person at the browser makes it. */
function ask(page: Page, method: string, path: string, body?: object): Promise<Answer> {
  const script = `(async ([method, path, body]) => {
    const { csrf_token } = await (await fetch('/v1/account/me')).json();
    const headers = { 'x-csrf-token': csrf_token, 'x-tenant': 'acme', ...(body ? { 'content-type': 'application/json' } : {}) };
    const response = await fetch(path, { method, headers, ...(body ? { body: JSON.stringify(body) } : {}) });
    const text = await response.text();
    return { status: response.status, body: text === '' ? null : JSON.parse(text) };
  })(${JSON.stringify([method, path, body ?? null])})`;
  return page.evaluate<Answer>(script);
}

test(
  'a company from its first person to its end: pages, second member, key, clients, agents, an event, suspension, deletion',
  { timeout: 900_000 },
  async () => {
    const { db } = app;
    // Staff invite the first person; with better-auth, people sign up by themselves.
    await inviteUser(db, { username: 'ada', email: 'ada@example.com' }, accountsOf(db).management(null));
    const ada = await person();
    await ada.goto(await linkTo('ada@example.com'));
    await heading(ada, 'Choose a password');
    await fill(ada, 'New password', PASSWORD);
    await press(ada, 'Save the password');
    await ada.getByRole('link', { name: 'Log in' }).last().click();
    await heading(ada, 'Log in');
    await fill(ada, 'User name or e-mail address', 'ada');
    await fill(ada, 'Password', PASSWORD);
    await press(ada, 'Log in');
    await heading(ada, 'Your organizations');
    await fill(ada, 'Name of the organization', 'Acme');
    await press(ada, 'Create');
    await ada.getByRole('link', { name: 'Members' }).click();
    await heading(ada, 'Acme');
    await fill(ada, 'E-mail address', 'bob@example.com');
    await press(ada, 'Invite');
    await ada.getByText('bob@example.com').waitFor();

    const bob = await person();
    await bob.goto(await linkTo('bob@example.com'));
    await heading(bob, 'Accept the invitation');
    await fill(bob, 'User name', 'bob');
    await fill(bob, 'Password', PASSWORD);
    await press(bob, 'Create an account and accept');
    await heading(bob, 'Your organizations');
    await bob.getByText('Acme').waitFor();

    // Bob is an ordinary member: the company's endpoints are ada's.
    const receiver = await startReceiver();
    const endpoint = { url: receiver.url('/acme'), events: ['*'] };
    expect((await ask(bob, 'POST', '/v1/webhooks', endpoint)).status).toBe(403);
    const made = await ask(ada, 'POST', '/v1/webhooks', endpoint);
    expect(made.status).toBe(201);
    receiver.trust('/acme', made.body.secret);

    const key = await ask(bob, 'POST', '/v1/api-keys', {
      name: 'script',
      scopes: ['projects:read', 'projects:write'],
      expires_at: null,
    });
    expect(key.status).toBe(201);
    const raw: string = key.body.key;

    for (const [language, file] of [
      ['typescript', 'api.ts'],
      ['python', 'api.py'],
    ] as const)
      writeFileSync(join(folder, file), generateClient(app.routes, { language, title: 'Companies', version: '1' }));
    // oxlint-disable-next-line typescript/no-explicit-any -- the generated client is not known to the compiler
    const { createClient }: any = await import(join(folder, 'api.ts'));
    const client = createClient({ baseUrl: address, apiKey: raw });
    expect((await client.projects.create({ body: { title: 'By TypeScript' } })).title).toBe('By TypeScript');
    if (PYTHON === undefined) throw new Error('This test needs Python 3.11 or newer with httpx.');
    const script = `from api import Client\nprint([each.title for each in Client("${address}", api_key="${raw}").projects.list().items])\n`;
    const ran = await runScript(PYTHON, ['-c', script], folder, { PYTHONPATH: folder });
    expect([ran.stderr, ran.stdout.trim()]).toEqual(['', "['By TypeScript']"]);

    const agent = new Client({ name: 'remote', version: '1' });
    await agent.connect(new StreamableHTTPClientTransport(new URL(`${address}/mcp`), { requestInit: { headers: { 'x-api-key': raw } } }));
    expect((await agent.listTools()).tools.map(({ name }) => name).sort()).toEqual(['project_create', 'project_list', 'project_retrieve']);
    const created = await agent.callTool({ name: 'project_create', arguments: { title: 'By a remote agent' } });
    expect(created.structuredContent).toMatchObject({ title: 'By a remote agent' });
    await agent.close();

    const { PATH = '' } = process.env;
    const desktop = new Client({ name: 'desktop', version: '1' });
    await desktop.connect(
      new StdioClientTransport({
        command: process.execPath,
        args: ['--conditions=source', KIT, 'mcp'],
        cwd: TEMPLATE,
        env: { PATH, KIT_API_KEY: raw, DATABASE_URL: database, NODE_ENV: 'test' },
        stderr: 'pipe',
      }),
      { timeout: STEP_MS },
    );
    const listed = await desktop.callTool({ name: 'project_list', arguments: {} });
    expect(JSON.stringify(listed.structuredContent)).toContain('By a remote agent');
    await desktop.close();

    await deliverDue(db);
    expect(receiver.typesAt('/acme').filter((type) => type.startsWith('project.'))).toEqual(['project.created', 'project.created']);

    const [tenant] = await db.query<{ id: string }>("select id from tenants where slug = 'acme'");
    const { id } = tenant as { id: string };
    await suspendTenant(db, id, { reason: 'The invoice is open.' });
    await expect(client.projects.list()).rejects.toMatchObject({ code: 'tenant_suspended' });
    await resumeTenant(db, id);
    expect((await client.projects.list()).items).toHaveLength(2);

    // The end: nobody acts in it from the next request on.
    expect((await ask(bob, 'DELETE', `/v1/tenants/${id}`)).status).toBe(403);
    expect((await ask(ada, 'DELETE', `/v1/tenants/${id}`)).status).toBe(204);
    await expect(client.projects.list()).rejects.toMatchObject({ status: 403 });
    await receiver.close();
  },
);
