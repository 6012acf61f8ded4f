import { CONFLICT_RETRIES } from '../../../db/engine/conflict-retries.ts';
import type { Command as CommanderCommand } from 'commander';
import type { Command } from '../../../app/declare/command.ts';
import type { App } from '../../../app/declare/module.ts';
import { isKitError } from '../../../errors/kit-error.ts';
import { cancelJob } from '../manage/cancel.ts';
import { jobsOf } from '../rows/jobs.ts';
import { JOB_STATUSES } from '../models.ts';
import { pruneJobs } from '../running/prune.ts';
import { retryFailed, retryJob } from '../manage/retry.ts';
import { scheduledJobs } from '../running/run-schedules.ts';
import { readTicks } from '../running/schedule-store.ts';
import { prometheusText, readStats } from '../rows/stats-store.ts';
import { recentJobs } from '../rows/store.ts';
import { idOption, wholeNumberOption } from '../../../app/declare/command-options.ts';
import { checkAll } from '../../../errors/fault-collector.ts';
import { databaseNamed, type Context } from './command-options.ts';
import { addFollow } from './follow-command.ts';
import { jobJson } from './job-json.ts';
import { addWork } from './work-command.ts';

const DAY_MS = 86_400_000;
/** A century; more does not fit into a date. */
const DAYS_MAX = 36_500;

/** `kit jobs …`. */
export const jobsCommand: Command<App> = {
  name: 'jobs',
  summary: 'run, list, retry, cancel and prune jobs',
  configure(command, context) {
    addWork(command, context);
    addList(command, context);
    addFollow(command, context);
    addStats(command, context);
    addRetry(command, context);
    addCancel(command, context);
    addPrune(command, context);
    addSchedules(command, context);
  },
};

function addList(command: CommanderCommand, context: Context): void {
  command
    .command('list')
    .description('the newest jobs')
    .option('--status <status>', JOB_STATUSES.join(', '))
    .option('--name <name>', 'only jobs of this name')
    .option('--queue <queue>', 'only jobs of this queue')
    .option('--limit <count>', 'show at most this many', '20')
    .option('--database <alias>', 'the database of the jobs', 'default')
    .action(async (options: { status?: string; name?: string; queue?: string; limit: string; database: string }) => {
      if (options.status !== undefined && !JOB_STATUSES.some((status) => status === options.status))
        context.fail(`--status is ${JSON.stringify(options.status)}; use one of ${JOB_STATUSES.join(', ')}.`);
      const limit = wholeNumberOption('--limit', options.limit, 1, 10_000);
      const db = await databaseNamed(context, options.database);
      const found = await recentJobs(db, options, limit);
      if (context.json) return context.print(JSON.stringify(found.map(jobJson)));
      if (found.length === 0) context.print('There are no such jobs.');
      for (const { id, name, status, progress, attempts, attempts_max: max, error_code: code, created_at: at } of found)
        context.print(
          `${id}  ${status.padEnd(9)}  ${progress === null ? '   –' : `${String(progress).padStart(3)}%`}  ${attempts}/${max}  ${at.toISOString()}  ${name}${code === null ? '' : `  ${code}`}`,
        );
    });
}

function addStats(command: CommanderCommand, context: Context): void {
  command
    .command('stats')
    .description('depth and oldest job by queue, as JSON')
    .option('--prometheus', 'in the text format of Prometheus')
    .option('--database <alias>', 'the database of the jobs', 'default')
    .action(async (options: { database: string; prometheus?: boolean }) => {
      const db = await databaseNamed(context, options.database);
      const stats = await readStats(db, jobsOf(db).clock.now());
      context.print(options.prometheus === true ? prometheusText(stats, options.database) : JSON.stringify(stats));
    });
}

interface RetryFlags {
  readonly id?: string;
  readonly failed?: boolean;
  readonly name?: string;
  readonly queue?: string;
  readonly code?: string;
  readonly limit: string;
  readonly database: string;
}

