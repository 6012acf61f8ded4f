import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { type App, createApp, migrateApp } from 'kit';
import { accountsOf, inviteUser, type MailMessage } from 'kit/contrib/accounts';
import { runDueJobs } from 'kit/contrib/jobs';
import { deliverDue } from 'kit/contrib/webhooks';
import { generateClient } from 'kit/openapi';
import { describeDatabases, type TestDatabase } from 'kit/testing';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { appOptions } from '../../packages/kit/templates/b2b/src/app.ts';
import { startReceiver } from '../../packages/kit/templates/b2b/test/receiver.ts';
import { unzip } from '../../packages/kit/test/personal/unzip.ts';
import { runScript } from '../clients/run-script.ts';
import { launchChromium } from '../provision/chromium.ts';
import { freePort } from '../provision/free-port.ts';
import { arrived, fill, press, said, visitor } from '../provision/visitor.ts';
import { organizationProduct } from './organizations.ts';

// The product of `kit new --template b2b`, from the first person to the end of the company, with a real browser, clients and agents; the same with the
// organizations of better-auth.

const ROOT = join(import.meta.dirname, '../..');
const TEMPLATE = join(ROOT, 'packages/kit/templates/b2b');
const KIT = ['--conditions=source', join(ROOT, 'packages/kit/bin/kit.js')];
const PASSWORD = 'correct horse battery';
const STEP_MS = 60_000;
/** Of a program that starts while the machine is busy. */
const PROGRAM_MS = 300_000;
const PYTHON = ['/usr/bin/python3', 'python3'].find(
  (each) => spawnSync(each, ['-c', 'import httpx, sys; assert sys.version_info >= (3, 11)']).status === 0,
);

interface Answer {
  readonly status: number;
  // oxlint-disable-next-line typescript/no-explicit-any -- tests look at whatever the server answered
  readonly body: any;
}

/** A running product, and what a journey needs of it. */
interface Product {
  readonly app: App;
  readonly address: string;
  readonly folder: string;
  /** For the `kit` program in the folder of the product. */
  readonly environment: Readonly<Record<string, string>>;
  person(): Promise<Page>;
  /** The path and fragment of the link in the newest mail to an address, on the pages. */
  linkTo(email: string): Promise<string>;
  complaints: readonly string[];
}

/** A product for each database, which starts and ends with its tests. */
function describeProduct(
  name: string,
  options: (database: TestDatabase, address: string, send: (mail: MailMessage) => void) => Parameters<typeof createApp>[0],
  define: (product: Product) => void,
): void {
  describeDatabases(name, (database) => {
    const folder = mkdtempSync(join(tmpdir(), 'kit-companies-'));
    const mails: MailMessage[] = [];
    const complaints: string[] = [];
    let app: App;
    let browser: Browser;
    let address = '';

    beforeAll(async () => {
      const port = await freePort();
      process.env['PUBLIC_URL'] = address = `http://127.0.0.1:${port}`;
      app = createApp({ ...options(database, address, (mail) => void mails.push(mail)), database: database.db, log: { level: 'silent' } });
      await app.openDatabases();
      await migrateApp(app);
      await app.listen({ port });
      expect(app.warnings).toEqual([]);
      browser = await launchChromium();
    }, 300_000);
    afterAll(async () => {
      delete process.env['PUBLIC_URL'];
      await browser?.close();
      await app?.close();
      rmSync(folder, { recursive: true, force: true });
    });

    define({
      folder,
      complaints,
      get app() {
        return app;
      },
      get address() {
        return address;
      },
      get environment() {
        const { PATH = '' } = process.env;
        return { PATH, DATABASE_URL: database.url, PUBLIC_URL: address, NODE_ENV: 'test' };
      },
      person: () => visitor(browser, complaints),
      async linkTo(email) {
        await runDueJobs(app.db);
        const [path = ''] = /\/(?:account|auth)\/\S+/.exec(mails.findLast(({ to }) => to === email)?.text ?? '') ?? [];
        expect(path).not.toBe('');
        return `${address}${path}`;
      },
    });
  });
}

