import { spawnSync } from 'node:child_process';
import { existsSync, globSync, readFileSync, statSync } from 'node:fs';
import { extname, join } from 'node:path';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gunzipSync } from 'node:zlib';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { findings } from '../../packages/admin-ui/test/axe.ts';
import { launchChromium } from '../../test/provision/chromium.ts';

const dist = join(import.meta.dirname, 'dist');

beforeAll(() => {
  // Vitest's own variables (DEV, MODE, …) would make it a development build.
  const env = { PATH: process.env['PATH'], HOME: process.env['HOME'] };
  const built = spawnSync(process.execPath, ['build.ts'], { cwd: import.meta.dirname, encoding: 'utf8', env });
  if (built.status !== 0) throw new Error(`the site did not build:\n${built.stdout}${built.stderr}`);
}, 600_000);

const pages = () => globSync('**/*.html', { cwd: dist });
const html = (path: string) => readFileSync(join(dist, path), 'utf8');

/** The file a path of the site is served from. */
function served(path: string): string | undefined {
  const file = join(dist, path);
  if (existsSync(file) && statSync(file).isFile()) return path;
  return existsSync(join(file, 'index.html')) ? join(path, 'index.html') : undefined;
}

test('every internal link of every built page leads to a file, and its fragment to an element', () => {
  const broken = pages().flatMap((page) =>
    [...html(page).matchAll(/\s(?:href|src)="([^"]+)"/g)].flatMap(([, address = '']) => {
      const url = new URL(address.replaceAll('&amp;', '&').replaceAll('&#38;', '&'), `http://site/${page.replace(/index\.html$/, '')}`);
      if (url.host !== 'site') return [];
      const target = served(decodeURIComponent(url.pathname));
      if (target === undefined) return [`${page}: ${address}`];
      const id = decodeURIComponent(url.hash.slice(1));
      return id === '' || html(target).includes(` id="${id}"`) ? [] : [`${page}: ${address}`];
    }),
  );
  expect(pages().length).toBeGreaterThan(30);
  expect(broken).toEqual([]);
});

test('no page loads anything from elsewhere', () => {
  const foreign = pages().flatMap((page) =>
    [...html(page).matchAll(/<(?:script|img|iframe|link)\b[^>]*?\s(?:src|href)="(https?:[^"]+)"/g)].map(
      ([, address]) => `${page}: ${address}`,
    ),
  );
  expect(foreign).toEqual([]);
});

/** Whether it is a complete gzip stream. */
function isWhole(packed: Buffer): boolean {
  try {
    return gunzipSync(packed).length > 0;
  } catch {
    return false;
  }
}

test('search works offline: its index is part of the site, and each of its files is whole', () => {
  expect(served('pagefind/pagefind.js')).toBeDefined();
  const packed = globSync('pagefind/**/*.{pagefind,pf_meta,pf_index,pf_fragment}', { cwd: dist });
  const cut = packed.filter((file) => !isWhole(readFileSync(join(dist, file))));
  expect(packed.length).toBeGreaterThan(30);
  expect(cut).toEqual([]);
  const entry = JSON.parse(html('pagefind/pagefind-entry.json')) as { languages: { en: { page_count: number } } };
  expect(entry.languages.en.page_count).toBeGreaterThan(30);
});

test('every page has a title and a description of its own', () => {
  const titles = pages()
    .filter((page) => page !== '404.html')
    .map((page) => /<title>([^<]+)<\/title>/.exec(html(page))?.[1]);
  expect(new Set(titles).size).toBe(titles.length);
  const bare = pages().filter((page) => page !== '404.html' && !/<meta name="description" content="[^"]{20,}/.test(html(page)));
  expect(bare).toEqual([]);
});

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
  '.json': 'application/json',
};

