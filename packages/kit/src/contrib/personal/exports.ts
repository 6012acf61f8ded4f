import type { App } from '../../app/declare/module.ts';
import { type StoredExport, StoredExports } from '../../crud/subjects/stored-exports.ts';
import type { Db } from '../../db/engine/db.ts';
import { personalExportParts, personalExports } from './models.ts';

/** The newest export of each person. */
export const storedExports = new StoredExports({
  kind: 'person',
  exports: personalExports,
  parts: personalExportParts,
  key: 'user_id',
  program: 'personal_data',
});

/** Asks for an export, in a transaction. One that is under way stays as it is. */
export async function requestExport(tx: Db, userId: string): Promise<StoredExport> {
  const known = await storedExports.find(tx, userId);
  return known?.state === 'waiting' || known?.state === 'running' ? known : storedExports.request(tx, userId);
}

/** Writes one export that waits, or whose process was killed. Returns whether there was one. */
export async function buildNextExport(app: App, exportDays: number, signal: AbortSignal): Promise<boolean> {
  const claimed = await storedExports.claimNext(app.db);
  if (claimed === undefined) return false;
  try {
    await storedExports.write(app, claimed, { days: exportDays, signal });
  } catch (error) {
    if (!signal.aborted) throw error;
  }
  return true;
}
