import type { App } from '../../../app/declare/module.ts';
import { jsonValue } from '../../../db/values/json-value.ts';
import { isKitError } from '../../../errors/kit-error.ts';
import { callRoute, type CallAnswer } from '../../../http/serve/call-route.ts';
import type { CompiledRoute } from '../../../http/exchange/compiled-route.ts';
import type { Exchange } from '../../../http/exchange/exchange.ts';
import { openStreamsOf } from '../../../http/admit/open-streams.ts';
import { followerOf, stateOf } from '../../jobs/manage/job-follower.ts';
import type { Job } from '../../jobs/rows/store.ts';
import { JobAccepted, type AcceptedJob } from '../../jobs/start/job-accepted.ts';
import type { CallerTools } from '../tools/caller-tools.ts';
import { callHeaders } from '../tools/call-headers.ts';

/** Agents and the proxies before them do not wait longer; the job goes on, and can be read. */
const FOLLOW_MS_MAX = 5 * 60_000;
/** Each report must be higher than the one before, also where only the message has changed. */
const STEP = 0.01;

export interface ProgressReport {
  readonly progress: number;
  readonly total: 100;
  readonly message: string;
}

/** What the route shows of a job, as far as it is reported. */
type JobState = Pick<Job, 'id' | 'status' | 'attempts' | 'progress' | 'progress_message'> & { readonly finished_at: string | null };

interface Following {
  readonly app: App;
  readonly tools: CallerTools;
  readonly signal: AbortSignal;
  readonly report: (progress: ProgressReport) => Promise<void>;
}

/**
 * Reports the progress of the job that a call has started, until it has ended, and returns the response with the status that the job has then.
 * The job is read by the route that reads jobs: a caller who may not read it gets no reports. Like an event stream, it counts towards the streams
 * of its caller, and ends when the credential is revoked; a caller with too many streams gets the response without waiting.
 */
export async function followStartedJob(
  route: CompiledRoute,
  parent: Exchange,
  answer: CallAnswer,
  following: Following,
): Promise<CallAnswer> {
  const { app, tools } = following;
  if (answer.status !== 202 || route.route.options.response !== JobAccepted) return answer;
  const read = app.routes.find(({ metadata }) => metadata['jobs'] === 'read');
  const standing = read === undefined ? undefined : await tools.standing(read, parent);
  if (read === undefined || standing?.kind !== 'listed') return answer;
  const started = jsonValue(String(answer.body)) as AcceptedJob;
  const close = openStream(standing.exchange);
  if (close === undefined) return answer;
  const signal = AbortSignal.any([following.signal, standing.exchange.signal, parent.host.draining, AbortSignal.timeout(FOLLOW_MS_MAX)]);
  try {
    const last = await reportUntilEnd(read, parent, started.id, { ...following, signal });
    return last === null ? answer : { ...answer, body: JSON.stringify({ ...started, status: last.status }) };
  } finally {
    close();
    // Ends the signal of the exchange, which waits for the app to stop.
    standing.exchange.reply.raw.destroy();
  }
}

/** Undefined where the caller has too many streams. */
function openStream(exchange: Exchange): (() => void) | undefined {
  try {
    return openStreamsOf(exchange.host).add(exchange);
  } catch (error) {
    if (isKitError(error, 'too_many_streams')) return undefined;
    throw error;
  }
}

async function reportUntilEnd(
  read: CompiledRoute,
  parent: Exchange,
  id: string,
  { app, signal, report }: Following,
): Promise<JobState | null> {
  let reported = -1;
  let last: JobState | null = null;
  while (!signal.aborted) {
    const job = await readJob(read, parent, id);
    if (job === null) break;
    last = job;
    const progress = Math.max(job.status === 'succeeded' ? 100 : (job.progress ?? 0), reported + STEP);
    const message = job.finished_at === null ? (job.progress_message ?? job.status) : job.status;
    await report({ progress, total: 100, message });
    reported = progress;
    if (job.finished_at !== null || (await followerOf(app.db).next(job.id, seenState(job), signal)) === null) break;
  }
  return last;
}

async function readJob(read: CompiledRoute, parent: Exchange, id: string): Promise<JobState | null> {
  const call = {
    url: read.path.replace(':id', id),
    params: { id },
    headers: callHeaders(parent),
    requestId: parent.requestId,
    remoteAddress: parent.request.raw.socket.remoteAddress ?? '',
    parent,
  };
  const { status, body } = await callRoute(read, call, parent.signal);
  return status === 200 ? (jsonValue(String(body)) as JobState) : null;
}

/** As the follower computes it from the row: times are texts here. */
function seenState(job: JobState): string {
  return stateOf({ ...job, finished_at: job.finished_at === null ? null : new Date(job.finished_at) });
}
