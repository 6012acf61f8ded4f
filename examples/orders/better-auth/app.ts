import { type App, Controller, createApp, hasRole, route } from 'kit';
import { ApiKeyController, ApiKeyRateThrottle, apiKeys } from 'kit/contrib/apikeys';
import { audit } from 'kit/contrib/audit';
import { betterAuth } from 'kit/contrib/better-auth';
import { jobs } from 'kit/contrib/jobs';
import type { Database } from 'kit/db';
import { HealthController, requestId, requestLog, securityHeaders } from 'kit/middleware';
import { clientThrottle } from 'kit/throttle';
import { log } from '../config.ts';
import { liveSettings } from '../settings.ts';
import { z } from 'zod';
import type { Auth } from './auth.ts';
import { OrderController, organizationOrders } from './orders.ts';

const Organization = z.object({ id: z.string(), your_roles: z.array(z.string()) });

/** Only administrators of the organization. */
class OrganizationController extends Controller {
  show = route.get(
    '/',
    { permission: hasRole('owner', 'admin'), response: Organization, summary: 'The organization you manage' },
    async ({ caller }) => {
      const { tenant, membership } = await caller();
      return { id: tenant ?? '', your_roles: [...(membership?.roles ?? [])] };
    },
  );
}

/** The orders API with better-auth as its login: organizations are the tenants. */
export function createOrdersApp(database: Database, auth: Auth): App {
  return createApp({
    title: 'Orders of organizations',
    version: '1.0.0',
    database,
    log: log(),
    modules: [betterAuth(auth), audit(), apiKeys(), jobs({ worker: true }), organizationOrders],
    services: [liveSettings],
    middleware: [requestId(), requestLog(), securityHeaders()],
    throttles: [clientThrottle('600/min'), ApiKeyRateThrottle('300/min')],
    mount: {
      '/v1': { '/orders': OrderController, '/organization': OrganizationController, '/api-keys': ApiKeyController },
      '/': { '/health': HealthController },
    },
  });
}
