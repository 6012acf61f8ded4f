import { withAnswerFacts } from '../../../http/compile/answer-facts.ts';
import type { HandlerContext } from '../../../http/declare/handler-context.ts';
import { JobAccepted, type AcceptedJob } from './job-accepted.ts';
import type { StartedJob } from './start-job.ts';
import { requireArguments } from '../../../options/read-options.ts';
import { isMembers, rule } from '../../../options/value-rule.ts';

/** Of a route that starts a job and answers at once: `route.post('/', { ...acceptsJob, body, permission }, handler)`. */
export const acceptsJob = { status: 202, response: JobAccepted } as const;

/** The answer 202 with the job's address in `Location` and in the body: `return accepted(await startJob(…))`. */
export function accepted(started: StartedJob): AcceptedJob;
/** The same, with the context of the handler first. */
export function accepted(context: Pick<HandlerContext, 'reply'>, started: StartedJob): AcceptedJob;
export function accepted(first: StartedJob | Pick<HandlerContext, 'reply'>, second?: StartedJob): AcceptedJob {
  const started = second ?? (first as StartedJob);
  requireArguments(
    'accepted()',
    { started },
    { started: rule('what startJob() returned', (value) => isMembers(value) && 'status' in value) },
  );
  const { id, status, url } = started;
  return withAnswerFacts({ id, status, url }, { status: 202, headers: url === null ? {} : { location: url } });
}
