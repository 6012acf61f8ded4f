import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createApiKey } from '../../kit/src/contrib/apikeys/index.ts';
import { createEndpoint, publish } from '../../kit/src/contrib/webhooks/index.ts';
import { requestLogs } from '../../kit/src/contrib/requests/log/log.ts';
import { settled } from './admin-browser.ts';
import { findings } from './axe.ts';
import { PortalShop } from './shop/portal-shop.ts';

/** A name that would run, were it markup. */
const HOSTILE = `"><img src=x onerror="alert(1)"><b>CI</b>`;

let portal: PortalShop;

beforeAll(async () => {
  portal = await PortalShop.open({ title: 'Bean & Leaf for developers' });
  const { shop, customerId } = portal;
  const { raw } = await createApiKey(shop.db, { user: customerId, name: HOSTILE, scopes: ['requests:read'], quota: '100/month' });
  await shop.db.transaction(async (tx) => {
    await createEndpoint(tx, { owner: customerId, tenantKey: '', url: 'http://127.0.0.1:9/hooks', events: ['*'], description: HOSTILE });
    await publish(tx, 'order.paid', { id: 1, note: HOSTILE }, { owner: customerId });
  });
  for (const path of ['/v1/requests', '/v1/usage', '/v1/hooks'])
    await fetch(new URL(path, shop.address), { headers: { 'x-api-key': raw } });
  await requestLogs.of(shop.db).flush();
});
afterAll(() => portal[Symbol.asyncDispose]());

describe.each(['light', 'dark'] as const)('in %s colours', (colorScheme) => {
  test.each(['Overview', 'API keys', 'Endpoints', 'Deliveries', 'Event types', 'Requests', 'Usage', 'Quotas', 'Agents', 'Signature check'])(
    '%s: axe finds nothing, and on a phone nothing is wider than the screen',
    async (screen) => {
      const { page, browser } = portal;
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize({ width: 1280, height: 900 });
      await portal.go(screen);
      expect(await findings(page)).toEqual([]);
      await page.setViewportSize({ width: 390, height: 844 });
      await settled(page);
      expect(await findings(page)).toEqual([]);
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(390);
      browser.expectQuiet();
    },
  );

  test.each([
    ['API keys', HOSTILE],
    ['Endpoints', 'http://127.0.0.1:9/hooks'],
    ['Deliveries', 'order.paid'],
    ['Event types', 'order.paid'],
  ])('a record of %s: axe finds nothing at both widths, and what customers wrote is text', async (screen, title) => {
    const { page, browser } = portal;
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize({ width: 1280, height: 900 });
    await portal.go(screen);
    await page.getByRole('link', { name: title, exact: true }).first().click();
    await page.getByRole('heading', { name: title, level: 1 }).waitFor();
    for (const width of [1280, 390]) {
      await page.setViewportSize({ width, height: 900 });
      await settled(page);
      expect(await findings(page), `${screen} at ${width}`).toEqual([]);
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(width);
    }
    expect(await page.locator('img[src="x"]').count()).toBe(0);
    browser.expectQuiet();
  });

  test('the API reference: axe finds nothing, its requests have the session of the portal, and a DELETE is asked for', async () => {
    const { shop, browser } = portal;
    const page = await portal.page.context().newPage();
    await page.emulateMedia({ colorScheme });
    const asked: string[] = [];
    page.on('dialog', (dialog) => {
      asked.push(dialog.message());
      void dialog.dismiss();
    });
    await page.goto(new URL('reference', shop.address).href);
    await page.getByRole('link', { name: '← Bean & Leaf for developers' }).waitFor();
    expect(await findings(page)).toEqual([]);
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('link', { name: 'TypeScript', exact: true }).click(),
    ]);
    expect(download.suggestedFilename()).toBe('client.ts');
    expect(await readFile(await download.path(), 'utf8')).toContain('/v1/');
    const tryOut = async (id: string) => {
      await page.goto(new URL(`reference#op-${id}`, shop.address).href);
      const operation = page.locator(`[id="op-${id}"]`);
      await operation.getByText('Try it', { exact: true }).click();
      return operation;
    };
    const listed = await tryOut('keys_list');
    await listed.getByRole('button', { name: 'Send' }).click();
    await listed.locator('.try-result .status').getByText('200').waitFor();
    await listed.locator('.try-result').getByText('onerror').waitFor();
    const removed = await tryOut('keys_revoke');
    await removed.getByLabel('id (required)').fill('019b0c1e-8f00-7000-8000-000000000001');
    await removed.getByRole('button', { name: 'Send' }).click();
    await expect.poll(() => asked).toEqual([expect.stringContaining('Send DELETE')]);
    expect(await removed.locator('.try-result').textContent()).toBe('');
    await page.setViewportSize({ width: 390, height: 844 });
    expect(await findings(page)).toEqual([]);
    await page.close();
    browser.expectQuiet();
  });
});
