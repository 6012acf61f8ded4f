import type { Page } from 'playwright-core';
import { ApiKeyController } from '../../../kit/src/contrib/apikeys/index.ts';
import { QuotaController, RequestController, requests, UsageController } from '../../../kit/src/contrib/requests/index.ts';
import { mcp } from '../../../kit/src/contrib/mcp/index.ts';
import { TenantController, tenants } from '../../../kit/src/contrib/tenants/index.ts';
import { eventType, type EventType, type Transport, WebhookEndpointController } from '../../../kit/src/contrib/webhooks/index.ts';
import { Controller } from '../../../kit/src/http/compile/controller.ts';
import { raw } from '../../../kit/src/http/declare/raw.ts';
import { route } from '../../../kit/src/http/declare/route.ts';
import { allowAny } from '../../../kit/src/permissions/index.ts';
import { z } from 'zod';
import { portal, portalLink, type PortalOptions } from '../../../kit/src/portal/index.ts';
import { AdminBrowser, logIn, settled } from '../admin-browser.ts';
import { Shop } from './shop.ts';

class Keys extends ApiKeyController {
  static override readonly grantableScopes = ['requests:read', 'webhooks:read'];
}

class TenantHooks extends WebhookEndpointController {
  static override readonly tenantField = 'tenant_key';
}

const LOGO = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1"><rect width="1" height="1" fill="#063"/></svg>';

class LogoController extends Controller {
  logo = route.get('/', { permission: allowAny, auth: [], hidden: true, response: raw('image/svg+xml') }, ({ reply }) => {
    reply.header('content-type', 'image/svg+xml');
    return LOGO;
  });
}

const TYPES: readonly EventType[] = [
  eventType('order.paid', z.object({ id: z.number() }), { description: 'An order was <b>paid</b>.', example: { id: 7 } }),
  eventType('order.sent', z.object({ id: z.number() })),
];

interface PortalShopOptions extends PortalOptions {
  readonly title: string;
  /** The shop has tenants, and `dana` is in none yet. */
  readonly tenants?: boolean;
  /** Nobody has logged in: the tests come by links. */
  readonly anonymous?: boolean;
  readonly now?: string;
  readonly transport?: Transport;
  readonly eventTypes?: readonly EventType[];
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

  static async open(options: PortalShopOptions): Promise<PortalShop> {
    const {
      tenants: hasTenants = false,
      anonymous = false,
      now = '2030-01-15T10:00:00.000Z',
      transport,
      eventTypes = TYPES,
      ...look
    } = options;
    const made = await Shop.open({
      now,
      ...(transport === undefined ? {} : { transport }),
      eventTypes,
      asked: ['/logo.svg'],
      modules: [requests(), mcp({ include: [RequestController] }), ...(hasTenants ? [tenants()] : []), portal(look)],
      mount: {
        '/': { '/logo.svg': LogoController },
        '/v1': {
          '/api-keys': Keys,
          '/hooks': hasTenants ? TenantHooks : WebhookEndpointController,
          '/requests': RequestController,
          '/usage': UsageController,
          '/quotas': QuotaController,
          ...(hasTenants ? { '/tenants': TenantController } : {}),
        },
      },
    });
    const shop = Object.create(made, { address: { value: made.address.replace('/admin/', '/portal/') } }) as Shop;
    const { id } = await shop.newUser({ username: 'dana', email: 'dana@customer.example' });
    const browser = await AdminBrowser.open(shop);
    const page = await browser.page({ anonymous: true });
    const opened = new PortalShop(shop, browser, page, id);
    if (!anonymous) {
      await page.goto(shop.address);
      await page.getByRole('heading', { name: look.title, level: 1 }).waitFor();
      await logIn(page, 'dana');
      await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor();
    }
    return opened;
  }

  /** A new link for the customer. */
  link(given: Partial<Parameters<typeof portalLink>[1]> = {}): ReturnType<typeof portalLink> {
    return portalLink(this.shop.db, { user: this.customerId, ...given });
  }

  /** Where a link leads to. */
  addressOf({ path }: { readonly path: string }): string {
    return new URL(path, this.shop.address).href;
  }

  /** A page of the portal, by the navigation. */
  async go(screen: string, page = this.page): Promise<void> {
    await page.getByRole('navigation', { name: 'Screens' }).getByRole('link', { name: screen, exact: true }).click();
    await page.getByRole('heading', { name: screen, level: 1 }).waitFor();
    await settled(page);
  }

  /** What the navigation leads to, in its order; pages of modules to come included. */
  async screens(page = this.page): Promise<string[]> {
    const links = page.getByRole('navigation', { name: 'Screens' }).getByRole('link');
    await links.first().waitFor();
    return (await links.allTextContents()).map((label) => label.trim());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.browser.close();
    await this.shop.test.close();
  }
}
