import { CONFLICT_RETRIES } from '../../../db/engine/conflict-retries.ts';
import type { Command as CommanderCommand } from 'commander';
import type { CommandContext } from '../../../app/declare/command.ts';
import type { App } from '../../../app/declare/module.ts';
import { assignAudience } from '../maintain/assign-audience.ts';
import { InvalidAudience, parseAudience, type Audience, type AudienceOptions } from '../publishing/audience.ts';
import { idOption, optionFault, timeOption, wholeNumberOption } from '../../../app/declare/command-options.ts';
import { checkAll } from '../../../errors/fault-collector.ts';
import { databaseNamed } from './command-options.ts';
import { isEventType } from '../publishing/subscription.ts';
import { prune } from '../delivery/prune.ts';
import { encryptSecrets, replay } from '../maintain/maintain.ts';
import { AUDIENCE_KEY_LENGTH_MAX } from '../models.ts';
import { webhooksOf } from '../webhooks.ts';

type Context = CommandContext<App>;

const DAY_MS = 86_400_000;
/** A century; more does not fit into a date. */
const DAYS_MAX = 36_500;

export function addMaintenance(command: CommanderCommand, context: Context): void {
  addReplay(command, context);
  addPrune(command, context);
  addAssignAudience(command, context);
  addEncryptSecrets(command, context);
}

interface ReplayChoice {
  readonly since: string;
  readonly until?: string;
  readonly type?: string;
  readonly endpoint?: string;
  readonly failed?: boolean;
  readonly dryRun?: boolean;
  readonly database: string;
}

function addReplay(command: CommanderCommand, context: Context): void {
  command
    .command('replay')
    .description('send finished deliveries again, including those that succeeded; disabled endpoints are skipped')
    .requiredOption('--since <time>', 'published then or later')
    .option('--until <time>', 'published before (default: now)')
    .option('--type <type>', 'only this event type')
    .option('--endpoint <id>', 'only this endpoint')
    .option('--failed', 'only those that failed')
    .option('--dry-run', 'only count')
    .option('--database <alias>', 'the database of the events', 'default')
    .action(async (options: ReplayChoice) => {
      const { until, ...chosen } = readReplay(options);
      const db = await databaseNamed(context, options.database);
      const dryRun = options.dryRun === true;
      const filter = { ...chosen, until: until ?? webhooksOf(db).clock.now(), failedOnly: options.failed };
      const count = await replay(db, filter, { dryRun });
      const words = dryRun ? 'would be sent again' : 'are queued again';
      context.print(context.json ? JSON.stringify({ deliveries: count, dry_run: dryRun }) : `${count} deliveries ${words}.`);
    });
}

function readReplay({ since, until, type, endpoint }: ReplayChoice) {
  const read = checkAll({
    since: () => timeOption('--since', since),
    until: () => (until === undefined ? undefined : timeOption('--until', until)),
    type: () => {
      if (type === undefined || isEventType(type)) return type;
      throw optionFault('--type', `--type is ${JSON.stringify(type)}; use an event type such as order.paid.`);
    },
    endpointId: () => (endpoint === undefined ? undefined : idOption('--endpoint', endpoint, 'the API')),
  });
  if (read.until !== undefined && read.until <= read.since)
    throw optionFault('--until', '--until is not after --since: nothing lies between them.');
  return read;
}

function addPrune(command: CommanderCommand, context: Context): void {
  command
    .command('prune')
    .description('remove finished events with their deliveries and attempts; repeat periodically')
    .requiredOption('--days <days>', 'how many days to keep')
    .option('--limit <events>', 'delete at most this many', '1000')
    .option('--database <alias>', 'the database of the events', 'default')
    .action(async (options: { days: string; limit: string; database: string }) => {
      const { days, limit } = checkAll({
        days: () => wholeNumberOption('--days', options.days, 0, DAYS_MAX),
        limit: () => wholeNumberOption('--limit', options.limit, 1),
      });
      const db = await databaseNamed(context, options.database);
      const before = new Date(webhooksOf(db).clock.now().getTime() - days * DAY_MS);
      const removed = await prune(db, before, limit);
      context.print(context.json ? JSON.stringify({ removed, before }) : `${removed} events from before ${before.toISOString()} removed.`);
    });
}

interface AudienceChoice {
  readonly eventId: string;
  readonly owner?: string;
  readonly tenantKey?: string;
  readonly broadcast?: boolean;
  readonly database: string;
}

function addAssignAudience(command: CommanderCommand, context: Context): void {
  command
    .command('assign-audience')
    .description('assign an audience to an event that has none; its deliveries become due')
    .requiredOption('--event-id <id>', 'the event')
    .option('--owner <id>', 'personal endpoints of this owner; with --tenant-key, the ones within the tenant')
    .option('--tenant-key <key>', 'endpoints of this tenant')
    .option('--broadcast', 'every endpoint: for public events only')
    .option('--database <alias>', 'the database of the events', 'default')
    .action(async ({ owner, tenantKey, broadcast, ...options }: AudienceChoice) => {
      const { id, audience } = checkAll({
        id: () => idOption('--event-id', options.eventId, 'the API'),
        audience: () => readAudience({ owner, tenantKey, broadcast }),
      });
      const db = await databaseNamed(context, options.database);
      const assigned = await db.transaction((tx) => assignAudience(tx, id, audience), CONFLICT_RETRIES);
      if (!assigned) context.fail(`There is no event ${id} without an audience: it does not exist or has one already.`);
      context.print(context.json ? JSON.stringify({ id, audience: audience.kind }) : `Event ${id} is for: ${audience.kind}.`);
    });
}

function readAudience(options: AudienceOptions): Audience {
  for (const key of [options.owner, options.tenantKey])
    if ((key?.length ?? 0) > AUDIENCE_KEY_LENGTH_MAX)
      throw optionFault('--owner', `--owner and --tenant-key have at most ${AUDIENCE_KEY_LENGTH_MAX} characters.`);
  try {
    return parseAudience(options);
  } catch (error) {
    if (!(error instanceof InvalidAudience)) throw error;
    throw optionFault('--owner', 'Give one audience: --owner, --tenant-key, both of these, or --broadcast alone for public events.');
  }
}

function addEncryptSecrets(command: CommanderCommand, context: Context): void {
  command
    .command('encrypt-secrets')
    .description('encrypt every stored signing secret with the first key of WEBHOOK_SECRET_KEYS; repeatable')
    .option('--database <alias>', 'the database of the endpoints', 'default')
    .action(async (options: { database: string }) => {
      const db = await databaseNamed(context, options.database);
      if ((webhooksOf(db).settings.secretKeys ?? []).length === 0)
        context.fail('WEBHOOK_SECRET_KEYS is empty: create a key with `kit webhooks generate-key` and set it first.');
      const { encrypted, unchanged, unavailable } = await encryptSecrets(db, (total) => context.progress('Endpoints', total));
      context.print(
        context.json
          ? JSON.stringify({ encrypted, unchanged, unavailable })
          : `${encrypted} secrets encrypted with the first key, ${unchanged} were already.`,
      );
      if (unavailable.length > 0)
        context.fail(
          `No configured key decrypts the secrets of ${unavailable.join(', ')}: add the old key after the first, or rotate them.`,
        );
    });
}
