import { initial } from './0001_initial.ts';
import { tenant } from './0002_tenant.ts';
import { quota } from './0003_quota.ts';
import { tenantIndex } from './0004_tenant_index.ts';
import { serviceUsers } from './0005_service_users.ts';

/** The migrations of `apiKeys()`, for a program without an app. */
export const apiKeyMigrations = [initial, tenant, quota, tenantIndex, serviceUsers];