describeProduct(
  'a company with accounts()',
  (_database, _address, send) => appOptions({ send: async (mail) => send(mail) }),
  (product) => {
    test('from its first person to its end', { timeout: 900_000 }, async () => {
      const { app, folder, environment } = product;
      // Staff invite the first person; with better-auth, people sign up by themselves.
      await inviteUser(app.db, { username: 'ada', email: 'ada@example.com' }, accountsOf(app.db).management(null));
      const ada = await product.person();
      await ada.goto(await product.linkTo('ada@example.com'));
      await arrived(ada, 'Choose a password');
      await fill(ada, 'New password', PASSWORD);
      await press(ada, 'Save the password');
      await ada.getByRole('link', { name: 'Log in' }).last().click();
      await logIn(ada, 'User name or e-mail address', 'ada');
      await found(ada, product);

      const bob = await product.person();
      await bob.goto(await product.linkTo('bob@example.com'));
      await arrived(bob, 'Accept the invitation');
      await fill(bob, 'User name', 'bob');
      await fill(bob, 'Password', PASSWORD);
      await press(bob, 'Create an account and accept');

      const [{ id } = { id: '' }] = await app.db.query<{ id: string }>("select id from tenants where slug = 'acme'");
      const asks = async (page: Page) => {
        const { csrf_token } = await page.evaluate<{ csrf_token: string }>("fetch('/v1/account/me').then((response) => response.json())");
        return { 'x-csrf-token': csrf_token, 'x-tenant': 'acme' };
      };
      const { client, entry, end } = await work(product, { ada, bob, asks, folder: TEMPLATE });

      const kit = async (...args: string[]) => {
        const ran = await runScript(process.execPath, [...KIT, ...args], TEMPLATE, { ...environment });
        // Long commands tell how far they are.
        const told = ran.stderr.split('\n').filter((line) => line !== '' && !/^\w+: \d+ (?:to do|done)$/.test(line));
        expect([args, ran.code, told]).toEqual([args, 0, []]);
        return ran.stdout;
      };
      await kit('tenant', 'suspend', 'acme', '--reason', 'The invoice is open.');
      await expect(client.projects.list()).rejects.toMatchObject({ code: 'tenant_suspended' });
      await ada.reload();
      await said(ada, 'Acme');
      // Why is for requests that are not for the tenant.
      const seen = await ada.evaluate<unknown>(`fetch('/v1/tenants/${id}').then((response) => response.json())`);
      expect(seen).toMatchObject({ suspended_reason: 'The invoice is open.' });
      await kit('tenant', 'resume', 'acme');
      expect((await client.projects.list()).items).toHaveLength(2);

      // What was done is for those who manage the company.
      expect((await entry(bob, 'GET', '/v1/audit')).status).toBe(403);
      const { items } = (await entry(ada, 'GET', '/v1/audit?limit=100')).body;
      expect(items.map(({ action }: { action: string }) => action)).toEqual(
        expect.arrayContaining(['tenant.created', 'member.added', 'project.created', 'tenant.suspended', 'tenant.resumed']),
      );

      await kit('tenant', 'export', 'acme', '--to', join(folder, 'acme.zip'));
      const archive = unzip(readFileSync(join(folder, 'acme.zip')));
      expect([...archive.keys()]).toEqual(expect.arrayContaining(['manifest.json', 'projects.jsonl', 'tenant_members.jsonl']));
      expect(archive.get('projects.jsonl')).toContain('By a remote agent');

      // The end: nobody acts in it from the next request on, and after the grace nothing is left.
      expect((await entry(bob, 'DELETE', `/v1/tenants/${id}`)).status).toBe(403);
      expect((await entry(ada, 'DELETE', `/v1/tenants/${id}`)).status).toBe(204);
      await expect(client.projects.list()).rejects.toMatchObject({ status: 403 });
      await app.db.query('update tenants set deletes_at = $1 where id = $2', [new Date(Date.now() - 1000), id]);
      expect(await kit('tenant', 'purge')).toContain('1 tenants deleted.');
      for (const table of ['projects', 'tenants', 'tenant_members', 'webhook_endpoints', 'api_keys'])
        expect([table, await app.db.query(`select 1 as one from ${table}`)]).toEqual([table, []]);
      await kit('audit', 'verify');
      await ada.goto(`${product.address}/account/tenants`);
      await said(ada, 'You are in no organization yet.');
      await end();
      expect(product.complaints).toEqual([]);
    });
  },
);

describeProduct(
  'a company with better-auth',
  ({ db }, address, send) => organizationProduct(db, address, send),
  (product) => {
    test('from its first person to its end', { timeout: 900_000 }, async () => {
      const { app, address } = product;
      const signUp = async (name: string): Promise<Page> => {
        const page = await product.person();
        await page.goto(`${address}/account/sign-up`);
        await arrived(page, 'Create an account');
        await fill(page, 'Name', name);
        await fill(page, 'E-mail address', `${name}@example.com`);
        await fill(page, 'Password', PASSWORD);
        await press(page, 'Create an account');
        await said(page, 'open the link in the mail');
        await page.goto(await product.linkTo(`${name}@example.com`));
        return page;
      };
      const ada = await signUp('ada');
      await logIn(ada, 'E-mail address', 'ada@example.com');
      await found(ada, product);

      const bob = await signUp('bob');
      // The newest mail is that of the new account.
      await press(ada, 'Send again');
      await expect.poll(() => product.linkTo('bob@example.com'), { timeout: STEP_MS }).toContain('tenant-invitation');
      await bob.goto(await product.linkTo('bob@example.com'));
      await arrived(bob, 'Accept the invitation');
      await bob.getByRole('link', { name: 'I have an account' }).click();
      await logIn(bob, 'E-mail address', 'bob@example.com');
      // Back at the invitation, which waited in the session of the browser.
      await arrived(bob, 'Accept the invitation');
      await press(bob, 'Accept');

      const [{ id, slug } = { id: '', slug: '' }] = await app.db.query<{ id: string; slug: string }>('select id, slug from "organization"');
      const asks = async () => ({ 'x-organization': slug });
      const { client, entry, end } = await work(product, { ada, bob, asks, folder: import.meta.dirname });

      const doomed = { organizationId: id };
      expect((await entry(bob, 'POST', '/auth/organization/delete', doomed)).status).toBe(403);
      expect((await entry(ada, 'POST', '/auth/organization/delete', doomed)).status).toBe(200);
      // The key went with it.
      await expect(client.projects.list()).rejects.toMatchObject({ status: 401 });
      expect((await entry(ada, 'GET', '/v1/projects')).body).toMatchObject({ code: 'not_a_member' });
      await end();
      expect(product.complaints).toEqual([]);
    });
  },
);

