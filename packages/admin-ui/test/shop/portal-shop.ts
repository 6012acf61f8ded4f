import type { Page } from 'playwright-core';
import { ApiKeyController } from '../../../kit/src/contrib/apikeys/index.ts';
import { QuotaController, RequestController, requests, UsageController } from '../../../kit/src/contrib/requests/index.ts';
import { mcp } from '../../../kit/src/contrib/mcp/index.ts';
import { eventType, WebhookEndpointController } from '../../../kit/src/contrib/webhooks/index.ts';
import { z } from 'zod';
import { portal } from '../../../kit/src/portal/index.ts';
import { AdminBrowser, logIn, settled } from '../admin-browser.ts';
import { Shop } from './shop.ts';

class Keys extends ApiKeyController {
  static override readonly grantableScopes = ['requests:read', 'webhooks:read'];
}

/** A shop with the developers' portal, and a browser in which a customer has logged in there. */
export class PortalShop implements AsyncDisposable {
  readonly shop: Shop;
  readonly browser: AdminBrowser;
  readonly page: Page;
  readonly customerId: string;

  private constructor(shop: Shop, browser: AdminBrowser, page: Page, customerId: string) {
    this.shop = shop;
    this.browser = browser;
    this.page = page;
    this.customerId = customerId;
  }

  static async open(title: string): Promise<PortalShop> {
    const made = await Shop.open({
      now: '2030-01-15T10:00:00.000Z',
      eventTypes: [
        eventType('order.paid', z.object({ id: z.number() }), { description: 'An order was <b>paid</b>.', example: { id: 7 } }),
        eventType('order.sent', z.object({ id: z.number() })),
      ],
      modules: [requests(), mcp({ include: [RequestController] }), portal({ title })],
      mount: {
        '/v1': {
          '/api-keys': Keys,
          '/hooks': WebhookEndpointController,
          '/requests': RequestController,
          '/usage': UsageController,
          '/quotas': QuotaController,
        },
      },
    });
    const shop = Object.create(made, { address: { value: made.address.replace('/admin/', '/portal/') } }) as Shop;
    const { id } = await shop.newUser({ username: 'dana', email: 'dana@customer.example' });
    const browser = await AdminBrowser.open(shop);
    const page = await browser.page({ anonymous: true });
    await page.goto(shop.address);
    await page.getByRole('heading', { name: title, level: 1 }).waitFor();
    await logIn(page, 'dana');
    await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor();
    return new PortalShop(shop, browser, page, id);
  }

  /** A page of the portal, by the navigation. */
  async go(screen: string): Promise<void> {
    await this.page.getByRole('navigation', { name: 'Screens' }).getByRole('link', { name: screen, exact: true }).click();
    await this.page.getByRole('heading', { name: screen, level: 1 }).waitFor();
    await settled(this.page);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.browser.close();
    await this.shop.test.close();
  }
}
