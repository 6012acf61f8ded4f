import type { HandlerContext } from '../../http/handler-context.ts';
import { JobAccepted, type AcceptedJob } from './schemas.ts';
import type { StartedJob } from './start-job.ts';

/** Of a route that starts a job and answers at once: `route.post('/', { ...acceptsJob, body, permission }, handler)`. */
export const acceptsJob = { status: 202, response: JobAccepted } as const;

/** The answer 202 with the job's address in `Location` and in the body. */
export function accepted({ reply }: Pick<HandlerContext, 'reply'>, { id, status, url }: StartedJob): AcceptedJob {
  if (url !== null) void reply.header('location', url);
  return { id, status, url };
}
