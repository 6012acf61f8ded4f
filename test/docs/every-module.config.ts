import { createApp } from 'kit';
import { accounts } from 'kit/contrib/accounts';
import { apiKeys } from 'kit/contrib/apikeys';
import { audit } from 'kit/contrib/audit';
import { mcp } from 'kit/contrib/mcp';
import { tenants } from 'kit/contrib/tenants';
import { diskStore, uploads } from 'kit/contrib/uploads';
import { webhooks } from 'kit/contrib/webhooks';
import { featureFlags } from 'example-feature-flags';
import { organizationCommand } from '../../packages/kit/src/contrib/better-auth/commands.ts';
import { grantsCommand } from '../../packages/kit/src/contrib/grants/commands.ts';
import { jobsCommand } from '../../packages/kit/src/contrib/jobs/commands/commands.ts';

/** An app with the commands of every module, so that the commands of all pages can be checked against its help. */
export default createApp({
  database: 'sqlite::memory:',
  modules: [
    accounts(),
    audit(),
    apiKeys(),
    webhooks(),
    mcp(),
    tenants(),
    uploads({ store: diskStore({ folder: './data/uploads' }) }),
    featureFlags({ flags: {} }),
    { name: 'grants', commands: [grantsCommand] },
    { name: 'jobs', commands: [jobsCommand] },
    { name: 'organizations', commands: [organizationCommand] },
  ],
  mount: {},
});
