import type { App } from '../../app/declare/module.ts';
import { toolkitModules } from '../../app/data/toolkit-modules.ts';

/** Names of the tables of the toolkit's modules. Commands name the resources of the application before those of these tables. */
export function toolkitTables({ modules }: Pick<App, 'modules'>): ReadonlySet<string> {
  return new Set(modules.filter(({ name }) => toolkitModules.has(name)).flatMap(({ models = [] }) => models.map((each) => each.name)));
}
