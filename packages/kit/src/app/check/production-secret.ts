import { isProduction } from '../../middleware/config.ts';
import type { Check, CheckFault } from '../declare/check.ts';
import type { App } from '../declare/module.ts';

/** W028: a module that runs in production without a secret that development can do without. */
export function productionSecret(name: string, isSet: (app: App) => boolean, fault: Omit<CheckFault, 'id'>): Check<App> {
  return { name, run: (app) => (!isProduction() || isSet(app) ? [] : [{ id: 'W028', ...fault }]) };
}
