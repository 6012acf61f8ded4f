import { defineErrors } from '../../errors/catalog.ts';

export const jobErrors = defineErrors('jobs', {
  job_not_found: {
    status: 404,
    detail: 'There is no such job.',
    remedy: 'List the jobs; one of another owner looks like a missing one, and old ones are pruned.',
  },
  job_not_retryable: {
    status: 409,
    detail: 'Only jobs that failed or were cancelled can be started again.',
    remedy: 'Wait until the job has ended; a job that succeeded is started as a new one.',
  },
  job_still_running: {
    status: 409,
    detail: 'The job was cancelled, and its handler may still be at work.',
    remedy: 'Retry when its lease has ended, at most a minute after it was cancelled.',
  },
  unique_key_taken: {
    status: 409,
    detail: 'Another job has taken the unique key of this one.',
    remedy: 'Wait until the other job has finished, or cancel it.',
  },
  unique_key_reused: {
    status: 409,
    detail: 'The unique key was used before for a job with other input.',
    remedy: 'Use another key, or the same input.',
  },
  job_failed: {
    status: 500,
    detail: 'The job failed.',
    remedy: 'The cause is in the log of the worker under the id of the job. Throw an error of a catalog to show its message here.',
  },
  input_invalid: {
    status: 422,
    detail: 'The input of the job does not match its schema.',
    remedy: 'The job was started by another version of the code: keep reading its input, or raise `version`.',
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
    remedy: 'Store what is large elsewhere and return a reference to it.',
  },
  timed_out: {
    status: 503,
    detail: 'The job took longer than its timeout.',
    remedy: 'Raise `timeoutMs` or do less; a handler that honours `signal` ends at once.',
  },
  worker_lost: {
    status: 503,
    detail: 'The worker of the job ended or did not answer, as often as the job may be tried.',
    remedy: 'Look at the logs of the workers: a job that ends its process is not retried forever.',
  },
  step_repeated: {
    status: 500,
    detail: 'Two steps of one run have the same name.',
    remedy: 'Give each step of a job a name of its own; in a loop, add what the step works on.',
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
