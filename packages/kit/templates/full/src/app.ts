import type { AppOptions } from 'kit';
import { admin } from 'kit/admin';
import { AccountController, accounts } from 'kit/contrib/accounts';
import { ApiKeyController, ApiKeyRateThrottle, apiKeys } from 'kit/contrib/apikeys';
import { audit } from 'kit/contrib/audit';
import { objectGrants } from 'kit/contrib/grants';
import { JobController, jobs } from 'kit/contrib/jobs';
import { URLPolicy, WebhookEndpointController, webhooks } from 'kit/contrib/webhooks';
import { HealthController, requestId, requestLog, securityHeaders } from 'kit/middleware';
import { clientThrottle } from 'kit/throttle';
import { helpdesk } from './helpdesk.ts';
import { findMembership, tenantOf } from './organizations.ts';
import { demo } from './seeds.ts';
import { CommentController, commentResource, ticketActions, TicketController } from './tickets.ts';

// In development the API runs its own workers, and webhooks may go to this machine. Elsewhere compose.yaml runs the workers.
const isDevelopment = process.env['NODE_ENV'] === 'development';

/** The application without its database: kit.config.ts and the tests each add theirs. */
export const appOptions: AppOptions = {
  title: '{{name}}',
  version: '0.1.0',
  tenant: tenantOf,
  seeds: [demo],
  modules: [
    accounts(),
    apiKeys(),
    audit(),
    jobs({ worker: isDevelopment }),
    webhooks(isDevelopment ? { worker: true, urlPolicy: URLPolicy({ allowHttp: true, allowPrivateNetworks: true }) } : {}),
    objectGrants({
      objects: [ticketActions],
      isInTenant: async (db, user, tenantKey) => (await findMembership(db, user.id, tenantKey)) !== null,
    }),
    helpdesk(),
    admin(),
  ],
  resources: [commentResource],
  middleware: [requestId(), requestLog(), securityHeaders()],
  throttles: [clientThrottle('600/min'), ApiKeyRateThrottle('300/min')],
  mount: {
    '/v1': {
      '/account': AccountController,
      '/api-keys': ApiKeyController,
      '/tickets': TicketController,
      '/tickets/:ticket_id/comments': CommentController,
      '/webhooks': WebhookEndpointController,
      '/jobs': JobController,
    },
    '/': { '/health': HealthController },
  },
};
