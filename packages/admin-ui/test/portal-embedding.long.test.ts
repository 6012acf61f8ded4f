import { readFileSync } from 'node:fs';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { FrameLocator, Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { revokePortalLink } from '../../kit/src/portal/index.ts';
import { findings } from './axe.ts';
import { PortalShop } from './shop/portal-shop.ts';

/** A page of the customer's own application, at an origin of its own; and one that nobody has allowed. */
let host: Server;
let stranger: Server;
let portal: PortalShop;
/** The links that the host's back end has made. */
const made: { readonly id: string; readonly token: string }[] = [];

const originOf = (server: Server): string => `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

const pageWith = (attributes: string): string => `<!doctype html><html lang="en"><title>Console</title><h1>Our own console</h1>
<kit-portal src="${portal.shop.address}" ${attributes}></kit-portal>
<script src="${portal.shop.address}kit-portal.js"></script>
<script>
  window.heard = [];
  addEventListener('message', ({ data }) => heard.push(data));
  document.querySelector('kit-portal').link = async () => (await fetch('/developers-link', { method: 'POST' })).text();
</script>`;

async function answerWithLink(response: ServerResponse): Promise<void> {
  const link = await portal.link({ manage: true });
  made.push(link);
  response.end(link.token);
}

async function serve(): Promise<Server> {
  const server = createServer((request, response) => {
    if (request.method === 'POST') {
      void answerWithLink(response);
      return;
    }
    const { searchParams } = new URL(request.url ?? '/', 'http://host');
    response.setHeader('content-type', 'text/html; charset=utf-8');
    response.end(pageWith([...searchParams].map(([name, value]) => `${name}="${value}"`).join(' ')));
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  return server;
}

beforeAll(async () => {
  [host, stranger] = [await serve(), await serve()];
  portal = await PortalShop.open({ title: 'Bean & Leaf for developers', embedIn: [originOf(host)], anonymous: true });
});
afterAll(async () => {
  await portal[Symbol.asyncDispose]();
  for (const server of [host, stranger]) server.close();
});
beforeEach(() => void made.splice(0));

async function embedded(query: string, server = host): Promise<{ page: Page; frame: FrameLocator }> {
  const page = await portal.browser.page({ anonymous: true });
  await page.goto(`${originOf(server)}/?${query}`);
  return { page, frame: page.frameLocator('iframe') };
}

/** The page around the frame is not of the portal. */
function expectQuiet(): void {
  const own = [host, stranger].map((server) => `asked ${originOf(server)}`);
  expect(portal.browser.complaints.splice(0).filter((complaint) => !own.some((each) => complaint.startsWith(each)))).toEqual([]);
}

test('the element has at most 3 kB', () => {
  expect(readFileSync(new URL('../../kit/src/portal/embed/kit-portal.js', import.meta.url)).length).toBeLessThanOrEqual(3_000);
});

test('in a page of another origin: a key is made there, and the page around it can read nothing', async () => {
  const { page, frame } = await embedded('page=api-keys');
  await frame.getByRole('heading', { name: 'API keys', level: 1 }).waitFor();
  expect(await frame.getByRole('navigation', { name: 'Screens' }).getByRole('link').allTextContents()).toContain('Deliveries');
  await frame.getByRole('link', { name: 'New API key' }).click();
  await frame.locator('#field-name').fill('from a frame');
  await frame.locator('#field-scopes').fill('requests:read');
  await page.keyboard.press('Enter');
  await frame.getByRole('button', { name: 'Create API key' }).click();
  const key = await frame.getByRole('dialog').getByRole('textbox', { name: 'API key' }).inputValue();
  expect((await fetch(new URL('/v1/requests', portal.shop.address), { headers: { 'x-api-key': key } })).status).toBe(200);
  await frame.getByRole('button', { name: 'I have stored it' }).click();

  expect(made).toHaveLength(1);
  expect(await page.evaluate(`document.querySelector('iframe').contentDocument`)).toBeNull();
  await expect(page.evaluate(`document.querySelector('iframe').contentWindow.document.body.textContent`)).rejects.toThrow(/cross-origin/);
  const heard = JSON.stringify(await page.evaluate('heard'));
  expect(heard).toContain('kit-portal:height');
  for (const secret of [key, made[0]!.token, 'from a frame']) expect(heard).not.toContain(secret);
  // No third-party cookie, and nothing that outlives the page.
  expect(await page.context().cookies()).toEqual([]);
  const inside = page.frames().find((each) => each.url().includes('/portal/embed'))!;
  expect(inside.url()).not.toContain(made[0]!.token);
  const kept = await inside.evaluate('JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie])');
  for (const secret of [key, made[0]!.token]) expect(kept).not.toContain(secret);
  await page.context().close();
  expectQuiet();
});

test('the frame is as high as its content, has the page and the colours that were asked for, and axe finds nothing at 390 px', async () => {
  const { page, frame } = await embedded('page=endpoints&theme=dark');
  await frame.getByRole('heading', { name: 'Endpoints', level: 1 }).waitFor();
  const inside = () => page.frames().find((each) => each.url().includes('/portal/embed'))!;
  const heights = async () => [
    Number(await page.evaluate(`document.querySelector('iframe').clientHeight`)),
    Math.ceil(Number(await inside().evaluate('document.documentElement.getBoundingClientRect().height'))),
  ];
  const fits = async () => {
    const [outer, inner] = await heights();
    return outer === inner;
  };
  await expect.poll(fits, { timeout: 30_000 }).toBe(true);
  const [before = 0] = await heights();
  await frame.getByRole('link', { name: 'New endpoint' }).click();
  await frame.getByRole('heading', { name: 'New endpoint', level: 1 }).waitFor();
  await expect.poll(async () => (await heights())[0] !== before && (await fits()), { timeout: 30_000 }).toBe(true);
  expect(await inside().evaluate('document.documentElement.dataset.mantineColorScheme')).toBe('dark');
  await page.setViewportSize({ width: 390, height: 844 });
  expect(await findings(inside())).toEqual([]);
  expect(await inside().evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(390);
  await page.context().close();
  expectQuiet();
});

test('when its session ends, the frame asks for another link, and goes on where it was', async () => {
  const { page, frame } = await embedded('page=endpoints');
  await frame.getByRole('heading', { name: 'Endpoints', level: 1 }).waitFor();
  expect(made).toHaveLength(1);
  await revokePortalLink(portal.shop.db, made[0]!.id);
  await frame.getByRole('link', { name: 'Deliveries', exact: true }).click();
  await expect.poll(() => made.length, { timeout: 30_000 }).toBe(2);
  await frame.getByRole('heading', { name: 'Deliveries', level: 1 }).waitFor();
  await frame.getByText('Nothing was sent to your endpoints yet').waitFor();
  expect(made).toHaveLength(2);
  await page.context().close();
  expectQuiet();
});

test('a page of another origin cannot show it, and is told nothing', async () => {
  const { page } = await embedded('page=endpoints', stranger);
  await expect.poll(() => page.frames().length, { timeout: 30_000 }).toBe(2);
  await expect.poll(() => page.frames()[1]?.url(), { timeout: 30_000 }).toBe('chrome-error://chromewebdata/');
  expect(await page.evaluate('heard')).toEqual([]);
  expect(made).toEqual([]);
  await page.context().close();
  const complaints = portal.browser.complaints.splice(0);
  expect(complaints.filter((each) => each.includes('frame-ancestors')).length).toBeGreaterThan(0);
});
