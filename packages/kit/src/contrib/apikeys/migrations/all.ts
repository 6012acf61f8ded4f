import { initial } from './0001_initial.ts';
import { tenant } from './0002_tenant.ts';

export const apiKeyMigrations = [initial, tenant];