async function logIn(page: Page, label: string, login: string): Promise<void> {
  await arrived(page, 'Log in');
  await fill(page, label, login);
  await fill(page, 'Password', PASSWORD);
  await press(page, 'Log in');
}

/** The first person makes the company and invites the second. */
async function found(ada: Page, { address }: Product): Promise<void> {
  await arrived(ada, 'Your organizations');
  expect(ada.url()).toBe(`${address}/account/tenants`);
  await fill(ada, 'Name of the organization', 'Acme');
  await press(ada, 'Create');
  await ada.getByRole('link', { name: 'Members' }).click();
  await arrived(ada, 'Acme');
  await fill(ada, 'E-mail address', 'bob@example.com');
  await press(ada, 'Invite');
  await ada.locator('#invitations').getByText('bob@example.com').waitFor();
}

interface People {
  readonly ada: Page;
  readonly bob: Page;
  /** The headers of requests of a person, for the company. */
  readonly asks: (page: Page) => Promise<Readonly<Record<string, string>>>;
  /** Of the product's kit.config.ts. */
  readonly folder: string;
}

/** A key of the company, clients of two languages, agents over HTTP and stdio, and an event that an endpoint receives. */
async function work(product: Product, { ada, bob, asks, folder: project }: People) {
  const { app, address, folder, environment } = product;
  await arrived(bob, 'Your organizations');
  await said(bob, 'Acme');
  /** A request as the person at the browser makes it. */
  const entry = async (page: Page, method: string, path: string, body?: object): Promise<Answer> => {
    const headers = { ...(await asks(page)), ...(body === undefined ? {} : { 'content-type': 'application/json' }) };
    const script = `(async ([method, path, headers, body]) => {
      const response = await fetch(path, { method, headers, ...(body ? { body: JSON.stringify(body) } : {}) });
      const text = await response.text();
      return { status: response.status, body: text === '' ? null : JSON.parse(text) };
    })(${JSON.stringify([method, path, headers, body ?? null])})`;
    return page.evaluate<Answer>(script);
  };

  // Bob is an ordinary member: the company's endpoints are ada's.
  const receiver = await startReceiver();
  const endpoint = { url: receiver.url('/acme'), events: ['*'] };
  expect((await entry(bob, 'POST', '/v1/webhooks', endpoint)).status).toBe(403);
  const made = await entry(ada, 'POST', '/v1/webhooks', endpoint);
  expect(made.status).toBe(201);
  receiver.trust('/acme', made.body.secret);

  const key = await entry(bob, 'POST', '/v1/api-keys', { name: 'script', scopes: ['projects:read', 'projects:write'], expires_at: null });
  expect(key.status).toBe(201);
  const raw: string = key.body.key;

  for (const [language, file] of [
    ['typescript', 'api.ts'],
    ['python', 'api.py'],
  ] as const)
    writeFileSync(join(folder, file), generateClient(app.routes, { language, title: 'Companies', version: '1' }));
  // oxlint-disable-next-line typescript/no-explicit-any -- the generated client is not known to the compiler
  const { createClient }: any = await import(join(folder, 'api.ts'));
  // The key is for the company: nothing else names it.
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

  const desktop = new Client({ name: 'desktop', version: '1' });
  await desktop.connect(
    new StdioClientTransport({
      command: process.execPath,
      args: [...KIT, 'mcp'],
      cwd: project,
      env: { ...environment, KIT_API_KEY: raw },
      stderr: 'pipe',
    }),
    { timeout: PROGRAM_MS },
  );
  const listed = await desktop.callTool({ name: 'project_list', arguments: {} }, { timeout: PROGRAM_MS });
  expect(JSON.stringify(listed.structuredContent)).toContain('By a remote agent');
  await desktop.close();

  await deliverDue(app.db);
  expect(receiver.typesAt('/acme').filter((type) => type.startsWith('project.'))).toEqual(['project.created', 'project.created']);
  return { client, entry, end: () => receiver.close() };
}
