import type { Principal } from '../../../auth/people/principal.ts';
import type { Db } from '../../../db/engine/db.ts';
import { jobsOf } from '../rows/jobs.ts';
import type { Job } from '../rows/store.ts';
import { cancelJob } from './cancel.ts';
import { retryJob } from './retry.ts';

const CHANGES = {
  retry: { work: retryJob, action: 'job.retried' },
  cancel: { work: cancelJob, action: 'job.cancelled' },
} as const;

/** The caller of the change, and its transaction. */
interface Changing {
  readonly tx: Db;
  readonly principal: Principal | null;
  readonly requestId: string | null;
}

/** One change of a job with its audit entry: the status before and after, never the input. */
export async function changeRecorded(
  { tx, principal, requestId }: Changing,
  { id, status }: Pick<Job, 'id' | 'status'>,
  change: keyof typeof CHANGES,
): Promise<void> {
  const { work, action } = CHANGES[change];
  const after = await work(tx, id);
  await jobsOf(tx).registry.audit?.record(tx, [
    {
      actor: principal,
      action,
      target_type: 'job',
      target_id: id,
      before: { status },
      after: { status: after.status },
      request_id: requestId,
      tenant: after.tenant_key,
    },
  ]);
}
