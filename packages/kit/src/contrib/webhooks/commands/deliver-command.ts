import { databaseNamed } from './command-options.ts';
import { InvalidArgumentError, Option, type Command as CommanderCommand } from 'commander';
import type { App } from '../../../app/declare/module.ts';
import type { CommandContext } from '../../../app/declare/command.ts';
import { deliverDue, startWorker, type DeliverOptions } from '../delivery/deliver.ts';
import type { DeliverySummary } from '../delivery/result-writer.ts';

interface DeliverFlags {
  readonly loop?: boolean;
  readonly interval?: number;
  readonly limit?: number;
  readonly concurrency?: number;
  readonly timeout?: number;
  readonly database: string;
}

/** `kit webhooks deliver`: once, for cron, or as a worker that runs until SIGTERM or SIGINT. */
export function addDeliver(command: CommanderCommand, context: CommandContext<App>): void {
  command
    .command('deliver')
    .description('send due deliveries: once, or with --loop until stopped')
    .option('--loop', 'run until SIGTERM; requests in progress are finished')
    .option('--interval <seconds>', 'with --loop: how often to look when nothing wakes the worker', seconds(0.01, 3600))
    .addOption(new Option('--limit <count>', 'without --loop: send at most this many').argParser(count(999_999_999)).conflicts('loop'))
    .option('--concurrency <count>', 'maximum number of concurrent requests', count(10_000))
    .option('--timeout <seconds>', 'deadline of one request', seconds(0.001, 600))
    .option('--database <alias>', 'the database to deliver from', 'default')
    .action(async (flags: DeliverFlags) => {
      const app = await context.app();
      const database = await databaseNamed(context, flags.database);
      if (flags.loop !== true) return context.print(line(await deliverDue(database, optionsOf(flags)), context.json));
      for (const text of await app.monitor()) context.stderr.write(`${text}\n`);
      const worker = await startWorker(database, optionsOf(flags));
      const stopped = new Promise((resolve) => {
        for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, resolve);
      });
      context.stderr.write(`Delivering from the database "${flags.database}" until SIGTERM.\n`);
      await stopped;
      context.stderr.write('Stopping: requests under way are being finished.\n');
      await worker.stop();
      context.print(line(worker.summary, context.json));
    });
}

function optionsOf({ interval, limit, concurrency, timeout }: DeliverFlags): DeliverOptions {
  return {
    ...(interval === undefined ? {} : { pollIntervalMs: Math.ceil(interval * 1000) }),
    ...(limit === undefined ? {} : { limit }),
    ...(concurrency === undefined ? {} : { concurrency }),
    ...(timeout === undefined ? {} : { timeoutMs: Math.ceil(timeout * 1000) }),
  };
}

function line(summary: DeliverySummary, json: boolean): string {
  if (json) return JSON.stringify(summary);
  const { succeeded, retrying, failed, disabled_endpoints, lost_claims } = summary;
  return `succeeded=${succeeded} retrying=${retrying} failed=${failed} disabled_endpoints=${disabled_endpoints} lost_claims=${lost_claims}`;
}

function seconds(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = /^\d{1,6}(\.\d{1,6})?$/.test(text) ? Number(text) : Number.NaN;
    if (value >= min && value <= max) return value;
    throw new InvalidArgumentError(`Give a number of seconds from ${min} to ${max}.`);
  };
}

function count(max: number): (text: string) => number {
  return (text) => {
    const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
    if (value >= 1 && value <= max) return value;
    throw new InvalidArgumentError(`Enter an integer from 1 to ${max}.`);
  };
}
