import { type AppOptions, isAuthenticated } from 'kit';
import { admin } from 'kit/admin';
import { AccountController, accounts, type MailPort } from 'kit/contrib/accounts';
import { ApiKeyController, ApiKeyRateThrottle, apiKeys, ServiceUserController } from 'kit/contrib/apikeys';
import { audit, TenantAuditController } from 'kit/contrib/audit';
import { jobs } from 'kit/contrib/jobs';
import { mcp } from 'kit/contrib/mcp';
import { pages } from 'kit/contrib/pages';
import { TenantController, tenants } from 'kit/contrib/tenants';
import { TenantWebhookController, URLPolicy, webhooks } from 'kit/contrib/webhooks';
import { HealthController, requestId, requestLog, securityHeaders } from 'kit/middleware';
import { clientThrottle } from 'kit/throttle';
import { ProjectController, projectModule } from './projects.ts';
import { demo } from './seeds.ts';

// In development the API runs its own workers. Elsewhere compose.yaml runs them.
const isDevelopment = process.env['NODE_ENV'] === 'development';
// In development and in tests webhooks may go to this machine.
const isLocal = isDevelopment || process.env['NODE_ENV'] === 'test';

/** Links in mails begin with it. */
const publicUrl = process.env['PUBLIC_URL'] ?? 'http://127.0.0.1:3000';

/** The application without its database: kit.config.ts and the tests each add theirs, and how mails are sent. */
export function appOptions(port: MailPort): AppOptions {
  const mail = { ...port, linkUrl: `${publicUrl}/account/link` };
  return {
    title: '{{name}}',
    version: '0.1.0',
    seeds: [demo],
    modules: [
      accounts({ signUp: 'invitation', mail }),
      // Customers: requests name theirs in the header X-Tenant.
      tenants({ roles: ['owner', 'admin', 'member'], create: isAuthenticated, mail }),
      apiKeys(),
      audit(),
      jobs({ worker: isDevelopment }),
      webhooks({ worker: isDevelopment, urlPolicy: URLPolicy({ allowHttp: isLocal, allowPrivateNetworks: isLocal }) }),
      mcp(),
      projectModule(),
      pages({ home: '/account/tenants' }),
      admin(),
    ],
    middleware: [requestId(), requestLog(), securityHeaders()],
    throttles: [clientThrottle('600/min'), ApiKeyRateThrottle('300/min')],
    mount: {
      '/v1': {
        '/account': AccountController,
        '/tenants': TenantController,
        '/api-keys': ApiKeyController,
        // Programs of a company, such as a till: their keys stay when the person leaves who made them.
        '/service-users': ServiceUserController,
        '/webhooks': TenantWebhookController,
        // What was done in a company, for its owners and admins.
        '/audit': TenantAuditController,
        '/projects': ProjectController,
      },
      '/': { '/health': HealthController },
    },
  };
}
