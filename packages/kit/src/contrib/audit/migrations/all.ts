import { initial } from './0001_initial.ts';
import { tenant } from './0002_tenant.ts';

/** Released ones are never edited. */
export const auditMigrations = [initial, tenant];
