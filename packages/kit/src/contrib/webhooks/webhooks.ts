import type { Registry } from '../../app/registry.ts';
import type { Clock } from '../../db/clock.ts';
import type { Database, Db } from '../../db/db.ts';
import { type DbLog, silentLog } from '../../db/log.ts';
import { readWebhookOptions, type WebhookOptions, type WebhookSettings } from './options.ts';
import { secretBox, type SecretBox } from './signing/secret-box.ts';

/** Everything the verbs need to know about the webhooks of one database, besides the database. */
export interface Webhooks {
  readonly database: Database;
  readonly settings: WebhookSettings;
  readonly secrets: SecretBox;
  readonly clock: Clock;
  readonly log: DbLog;
  readonly registry: Registry;
}

const bound = new Map<Database, Webhooks>();

export interface UseWebhooksOptions extends WebhookOptions {
  readonly clock?: Clock;
  readonly log?: DbLog;
  readonly registry?: Registry;
}

/** Sets webhooks up for a database without the toolkit's application: afterwards `publish` and the other verbs work on it. */
export function useWebhooks(database: Database, options: UseWebhooksOptions = {}): Webhooks {
  const {
    clock = database.clock,
    log = silentLog,
    registry = { audit: null, events: null, metrics: null, userChanges: [] },
    ...rest
  } = options;
  return bindWebhooks(database, readWebhookOptions(rest), { clock, log, registry });
}

export function bindWebhooks(
  database: Database,
  settings: WebhookSettings,
  { clock, log, registry }: Pick<Webhooks, 'clock' | 'log' | 'registry'>,
): Webhooks {
  if (bound.has(database)) throw new Error('Webhooks are already set up for this database: install webhooks() or call useWebhooks() once.');
  const secrets = secretBox({ keys: settings.secretKeys ?? [], strict: settings.strictSecrets, clock: () => clock.now() });
  const webhooks: Webhooks = Object.freeze({ database, settings, secrets, clock, log, registry });
  bound.set(database, webhooks);
  return webhooks;
}

export function unbindWebhooks(database: Database): void {
  bound.delete(database);
}

/** The webhooks of the database that a handle or transaction belongs to. */
export function webhooksOf(db: Db): Webhooks {
  const webhooks = bound.get(db.database);
  if (webhooks !== undefined) return webhooks;
  throw new Error(
    `Webhooks are not set up for the database "${db.using}": add webhooks() to the modules of createApp, or call useWebhooks(database).`,
  );
}

export function findWebhooks(database: Database): Webhooks | undefined {
  return bound.get(database);
}

/** By alias, for task queues that carry only text. An alias that two applications of this process use is refused. */
export function webhooksNamed(using: string): Webhooks {
  const found = [...bound.values()].filter(({ database }) => database.using === using);
  const [first] = found;
  if (first === undefined) throw new Error(`No database "${using}" with webhooks is open in this process.`);
  if (found.length > 1) throw new Error(`Several open databases are called "${using}": pass the database itself instead of its alias.`);
  return first;
}
