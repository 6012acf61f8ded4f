import { ruleResult } from '../../../auth/rights/rule-result.ts';
import { CONFLICT_RETRIES } from '../../../db/engine/conflict-retries.ts';
import type { Db } from '../../../db/engine/db.ts';
import { isLockTimeout, limitLockWait } from '../../../work/lock-patience.ts';
import { uploadErrors } from '../errors.ts';
import { uploadsOf } from '../rows/in-use.ts';
import { recordChange } from '../rows/record-change.ts';
import { rejectUpload } from './reject.ts';
import { retryAfterMs } from './remove-objects.ts';
import type { Scan } from '../declare/scanner.ts';
import { changeState, claimScans } from '../rows/store.ts';
import type { Upload } from '../declare/upload.ts';

/** How long a scan may take before another process tries. */
const LEASE_MS = 600_000;

export interface ScanReport {
  readonly clean: number;
  readonly rejected: number;
  readonly failed: number;
}

/** Scans what waits in quarantine and is due. */
export async function scanUploads(db: Db, limit: number): Promise<ScanReport> {
  const { clock, scan } = uploadsOf(db);
  const report = { clean: 0, rejected: 0, failed: 0 };
  if (scan === null) return report;
  for (let done = 0; done < limit; done += 1) {
    const now = clock.now();
    const [upload] = await claimScans(db, now, new Date(now.getTime() + LEASE_MS), 1);
    if (upload === undefined) break;
    report[await scanOne(db, upload, scan)] += 1;
  }
  return report;
}

/** Scans one upload if it waits and is due. Null: it does not. */
export async function scanUpload(db: Db, id: string): Promise<keyof ScanReport | null> {
  const { clock, scan } = uploadsOf(db);
  if (scan === null) return null;
  const now = clock.now();
  const [upload] = await claimScans(db, now, new Date(now.getTime() + LEASE_MS), 1, id);
  return upload === undefined ? null : scanOne(db, upload, scan);
}

async function scanOne(db: Db, upload: Upload, scan: Scan): Promise<keyof ScanReport> {
  const { store, clock, log } = uploadsOf(db);
  const { id, filename, content_type: contentType, final_key: key, etag } = upload;
  try {
    if (key === null || etag === null) throw uploadErrors.upload_changed();
    const read = () => store.read(key, { ifMatch: etag });
    const verdict = ruleResult('scan', 'uploads()', await scan({ id, filename, contentType, size: Number(upload.size), read }));
    if (!verdict.clean) {
      await rejectUpload(db, upload, 'quarantined', 'upload_infected', `The scanner found ${printable(verdict.reason)}.`, {});
      return 'rejected';
    }
    await db.transaction(async (tx) => {
      await limitLockWait(tx);
      const after = await changeState(tx, id, 'quarantined', { state: 'complete', completed_at: clock.now(), scan_due_at: null });
      if (after !== null) await recordChange(tx, 'completed', { before: upload, after });
    }, CONFLICT_RETRIES);
    return 'clean';
  } catch (error) {
    log.warn({ err: error, upload: id, attempts: upload.scan_attempts }, 'an upload could not be scanned; it stays in quarantine');
    await retryLater(db, upload);
    return 'failed';
  }
}

/** A row that another transaction has locked is due again when the lease ends: the uploads behind it do not wait. */
async function retryLater(db: Db, { id, scan_attempts: attempts }: Upload): Promise<void> {
  const dueAt = new Date(uploadsOf(db).clock.now().getTime() + retryAfterMs(attempts));
  const postpone = db.transaction(async (tx) => {
    await limitLockWait(tx);
    await changeState(tx, id, 'quarantined', { scan_due_at: dueAt });
  }, CONFLICT_RETRIES);
  await postpone.catch((error: unknown) => {
    if (!isLockTimeout(error)) throw error;
  });
}

function printable(reason: string): string {
  return reason.replaceAll(/[^\x20-\x7e]/g, '?').slice(0, 200);
}
