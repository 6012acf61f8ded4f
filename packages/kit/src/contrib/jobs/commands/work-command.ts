import type { Command as CommanderCommand } from 'commander';
import { stopSignal } from '../../../work/stop-signal.ts';
import { jobsOf } from '../rows/jobs.ts';
import type { WorkSummary } from '../running/result-writer.ts';
import type { WorkerOptions } from '../running/worker.ts';
import { runDueJobs, startJobWorker } from '../manage/work-jobs.ts';
import { wholeNumberOption } from '../../../app/declare/command-options.ts';
import { databaseNamed, type Context } from './command-options.ts';

interface WorkFlags {
  readonly queue?: readonly string[];
  readonly concurrency?: string;
  readonly once?: boolean;
  readonly database: string;
}

/** `kit jobs work`: until SIGTERM or SIGINT, or once. */
export function addWork(command: CommanderCommand, context: Context): void {
  command
    .command('work')
    .description('run jobs until stopped; with --once, run due jobs and exit')
    .option('--queue <name...>', 'only these queues (default: all)')
    .option('--concurrency <count>', 'jobs of each queue at a time, instead of what they declare')
    .option('--once', 'run due jobs and exit')
    .option('--database <alias>', 'the database of the jobs', 'default')
    .action(async (flags: WorkFlags) => {
      const options = optionsOf(flags);
      const db = await databaseNamed(context, flags.database);
      checkQueues(context, flags.queue ?? [], jobsOf(db).settings.catalog.queues);
      if (flags.once === true) return context.print(line(await runDueJobs(db, options), context.json));
      for (const text of await (await context.app()).monitor()) context.stderr.write(`${text}\n`);
      const worker = await startJobWorker(db, options);
      const stopped = stopSignal();
      context.stderr.write(`Running jobs of the database "${flags.database}" until SIGTERM.\n`);
      const stuck = await Promise.race([stopped.signal.then(() => null), worker.stuck]);
      context.stderr.write('Stopping: jobs under way are being finished.\n');
      await worker.stop();
      stopped.forget();
      context.print(line(worker.summary, context.json));
      // Handlers that ignore their signal cannot be ended: the supervisor of this process starts another.
      if (stuck !== null) context.fail(stuck);
    });
}

function optionsOf({ queue, concurrency }: WorkFlags): WorkerOptions {
  return {
    ...(queue === undefined ? {} : { queues: queue }),
    ...(concurrency === undefined ? {} : { concurrency: wholeNumberOption('--concurrency', concurrency, 1, 10_000) }),
  };
}

function checkQueues(context: Context, given: readonly string[], known: readonly string[]): void {
  for (const queue of given)
    if (!known.includes(queue)) context.fail(`No job has the queue "${queue}". There are ${known.join(', ') || 'none'}.`);
}

function line(summary: WorkSummary, json: boolean): string {
  if (json) return JSON.stringify(summary);
  return Object.entries(summary)
    .map(([name, value]) => `${name}=${value}`)
    .join(' ');
}
