import { copyDatabase, type CopiedTableReport, type CopyOptions } from '../../db/transfer/copy-database.ts';
import type { App } from '../declare/module.ts';
import { applyAppTriggers, dataFaults, modulesIn } from './migration-modules.ts';

/** Copies the tables of an app that are in one database; the other one is then ready for it. */
export async function copyAppDatabase(
  app: App,
  alias: string,
  options: Omit<CopyOptions, 'modules' | 'verify'>,
): Promise<CopiedTableReport[]> {
  const report = await copyDatabase({ ...options, modules: modulesIn(app, alias), verify: (db) => dataFaults(app, alias, db) });
  await applyAppTriggers(app, alias, options.to);
  return report;
}
