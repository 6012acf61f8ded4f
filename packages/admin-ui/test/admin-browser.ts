import type { Browser, BrowserContextOptions, Locator, Page, Request } from 'playwright-core';
import { expect } from 'vitest';
import { launchChromium } from '../../../test/provision/chromium.ts';
import { PASSWORD, STAFF, type Shop } from './shop/shop.ts';

/** Only a step that hangs takes as long, also on a machine ten times busier. */
const STEP_MS = 60_000;

/**
 * Nothing moves or fades: a click lands where a button was when it was found, and colours are those of the end. As a style sheet of the document,
 * which the content security policy of the site does not concern.
 */
const WITHOUT_MOTION = `const still = new CSSStyleSheet();
still.replaceSync('*, *::before, *::after { transition: none !important; animation-duration: 0s !important; animation-delay: 0s !important }');
document.adoptedStyleSheets = [...document.adoptedStyleSheets, still];`;

/** What each page has asked for and not got yet. */
const requests = new WeakMap<Page, ReadonlySet<Request>>();

export type StoredSession = Exclude<BrowserContextOptions['storageState'], string | undefined>;

/** One real browser looking at a shop's admin site. Whatever a page complains about fails the test that ends with `expectQuiet`. */
export class AdminBrowser {
  readonly browser: Browser;
  readonly shop: Shop;
  readonly complaints: string[] = [];
  /** Every answer of the server's API, to look for what must never be in one. */
  readonly answers: { readonly url: string; readonly body: string }[] = [];
  #session: StoredSession | undefined;

  private constructor(browser: Browser, shop: Shop) {
    this.browser = browser;
    this.shop = shop;
  }

  static async open(shop: Shop): Promise<AdminBrowser> {
    return new AdminBrowser(await launchChromium(), shop);
  }

  /** A page of its own profile; logged in as staff unless `session` says otherwise. */
  async page(options: BrowserContextOptions & { readonly anonymous?: boolean } = {}): Promise<Page> {
    const { anonymous = false, ...rest } = options;
    const context = await this.browser.newContext({
      viewport: { width: 1280, height: 900 },
      locale: 'en-GB',
      timezoneId: 'UTC',
      reducedMotion: 'reduce',
      permissions: ['clipboard-read', 'clipboard-write'],
      ...(anonymous ? {} : { storageState: await this.#stored() }),
      ...rest,
    });
    await context.addInitScript(WITHOUT_MOTION);
    // A step that needs longer has gone wrong, and says which one.
    context.setDefaultTimeout(STEP_MS);
    return this.#watched(await context.newPage());
  }

  /** A logged-in page at a place of the site, with its main heading drawn. */
  async at(hash: string, options: BrowserContextOptions = {}): Promise<Page> {
    const page = await this.page(options);
    await go(page, this.shop, hash);
    return page;
  }

  expectQuiet(): void {
    expect(this.complaints.splice(0)).toEqual([]);
  }

  async close(): Promise<void> {
    await this.browser.close();
  }

  /** Logs in once, through the form, and lends the cookie to every page. */
  async #stored(): Promise<StoredSession> {
    if (this.#session !== undefined) return this.#session;
    const page = await this.page({ anonymous: true });
    await page.goto(this.shop.address);
    await logIn(page);
    await page.getByRole('heading', { name: 'Bean & Leaf', level: 1, exact: true }).waitFor();
    this.#session = await page.context().storageState();
    await page.context().close();
    return this.#session;
  }

  async #watched(page: Page): Promise<Page> {
    await page.clock.setFixedTime(this.shop.clock.now());
    page.on('pageerror', (error) => void this.complaints.push(String(error)));
    page.on('dialog', (dialog) => {
      this.complaints.push(`a dialog opened: ${dialog.message()}`);
      void dialog.dismiss();
    });
    page.on('console', (message) => {
      // The browser itself notes every answer that is not a success; the tests look at what the page makes of it.
      const isAnswer = /^Failed to load resource: the server responded with a status of 4\d\d|net::ERR_/.test(message.text());
      if (['error', 'warning'].includes(message.type()) && !isAnswer) this.complaints.push(`${message.type()}: ${message.text()}`);
    });
    const open = new Set<Request>();
    requests.set(page, open);
    page.on('requestfinished', (request) => void open.delete(request));
    page.on('requestfailed', (request) => void open.delete(request));
    page.on('request', (request) => {
      // An event stream is never complete.
      if (request.resourceType() !== 'eventsource') open.add(request);
      const url = request.url();
      const allowed = [this.shop.address, ...this.shop.asked, 'data:', 'blob:'];
      if (!allowed.some((address) => url.startsWith(address))) this.complaints.push(`asked ${url}`);
    });
    page.on('response', (response) => {
      if (!response.url().includes('/api/')) return;
      void response.text().then(
        (body) => this.answers.push({ url: response.url(), body }),
        () => {},
      );
    });
    return page;
  }
}

export async function logIn(page: Page, login = STAFF, password = PASSWORD): Promise<void> {
  await page.getByLabel('User name or e-mail address').fill(login);
  await page.getByRole('textbox', { name: 'Password' }).fill(password);
  await page.getByRole('button', { name: 'Log in', exact: true }).click();
}

export async function go(page: Page, shop: Shop, hash: string): Promise<void> {
  await page.goto(`${shop.address}${hash}`);
  await page.getByRole('heading', { level: 1 }).waitFor();
}

/** No answer is awaited, and what came is drawn: nothing is asked during three frames. Playwright's `networkidle` is half a second of silence. */
export async function settled(page: Page): Promise<void> {
  for (let quiet = 0; quiet < 3;) {
    await page.evaluate('new Promise((drawn) => requestAnimationFrame(() => setTimeout(drawn)))');
    quiet = requests.get(page)?.size === 0 ? quiet + 1 : 0;
  }
}

/** The rows of the list on the page, by their title. */
export function row(page: Page, title: string): ReturnType<Page['locator']> {
  return page.getByRole('row').filter({ has: page.getByRole('link', { name: title, exact: true }) });
}

/** Picks a record by typing what people call it. */
export async function pick(scope: Page | Locator, label: string, text: string, title: string): Promise<void> {
  const input = scope.locator('input[type=text], input:not([type])').and(scope.getByLabel(label)).first();
  await input.click();
  await input.fill(text);
  const page = 'page' in scope ? scope.page() : scope;
  await page.getByRole('option', { name: title }).first().click();
}
