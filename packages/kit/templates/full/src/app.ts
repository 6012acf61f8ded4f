import type { AppOptions } from 'kit';
import { admin } from 'kit/admin';
import { AccountController, accounts } from 'kit/contrib/accounts';
import { ApiKeyController, ApiKeyRateThrottle, apiKeys } from 'kit/contrib/apikeys';
import { audit } from 'kit/contrib/audit';
import { objectGrants } from 'kit/contrib/grants';
import { JobController, jobs } from 'kit/contrib/jobs';
import { URLPolicy, webhooks } from 'kit/contrib/webhooks';
import { HealthController, requestId, requestLog, securityHeaders } from 'kit/middleware';
import { clientThrottle } from 'kit/throttle';
import { helpdesk } from './helpdesk.ts';
import { findMembership, organizationOf } from './organizations.ts';
import { demo } from './seeds.ts';
import { CommentController, commentResource, ticketActions, TicketController } from './tickets.ts';
import { OrganizationWebhookController } from './webhooks.ts';

// In development the API runs its own workers. Elsewhere compose.yaml runs them.
const isDevelopment = process.env['NODE_ENV'] === 'development';
// In development and in tests webhooks may go to this machine.
const isLocal = isDevelopment || process.env['NODE_ENV'] === 'test';

/** The application without its database: kit.config.ts and the tests each add theirs. */
export const appOptions: AppOptions = {
  title: '{{name}}',
  version: '0.1.0',
  tenant: organizationOf,
  membership: ({ user, tenant, db }) => findMembership(db, user.id, tenant),
  seeds: [demo],
  modules: [
    accounts(),
    apiKeys(),
    audit(),
    jobs({ worker: isDevelopment }),
    webhooks({ worker: isDevelopment, urlPolicy: URLPolicy({ allowHttp: isLocal, allowPrivateNetworks: isLocal }) }),
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
      '/webhooks': OrganizationWebhookController,
      '/jobs': JobController,
    },
    '/': { '/health': HealthController },
  },
};
