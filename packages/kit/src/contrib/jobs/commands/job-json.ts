import type { Job } from '../rows/store.ts';

/** A job as commands print it with --json: without its input and result. */
export function jobJson(job: Job) {
  const { id, name, queue, status, progress, progress_message, attempts, attempts_max, error_code, error_message, created_at } = job;
  return { id, name, queue, status, progress, progress_message, attempts, attempts_max, error_code, error_message, created_at };
}