function addRetry(command: CommanderCommand, context: Context): void {
  command
    .command('retry')
    .description('start a failed or cancelled job again, or with --failed all that a filter names')
    .option('--id <id>', 'the job')
    .option('--failed', 'every failed job')
    .option('--name <name>', 'with --failed: of this name')
    .option('--queue <queue>', 'with --failed: of this queue')
    .option('--code <code>', 'with --failed: that failed with this code')
    .option('--limit <count>', 'with --failed: at most this many', '1000')
    .option('--database <alias>', 'the database of the jobs', 'default')
    .action(async ({ id, failed = false, ...options }: RetryFlags) => {
      if ((id === undefined) === !failed) context.fail('Give --id <id>, or --failed for all that failed.');
      const { name, queue, code } = options;
      if (!failed && [name, queue, code].some((each) => each !== undefined)) context.fail('--name, --queue and --code require --failed.');
      const { limit, job } = checkAll({
        limit: () => wholeNumberOption('--limit', options.limit, 1),
        job: () => (id === undefined ? undefined : idOption('--id', id, '`kit jobs list`')),
      });
      const db = await databaseNamed(context, options.database);
      if (job !== undefined) {
        await refusedAsSentence(context, () => db.transaction((tx) => retryJob(tx, job), CONFLICT_RETRIES));
        return context.print(context.json ? JSON.stringify({ id: job, status: 'queued' }) : `Job ${job} is queued again.`);
      }
      const result = await retryFailed(db, { name, queue, code }, limit);
      return context.print(
        context.json ? JSON.stringify(result) : `${result.retried} jobs are queued again, ${result.refused} were left as they were.`,
      );
    });
}

function addCancel(command: CommanderCommand, context: Context): void {
  command
    .command('cancel')
    .description('cancel a job; if it is running, it can no longer commit')
    .requiredOption('--id <id>', 'the job')
    .option('--database <alias>', 'the database of the jobs', 'default')
    .action(async (options: { id: string; database: string }) => {
      const id = idOption('--id', options.id, '`kit jobs list`');
      const db = await databaseNamed(context, options.database);
      const { status } = await refusedAsSentence(context, () => db.transaction((tx) => cancelJob(tx, id), CONFLICT_RETRIES));
      context.print(context.json ? JSON.stringify({ id, status }) : `Job ${id} is ${status}.`);
    });
}

function addPrune(command: CommanderCommand, context: Context): void {
  command
    .command('prune')
    .description('remove finished jobs with their attempts and steps; repeat periodically')
    .requiredOption('--days <days>', 'how many days to keep')
    .option('--limit <jobs>', 'delete at most this many', '1000')
    .option('--database <alias>', 'the database of the jobs', 'default')
    .action(async (options: { days: string; limit: string; database: string }) => {
      const { days, limit } = checkAll({
        days: () => wholeNumberOption('--days', options.days, 0, DAYS_MAX),
        limit: () => wholeNumberOption('--limit', options.limit, 1),
      });
      const db = await databaseNamed(context, options.database);
      const before = new Date(jobsOf(db).clock.now().getTime() - days * DAY_MS);
      const removed = await pruneJobs(db, before, limit);
      context.print(context.json ? JSON.stringify({ removed, before }) : `${removed} jobs from before ${before.toISOString()} removed.`);
    });
}

function addSchedules(command: CommanderCommand, context: Context): void {
  command
    .command('schedules')
    .description('the recurring jobs, their last and next tick')
    .option('--database <alias>', 'the database of the jobs', 'default')
    .action(async (options: { database: string }) => {
      const db = await databaseNamed(context, options.database);
      const jobs = jobsOf(db);
      const ticks = new Map((await readTicks(db)).map((tick) => [tick.name, tick]));
      const found = scheduledJobs(jobs).map(({ name, schedule }) => {
        const { last_tick: last = null, paused_at: paused = null } = ticks.get(name) ?? {};
        const next = paused === null ? schedule.nextTick(last ?? jobs.clock.now()) : null;
        const { cron, timeZone, missed } = schedule;
        return { name, cron, time_zone: timeZone, missed, last_tick: last, next_tick: next, paused_at: paused };
      });
      if (context.json) return context.print(JSON.stringify(found));
      if (found.length === 0) context.print('There are no recurring jobs.');
      for (const { name, cron, time_zone: timeZone, last_tick: last, next_tick: next, paused_at: paused } of found) {
        const state = paused === null ? `next ${next?.toISOString() ?? '–'}` : `paused since ${paused.toISOString()}`;
        context.print(`${name}  ${cron}  ${timeZone}  last ${last?.toISOString() ?? '–'}  ${state}`);
      }
    });
}

async function refusedAsSentence<T>(context: Context, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (isKitError(error) && error.status < 500) return context.fail(error.detail);
    throw error;
  }
}
