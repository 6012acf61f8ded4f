import { CONFLICT_RETRIES } from '../../../db/engine/conflict-retries.ts';
import type { Command as CommanderCommand } from 'commander';
import type { Command, CommandContext } from '../../../app/declare/command.ts';
import type { App } from '../../../app/declare/module.ts';
import { idOption } from '../../../app/declare/command-options.ts';
import { databaseNamed } from './command-options.ts';
import { addDeliver } from './deliver-command.ts';
import { generateFernetKey } from '../../../db/sealing/fernet.ts';
import { addListen } from './listen-command.ts';
import { addMaintenance } from './maintenance-commands.ts';
import { readStats } from '../delivery/maintenance-store.ts';
import { prometheusText } from '../maintain/prometheus.ts';
import { retryDelivery } from '../maintain/retry.ts';
import { webhooksOf } from '../webhooks.ts';

type Context = CommandContext<App>;

/** `kit webhooks …`; `kit_webhooks` is the same without the second word. */
export const webhooksCommand: Command<App> = {
  name: 'webhooks',
  summary: 'deliver webhooks; manage events, deliveries and signing secrets',
  configure(command, context) {
    addDeliver(command, context);
    addStats(command, context);
    addRetry(command, context);
    addMaintenance(command, context);
    addListen(command, context);
    command
      .command('generate-key')
      .description('create a key for WEBHOOK_SECRET_KEYS')
      .action(() => {
        const key = generateFernetKey();
        context.print(context.json ? JSON.stringify({ key }) : key);
      });
  },
};

function addStats(command: CommanderCommand, context: Context): void {
  command
    .command('stats')
    .description('counts, and the age of the oldest pending delivery, as JSON')
    .option('--database <alias>', 'the database of the events', 'default')
    .option('--prometheus', 'in the text format of Prometheus')
    .action(async (options: { database: string; prometheus?: boolean }) => {
      const db = await databaseNamed(context, options.database);
      const stats = await readStats(db, webhooksOf(db).clock.now());
      context.print(options.prometheus === true ? prometheusText(stats, options.database) : JSON.stringify(stats));
    });
}

function addRetry(command: CommanderCommand, context: Context): void {
  command
    .command('retry')
    .description('restart the retry schedule of one delivery and make it due; fails while a worker sends it')
    .requiredOption('--delivery-id <id>', 'the delivery')
    .option('--force', 'even if it has succeeded')
    .option('--database <alias>', 'the database of the events', 'default')
    .action(async (options: { deliveryId: string; force?: boolean; database: string }) => {
      const id = idOption('--delivery-id', options.deliveryId, 'the API');
      const db = await databaseNamed(context, options.database);
      const delivery = await db.transaction((tx) => retryDelivery(tx, id, { force: options.force === true }), CONFLICT_RETRIES);
      const { status, event_type, endpoint_id } = delivery;
      context.print(
        context.json ? JSON.stringify({ id, status, event_type, endpoint_id }) : `Delivery ${id} (${event_type}) is queued again.`,
      );
    });
}
