import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createApiKey } from '../../kit/src/contrib/apikeys/index.ts';
import { requestLogs } from '../../kit/src/contrib/requests/log.ts';
import { settled } from './admin-browser.ts';
import { findings } from './axe.ts';
import { PortalShop } from './shop/portal-shop.ts';

let portal: PortalShop;

beforeAll(async () => {
  portal = await PortalShop.open('Bean & Leaf for developers');
  const { shop, customerId } = portal;
  const { raw } = await createApiKey(shop.db, { user: customerId, name: 'CI', scopes: ['requests:read'], quota: '100/month' });
  for (const path of ['/v1/requests', '/v1/usage', '/v1/hooks'])
    await fetch(new URL(path, shop.address), { headers: { 'x-api-key': raw } });
  await requestLogs.of(shop.db).flush();
});
afterAll(() => portal[Symbol.asyncDispose]());

describe.each(['light', 'dark'] as const)('in %s colours', (colorScheme) => {
  test.each(['API keys', 'Endpoints', 'Deliveries', 'Requests', 'Usage', 'Quotas'])(
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
});
