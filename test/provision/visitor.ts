import type { Browser, Page } from 'playwright-core';
import { expect } from 'vitest';
import { findings } from '../../packages/admin-ui/test/axe.ts';

// A person with a phone, on pages for people: what their tests do with a page.

const WIDTH = 390;
/** Only a page that hangs takes as long. */
const STEP_MS = 60_000;

/** A browser of its own, with no cookies. Faults of scripts are added to `complaints`. */
export async function visitor(browser: Browser, complaints: string[], colorScheme: 'light' | 'dark' = 'light'): Promise<Page> {
  const context = await browser.newContext({ viewport: { width: WIDTH, height: 800 }, locale: 'en-GB', colorScheme });
  context.setDefaultTimeout(STEP_MS);
  const page = await context.newPage();
  page.on('pageerror', (error) => void complaints.push(String(error)));
  return page;
}

export async function fill(page: Page, label: string, value: string): Promise<void> {
  await page.locator('main').getByLabel(label, { exact: true }).filter({ visible: true }).first().fill(value);
}

export async function press(page: Page, name: string): Promise<void> {
  await page.locator('main').getByRole('button', { name, exact: true }).filter({ visible: true }).first().click();
}

export async function said(page: Page, text: string): Promise<void> {
  await page.getByText(text).filter({ visible: true }).first().waitFor();
}

/** The page is there and its script is done; it fits the phone, and axe has no serious finding. */
export async function arrived(page: Page, heading: string): Promise<void> {
  await page.getByRole('heading', { name: heading, level: 1, exact: true }).waitFor();
  await page.locator('body[data-ready]').waitFor();
  await checkLook(page, heading);
}

/** The same for a page that has changed since. */
export async function checkLook(page: Page, what: string): Promise<void> {
  expect([what, await findings(page)]).toEqual([what, []]);
  const width = await page.evaluate<number>('document.documentElement.scrollWidth');
  expect([what, width <= WIDTH]).toEqual([what, true]);
}
