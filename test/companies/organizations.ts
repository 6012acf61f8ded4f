import { betterAuth as createAuth } from 'better-auth';
import { organization, twoFactor } from 'better-auth/plugins';
import { type AppOptions, hasRole, hasScopes, type Module } from 'kit';
import { ApiKeyController, apiKeys } from 'kit/contrib/apikeys';
import { audit } from 'kit/contrib/audit';
import { betterAuth, joinedKysely, kitPlugin } from 'kit/contrib/better-auth';
import type { MailMessage } from 'kit/contrib/accounts';
import { jobs } from 'kit/contrib/jobs';
import { mcp } from 'kit/contrib/mcp';
import { pages } from 'kit/contrib/pages';
import { TenantWebhookController, URLPolicy, webhooks } from 'kit/contrib/webhooks';
import { CrudController, resource } from 'kit/crud';
import { createTable, type Database, migration, model, t } from 'kit/db';
import { HealthController, requestId } from 'kit/middleware';

// The product of the b2b template on better-auth, whose organizations have ids of text.

const columns = { id: t.uuidv7().pk(), organization_id: t.text(255).readOnly(), title: t.text(200) };
const indexes = [{ columns: ['organization_id', '-id'] }];
const projects = model('projects', columns, { indexes });
const projectResource = resource(projects, { tenant: 'organization_id', events: true, audit: true });
const permission = hasScopes({ allowUnscoped: true });

class ProjectController extends CrudController(projectResource, {
  permission,
  scope: 'projects',
  operations: {
    list: { tool: true },
    create: { tool: true },
    retrieve: { tool: true },
    destroy: { permission: permission.and(hasRole('owner', 'admin')) },
  },
}) {
  static override readonly tags = ['projects'];
}

const projectModule: Module = {
  name: 'projects',
  models: [projects],
  migrations: [migration('0001_initial', [createTable('projects', columns, { indexes })])],
};

/** Mails are sent by the instance of better-auth. */
export function organizationProduct(database: Database, address: string, send: (mail: MailMessage) => void): AppOptions {
  const auth = createAuth({
    baseURL: address,
    basePath: '/auth',
    secret: 'a-secret-of-the-tests-with-more-than-32-characters',
    database: { db: joinedKysely(database), type: database.dialect, transaction: true },
    emailAndPassword: {
      enabled: true,
      requireEmailVerification: true,
      revokeSessionsOnPasswordReset: true,
      sendResetPassword: async ({ user, url }) => send({ to: user.email, subject: 'A new password', text: url }),
    },
    emailVerification: {
      sendOnSignUp: true,
      sendVerificationEmail: async ({ user, url }) => send({ to: user.email, subject: 'Verify', text: url }),
    },
    verification: { storeIdentifier: 'hashed' },
    advanced: { database: { validateSchema: false }, disableOriginCheck: false },
    rateLimit: { enabled: false },
    telemetry: { enabled: false },
    plugins: [
      organization({
        sendInvitationEmail: async ({ email, id }) =>
          send({ to: email, subject: 'Invitation', text: `${address}/account/link#tenant-invitation=${id}` }),
      }),
      twoFactor(),
      kitPlugin(),
    ],
  });
  return {
    title: 'Companies',
    database,
    modules: [
      betterAuth(auth),
      apiKeys(),
      audit(),
      jobs(),
      webhooks({ urlPolicy: URLPolicy({ allowHttp: true, allowPrivateNetworks: true }) }),
      mcp(),
      projectModule,
      pages({ home: '/account/tenants' }),
    ],
    middleware: [requestId()],
    mount: {
      '/v1': { '/api-keys': ApiKeyController, '/webhooks': TenantWebhookController, '/projects': ProjectController },
      '/': { '/health': HealthController },
    },
  };
}
