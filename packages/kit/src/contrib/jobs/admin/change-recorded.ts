import type { AdminContext } from '../../../app/admin/declaration.ts';
import { CONFLICT_RETRIES } from '../../../db/engine/conflict-retries.ts';
import { isUuid } from '../../../db/values/uuid.ts';
import { cancelJob } from '../manage/cancel.ts';
import { jobErrors } from '../errors.ts';
import { retryJob } from '../manage/retry.ts';
import { findJob } from '../rows/store.ts';
import { databaseOf, type AdminPlace } from './place.ts';

const CHANGES = {
  retry: { work: retryJob, action: 'job.retried' },
  cancel: { work: cancelJob, action: 'job.cancelled' },
} as const;

/** One job in one transaction with its audit entry. */
export async function changeRecorded(place: AdminPlace, context: AdminContext, change: keyof typeof CHANGES, id: string): Promise<void> {
  if (!isUuid(id)) throw jobErrors.job_not_found();
  const { work, action } = CHANGES[change];
  await databaseOf(place, context).transaction(async (tx) => {
    const before = await findJob(tx, id);
    const after = await work(tx, id);
    await context.audit?.record(tx, [
      {
        actor: context.principal,
        action,
        target_type: 'job',
        target_id: id,
        before: before === null ? null : { status: before.status },
        after: { status: after.status },
        request_id: context.requestId,
      },
    ]);
  }, CONFLICT_RETRIES);
}
