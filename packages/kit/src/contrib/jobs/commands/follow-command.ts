import type { Command as CommanderCommand } from 'commander';
import { followJob } from '../manage/follow-job.ts';
import { findJob, recentJobs, type Job } from '../rows/store.ts';
import { idOption } from '../../../app/declare/command-options.ts';
import { databaseNamed, type Context } from './command-options.ts';
import { jobJson } from './job-json.ts';

/** `kit jobs follow`: one line per change until the job has ended. */
export function addFollow(command: CommanderCommand, context: Context): void {
  command
    .command('follow')
    .description('print the progress of a job until it ends; exit 1 when it did not succeed')
    .option('--id <id>', 'the job (default: the newest)')
    .option('--name <name>', 'without --id: the newest of this name')
    .option('--database <alias>', 'the database of the jobs', 'default')
    .action(async (options: { id?: string; name?: string; database: string }) => {
      if (options.id !== undefined && options.name !== undefined) context.fail('Give --id <id> or --name <name>, not both.');
      const id = options.id === undefined ? undefined : idOption('--id', options.id, '`kit jobs list`');
      const db = await databaseNamed(context, options.database);
      const first = id === undefined ? (await recentJobs(db, { name: options.name }, 1))[0] : await findJob(db, id);
      if (first === undefined || first === null) context.fail('The job does not exist.');
      let status: string = first.status;
      const show = (job: Job) => job;
      for await (const { data: job } of followJob(db, first, { show, signal: new AbortController().signal })) {
        status = job.status;
        const { progress, progress_message: message, error_message: error } = job;
        context.print(
          context.json ? JSON.stringify(jobJson(job)) : `${job.name} ${status} ${bar(progress)}${message ?? error ?? ''}`.trimEnd(),
        );
      }
      if (status !== 'succeeded') context.fail(`The job has ${status}.`);
    });
}

const WIDTH = 20;

function bar(progress: number | null): string {
  if (progress === null) return '';
  const full = Math.round((progress / 100) * WIDTH);
  return `[${'#'.repeat(full)}${'.'.repeat(WIDTH - full)}] ${progress}% `;
}