/** Serves the built files and nothing else. */
async function serve(): Promise<string> {
  const server = createServer((request, response) => {
    const target = served(decodeURIComponent(new URL(request.url ?? '/', 'http://site').pathname));
    if (target === undefined) response.writeHead(404).end();
    else
      response
        .writeHead(200, {
          'content-type': TYPES[extname(target)] ?? 'application/octet-stream',
          'cache-control': target.startsWith('/_astro/') ? 'max-age=3600' : 'no-store',
        })
        .end(readFileSync(join(dist, target)));
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test('the home page has the menu on a phone, and a picture for each theme', { timeout: 120_000 }, async () => {
  const address = await serve();
  const browser = await launchChromium();
  onTestFinished(() => browser.close());
  for (const colorScheme of ['light', 'dark'] as const) {
    const page = await browser.newPage({ viewport: { width: 375, height: 800 }, colorScheme });
    await page.goto(address);
    await page.getByRole('button', { name: 'Menu' }).click();
    await page.getByRole('link', { name: 'A first API' }).first().waitFor();
    await page.getByRole('button', { name: 'Menu' }).click();
    const shown = await page.locator('img[alt="Your own records in the admin site"]:visible').getAttribute('src');
    expect(shown).toContain(`admin-own-table-${colorScheme}.png`);
    await page.close();
  }
});

const PHONE = { width: 375, height: 800 };
const CUT_CODE =
  'Math.max(0, ...[...document.querySelectorAll(".expressive-code pre")].map((block) => block.scrollWidth - block.clientWidth))';

test('in a browser no page is wider than a phone, and no code is cut off at 1280 px', { timeout: 600_000 }, async () => {
  const address = await serve();
  const browser = await launchChromium();
  onTestFinished(() => browser.close());
  const context = await browser.newContext({ viewport: PHONE });
  const faults: string[] = [];
  const waiting = pages().filter((path) => path !== '404.html');
  const look = async (): Promise<void> => {
    const page = await context.newPage();
    page.on('pageerror', (error) => faults.push(error.message));
    for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
      await page.goto(`${address}/${path.replace(/index\.html$/, '')}`, { waitUntil: 'load' });
      const wider = await page.evaluate<number>('document.documentElement.scrollWidth - document.documentElement.clientWidth');
      if (wider > 0) faults.push(`${path} is ${wider} px too wide`);
      await page.setViewportSize({ width: 1280, height: 800 });
      const cut = await page.evaluate<number>(CUT_CODE);
      if (cut > 0) faults.push(`${path}: ${cut} px of code are cut off`);
      await page.setViewportSize(PHONE);
    }
  };
  // Three tabs: each waits most of the time.
  await Promise.all([look(), look(), look()]);
  expect(faults).toEqual([]);
});

test('search in a browser finds a page by a word of its text, and leads to it', { timeout: 600_000 }, async () => {
  const address = await serve();
  const browser = await launchChromium();
  onTestFinished(() => browser.close());
  const page = await browser.newPage({ viewport: PHONE });
  const faults: string[] = [];
  page.on('console', (message) => faults.push(message.text()));
  page.on('pageerror', (error) => faults.push(error.message));
  page.on('requestfailed', (request) => faults.push(`${request.url()}: ${request.failure()?.errorText}`));
  await page.goto(address);
  await page.getByRole('button', { name: 'Search' }).click();
  await page.locator('.pagefind-ui__search-input').fill('LoadCredential');
  const found = page.locator('.pagefind-ui__result-link', { hasText: 'Deployment' }).first();
  await found.waitFor({ timeout: 300_000 }).catch(async (error: unknown) => {
    const shown = await page.locator('#starlight__search').innerText();
    throw new Error(`Search shows: ${shown}\nThe browser says: ${faults.join('\n')}`, { cause: error });
  });
  await found.click();
  await page.waitForURL('**/guide/deployment/**');
  expect(await page.getByRole('heading', { level: 1 }).textContent()).toBe('Deployment');
  await expect.poll(() => page.getByRole('button', { name: 'Copy to clipboard' }).count()).toBeGreaterThan(0);
});

/** What people ask, in the words that they bring along, and the page that answers. */
const QUESTIONS: Readonly<Record<string, string>> = {
  'rate limit': '/reference/throttle/',
  'send email': '/guide/logins/',
  'google login': '/guide/better-auth/',
  'add a column without downtime': '/guide/upgrading/',
  'rotate api key': '/guide/api-keys/',
  'verify webhook signature': '/guide/webhooks-receiving/',
  'upload file': '/guide/uploads/',
  cron: '/guide/jobs/',
  'restore backup': '/guide/backup-and-failover/',
  GDPR: '/guide/personal-data/',
  'multi-tenant': '/guide/tenancy/',
  websocket: '/guide/live-lists/',
  docker: '/guide/deployment/',
  pagination: '/reference/crud/',
  'write tests': '/reference/testing/',
  'prometheus metrics': '/guide/operate/',
};

test('search answers questions in the words of newcomers: the page is among the first three results', { timeout: 600_000 }, async () => {
  const address = await serve();
  const browser = await launchChromium();
  onTestFinished(() => browser.close());
  const page = await browser.newPage();
  await page.goto(address);
  const found: Record<string, readonly string[]> = {};
  for (const question of Object.keys(QUESTIONS))
    found[question] = await page.evaluate<string[]>(
      `import('/pagefind/pagefind.js')
        .then(({ search }) => search(${JSON.stringify(question)}))
        .then(({ results }) => Promise.all(results.slice(0, 3).map(async (result) => (await result.data()).url)))`,
    );
  const unanswered = Object.entries(QUESTIONS).filter(([question, answer]) => found[question]?.includes(answer) !== true);
  expect(unanswered.map(([question, answer]) => `${question}: ${answer} is not among ${String(found[question])}`)).toEqual([]);
});

test('the search button has the name that it shows, and tables that scroll are reached by keyboard', { timeout: 600_000 }, async () => {
  const address = await serve();
  const browser = await launchChromium();
  onTestFinished(() => browser.close());
  for (const viewport of [{ width: 1280, height: 800 }, PHONE]) {
    const page = await browser.newPage({ viewport });
    for (const path of ['/', '/reference/admin/', '/reference/errors/', '/guide/first-api/']) {
      await page.goto(`${address}${path}`, { waitUntil: 'load' });
      await expect.poll(async () => (await findings(page)).map((finding) => `${path} at ${viewport.width} px: ${finding}`)).toEqual([]);
    }
    await page.close();
  }
});
