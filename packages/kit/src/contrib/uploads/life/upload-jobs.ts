import { jsonSchema } from '../../../http/declare/json-schema.ts';
import { retryAfter } from '../../jobs/declare/failure.ts';
import { job } from '../../jobs/declare/job.ts';
import { uploadErrors } from '../errors.ts';
import { uploadsOf } from '../rows/in-use.ts';
import { removeObjects } from './remove-objects.ts';
import { scanUpload } from './scan.ts';
import { findUpload, nextRemovalAt } from '../rows/store.ts';

const queue = 'uploads';
/** Days of a store or scanner that is down. What is left after that is found by `kit uploads clean`. */
const retry = { attempts: 100 };
/** A large file and a slow scanner. */
const SCAN_MS_MAX = 900_000;

/** Scans an upload that waits in quarantine. A scanner that fails is asked again, as late as the row says. */
export const scanJob = job('uploads.scan', {
  queue,
  retry,
  timeoutMs: SCAN_MS_MAX,
  input: jsonSchema<{ readonly upload_id: string }>({
    type: 'object',
    properties: { upload_id: { type: 'string', format: 'uuid' } },
    required: ['upload_id'],
  }),
  async run({ input, db }) {
    await scanUpload(db, input.upload_id);
    const upload = await findUpload(db, input.upload_id);
    if (upload?.state !== 'quarantined') return;
    const { clock } = uploadsOf(db);
    throw retryAfter(secondsUntil(upload.scan_due_at, clock.now()), uploadErrors.store_unavailable());
  },
});

/** Removes objects of the store that no row means any more. A store that fails is asked again, as late as the rows say. */
export const removeJob = job('uploads.remove', {
  queue,
  retry,
  input: jsonSchema<{ readonly removal_ids: readonly string[] }>({
    type: 'object',
    properties: { removal_ids: { type: 'array', items: { type: 'string', format: 'uuid' }, maxItems: 100 } },
    required: ['removal_ids'],
  }),
  async run({ input, db }) {
    await removeObjects(db, { ids: input.removal_ids });
    const dueAt = await nextRemovalAt(db, input.removal_ids);
    if (dueAt !== null) throw retryAfter(secondsUntil(dueAt, uploadsOf(db).clock.now()), uploadErrors.store_unavailable());
  },
});

function secondsUntil(at: Date | null, now: Date): number {
  return Math.max(1, Math.ceil(((at ?? now).getTime() - now.getTime()) / 1000));
}
