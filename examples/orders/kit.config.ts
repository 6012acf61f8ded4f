import { type App, createApp } from 'kit';
import { admin } from 'kit/admin';
import { AccountController, accounts } from 'kit/contrib/accounts';
import { ApiKeyController, ApiKeyRateThrottle, apiKeys } from 'kit/contrib/apikeys';
import { audit, AuditController } from 'kit/contrib/audit';
import { objectGrants } from 'kit/contrib/grants';
import { JobController, jobs } from 'kit/contrib/jobs';
import { mcp } from 'kit/contrib/mcp';
import { QuotaController, RequestController, requests, UsageController } from 'kit/contrib/requests';
import { uploads } from 'kit/contrib/uploads';
import { WebhookEndpointController, webhooks } from 'kit/contrib/webhooks';
import { HealthController, requestId, requestLog, securityHeaders } from 'kit/middleware';
import { portal } from 'kit/portal';
import { clientThrottle } from 'kit/throttle';
import { accountOptions, database, jobOptions, log, monitoring, throttling, uploadOptions, webhookOptions } from './config.ts';
import { orderActions } from './orders/actions.ts';
import { OrderController } from './orders/controller.ts';
import { InvoiceController } from './orders/invoice-controller.ts';
import { exportOrders } from './orders/export-orders.ts';
import { orders } from './orders/module.ts';
import { nightlyReport } from './orders/nightly-report.ts';
import { announceReceipt } from './orders/order-paid.ts';
import { liveSettings } from './settings.ts';
import { ShopController } from './shop/controller.ts';

const app: App = createApp({
  title: 'Orders',
  version: '1.0.0',
  description: 'Takes orders, hands out API keys, tells others by webhook, and reads its own settings from the configuration server.',
  ...database(),
  log: log(),
  modules: [
    accounts(accountOptions()),
    audit(),
    apiKeys(),
    webhooks(webhookOptions()),
    jobs({ jobs: [exportOrders, nightlyReport], ...jobOptions() }),
    uploads(uploadOptions()),
    objectGrants({ objects: [orderActions] }),
    orders(),
    mcp(),
    requests(),
    admin(),
    portal({ title: 'Orders for developers' }),
    ...monitoring(),
  ],
  handlers: [announceReceipt],
  services: [liveSettings],
  middleware: [requestId(), requestLog(), securityHeaders()],
  ...throttling(),
  throttles: [clientThrottle('600/min'), ApiKeyRateThrottle('300/min')],
  mount: {
    '/v1': {
      '/orders': OrderController,
      '/invoices': InvoiceController,
      '/api-keys': ApiKeyController,
      '/webhooks': WebhookEndpointController,
      '/requests': RequestController,
      '/usage': UsageController,
      '/quotas': QuotaController,
      '/jobs': JobController,
      '/account': AccountController,
      '/audit': AuditController,
    },
    '/': { '/health': HealthController, '/shop': new ShopController(() => app.routes) },
  },
});

export default app;
