// Works on one job and ends itself with SIGKILL at a moment: node mortal-process.ts <database url> <moment>
import { cancelJob } from '../../src/contrib/jobs/manage/cancel.ts';
import { useJobs } from '../../src/contrib/jobs/rows/jobs.ts';
import { runSchedules } from '../../src/contrib/jobs/running/run-schedules.ts';
import { startJobWorker } from '../../src/contrib/jobs/manage/work-jobs.ts';
import { openDatabase } from '../../src/db/index.ts';
import { fakeClock } from '../../src/testing/fake-clock.ts';
import { mortalJob, RECURRING_TICK, recurringJob, TICK_MOMENTS, type Moment, type TickMoment } from './mortal-job.ts';

const [url = '', name = ''] = process.argv.slice(2);
const moment = name as Moment;
const isTick = (TICK_MOMENTS as readonly string[]).includes(name);

/** A moment that never comes is a fault of the test, which hears of it. */
setTimeout(() => {
  process.stderr.write(`the moment "${name}" did not come\n`);
  process.exit(1);
}, 120_000);

function die(): void {
  process.kill(process.pid, 'SIGKILL');
}

/** Not the one that ends leases, which also writes attempts. */
const FAILED_ATTEMPT = /insert into job_attempts[^]*r\.attempt_id/;
/** The statement after which the process ends; on SQLite some of them are inside a transaction that is then rolled back. */
const STATEMENTS: Readonly<Record<string, RegExp>> = {
  claimed: /update jobs (as )?w set status = 'running'/,
  fenced: /^update jobs as w set status = 'succeeded'[^]* where w\.id = [$?]\d* /,
  'result-stored': /^update jobs (as )?w set status = 'succeeded'[^]* where w\.id = r\.id /,
  'retry-written': FAILED_ATTEMPT,
  'cancel-written': /^update jobs set status = 'cancelled'/,
  'given-back': /set status = 'queued'[^]*attempts = w\.attempts - 1/,
  'tick-moved': /^update job_schedules/,
};
let hasFailed = false;
function onQuery({ sql }: { readonly sql: string }): void {
  // The statement after it comes when the transaction of the failure has ended.
  if (moment === 'retry-stored' && hasFailed) die();
  hasFailed ||= FAILED_ATTEMPT.test(sql);
  if (STATEMENTS[name]?.test(sql) === true) die();
}

const clock = fakeClock(RECURRING_TICK);
const db = await openDatabase(url, { clock, onQuery });
const waits = Promise.withResolvers<string>();
const around = {
  at(reached: Moment) {
    if (reached === moment) die();
  },
  waiting: waits.resolve,
};
const definition = isTick ? recurringJob(name as TickMoment) : mortalJob(moment, around);
const jobs = useJobs(db, { jobs: [definition], stopTimeoutMs: 10 });
if (isTick) {
  await runSchedules(jobs);
  die();
}
const worker = await startJobWorker(db, { queues: [moment], pollIntervalMs: 50 });
const id = await waits.promise;
if (moment.startsWith('cancel')) {
  await db.transaction((tx) => cancelJob(tx, id));
  die();
}
await worker.stop();
