import { resource } from '../../crud/checks/declare-resource.ts';
import { STAFF } from '../../crud/declare/resource.ts';
import { requestLog, requestQuotas, requestUsage } from './models.ts';

/** The audience of those who may see the requests of a whole tenant. */
export const TENANT = 'tenant';

/** Users have their own rows in the tenant that they act for, its managers those of the tenant, staff has all. */
const whose = {
  owner: { column: 'owner_id', none: '' },
  tenant: { column: 'tenant_key', none: '' },
  audiences: {
    // Not the rows of no tenant: a caller without one would see those of everybody.
    [TENANT]: { rows: { tenant_key: { ne: '' } } },
    [STAFF]: { rows: true, tenant: 'all' },
  },
  audit: false,
} as const;

/** Finished requests. */
export const requestResource = resource(requestLog, { name: 'request', changes: 'trigger', ...whose });

/** How often what was called, by day. */
export const usageResource = resource(requestUsage, { name: 'request_usage', changes: 'trigger', ...whose });

/** What was used of quotas, by period. */
export const quotaResource = resource(requestQuotas, { name: 'request_quota', changes: 'trigger', ...whose });
