import type { App } from '../../app/declare/module.ts';

/** Modules of the toolkit that have tables, by name. */
const MODULES: ReadonlySet<string> = new Set([
  'accounts',
  'apikeys',
  'audit',
  'better_auth',
  'grants',
  'jobs',
  'requests',
  'tenants',
  'uploads',
  'webhooks',
]);

/** Names of the tables of the toolkit's modules. Commands name the resources of the application before those of these tables. */
export function toolkitTables({ modules }: Pick<App, 'modules'>): ReadonlySet<string> {
  return new Set(modules.filter(({ name }) => MODULES.has(name)).flatMap(({ models = [] }) => models.map((each) => each.name)));
}
