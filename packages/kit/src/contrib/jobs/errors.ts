import { defineErrors } from '../../errors/catalog.ts';

/** Errors of background jobs. */
export const jobErrors = defineErrors('jobs', {
  job_not_found: {
    status: 404,
    detail: 'The job does not exist.',
    remedy: 'Check the id. The job may belong to another owner or may have been pruned.',
  },
  schedule_not_found: {
    status: 404,
    detail: 'There is no recurring job of this name.',
    remedy: 'Use a name that `kit jobs schedules` lists.',
  },
  job_not_retryable: {
    status: 409,
    detail: 'Only jobs that failed or were cancelled can be retried.',
    remedy: 'Wait until the job ends. To repeat a job that succeeded, start a new one.',
  },
  job_still_running: {
    status: 409,
    detail: 'The job was cancelled, but its handler may still be running.',
    remedy: 'Retry when its lease has ended, at most a minute after it was cancelled.',
  },
  unique_key_taken: {
    status: 409,
    detail: 'Another job uses the unique key of this job.',
    remedy: 'Wait until the other job ends, or cancel it.',
  },
  unique_key_reused: {
    status: 409,
    detail: 'The unique key belongs to a job with different input.',
    remedy: 'Use another key or the same input.',
  },
  job_failed: {
    status: 500,
    detail: 'The job failed.',
    remedy: 'The worker log has the cause under the job id. To return a message to callers, throw an error from your catalog.',
  },
  input_invalid: {
    status: 422,
    detail: 'The input of the job does not match its schema.',
    remedy: 'The job was started by another version of the code: keep reading its input, or raise `version`.',
  },
  owner_not_allowed: {
    status: 403,
    detail: 'The owner of the job may not act any longer.',
    remedy: 'The owner was deactivated, deleted or removed from the tenant. Retry the job when the owner is back.',
  },
  result_invalid: {
    status: 500,
    detail: 'The result of the job does not match its schema.',
    remedy: 'Correct the handler or the schema, then retry the job.',
  },
  result_not_storable: {
    status: 500,
    detail: 'The result of the job, or of one of its steps, cannot be stored.',
    remedy:
      'The worker log has the cause under the job id. Return values that JSON has: no Map, Set, Error, NaN or bigint. Then retry the job.',
  },
  payload_too_large: {
    status: 413,
    detail: 'The result of the job, or of one of its steps, is larger than 256 KiB of JSON.',
    remedy: 'Store large data elsewhere and return a reference to it.',
  },
  timed_out: {
    status: 503,
    detail: 'The job took longer than its timeout.',
    remedy: 'Increase `timeoutMs` or do less work. Pass `signal` to slow calls so that the handler stops promptly.',
  },
  worker_lost: {
    status: 503,
    detail: 'The job has used all its attempts: its worker stopped or did not respond each time.',
    remedy: 'Check the worker logs for a job that crashes its process.',
  },
  step_repeated: {
    status: 500,
    detail: 'Two steps of one run have the same name.',
    remedy: 'Give each step of a job its own name. In a loop, add the id of the item to the name.',
  },
});

export type StartFault =
  | 'input_invalid'
  | 'payload_too_large'
  | 'option_unknown'
  | 'option_invalid'
  | 'key_invalid'
  | 'too_many'
  | 'job_unknown'
  | 'no_transaction'
  | 'wrong_database'
  | 'not_installed'
  | 'not_synchronous'
  | 'no_commit_hook';

/** A call of `startJob` or `startJobs` that was refused before anything was written. */
export class StartRefused extends Error {
  override readonly name = 'StartRefused';
  readonly code: StartFault;

  constructor(code: StartFault, message: string) {
    super(message);
    this.code = code;
  }
}
