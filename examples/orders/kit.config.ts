import { createApp } from 'kit';
import { AccountController, accounts } from 'kit/contrib/accounts';
import { ApiKeyController, ApiKeyRateThrottle, apiKeys } from 'kit/contrib/apikeys';
import { HealthController, requestId, requestLog, securityHeaders } from 'kit/middleware';
import { clientThrottle } from 'kit/throttle';
import { databaseUrl, log } from './config.ts';
import { OrderController } from './orders/controller.ts';
import { orders } from './orders/module.ts';
import { liveSettings } from './settings.ts';

export default createApp({
  title: 'Orders',
  version: '1.0.0',
  description: 'Takes orders, hands out API keys, and reads its own settings from the configuration server.',
  database: databaseUrl(),
  log: log(),
  modules: [accounts(), apiKeys(), orders()],
  services: [liveSettings],
  middleware: [requestId(), requestLog(), securityHeaders()],
  throttles: [clientThrottle('600/min'), ApiKeyRateThrottle('300/min')],
  mount: {
    '/v1': { '/orders': OrderController, '/api-keys': ApiKeyController, '/account': AccountController },
    '/': { '/health': HealthController },
  },
});
