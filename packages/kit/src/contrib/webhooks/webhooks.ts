import { moduleState } from '../../app/assemble/module-state.ts';
import { emptyRegistry, type Registry } from '../../app/declare/registry.ts';
import { standingsOf } from '../../app/declare/standing.ts';
import { directoryOf, type UserSource } from '../../auth/people/user-directory.ts';
import { userDirectory } from '../../auth/people/user-directory-rule.ts';
import type { Clock } from '../../db/clock.ts';
import type { Database, Db } from '../../db/engine/db.ts';
import { type DbLog, silentLog } from '../../db/log.ts';
import { readWebhookOptions, webhookRules, type WebhookOptions, type WebhookSettings } from './options.ts';
import { type OptionRules, readOptions, requireArguments } from '../../options/read-options.ts';
import { clock as aClock, objectWith, queryable } from '../../options/value-rule.ts';
import type { WebhookMetrics } from './delivery/webhook-metrics.ts';
import { type FindHindrances, hindrancesIn } from './endpoints/owner-standing.ts';
import { type Owners, ownersIn } from './endpoints/owners.ts';
import { secretBox, type SecretBox } from '../../db/sealing/secret-box.ts';

/** Everything the verbs need to know about the webhooks of one database, besides the database. */
export interface Webhooks {
  readonly database: Database;
  readonly settings: WebhookSettings;
  readonly secrets: SecretBox;
  readonly clock: Clock;
  readonly log: DbLog;
  readonly registry: Registry;
  /** Undefined unless the application has metrics. */
  readonly metrics: WebhookMetrics | undefined;
  /** Why owners of endpoints may not receive anything. */
  readonly findHindrances: FindHindrances;
  readonly owners: Owners;
}

const SECRET_WORDS = { what: 'the signing secret', setting: 'WEBHOOK_SECRET_KEYS', command: 'kit webhooks generate-key' } as const;

const state = moduleState<Webhooks>({
  name: 'Webhooks',
  setUp: 'add webhooks() to the modules of createApp, or call useWebhooks(database)',
});

export interface UseWebhooksOptions extends WebhookOptions {
  /** The time. Default: the clock of the database. */
  readonly clock?: Clock;
  /** Where the owners of endpoints live, in the same database: endpoints of deactivated users receive nothing. Default: owners are not checked. */
  readonly users?: UserSource;
  /** Where warnings and errors are written. Default: nowhere. */
  readonly log?: DbLog;
  /** Jobs, audit log and metrics of the process, where it has them. */
  readonly registry?: Partial<Registry>;
}

const rules: OptionRules<UseWebhooksOptions> = {
  ...webhookRules,
  users: userDirectory,
  clock: aClock,
  log: objectWith('a log with warn and error, such as pino()', 'warn', 'error'),
  registry: objectWith('a registry: { audit, events, metrics, userChanges }'),
};

/** Sets webhooks up for a database without the toolkit's application: afterwards `publish` and the other verbs work on it. */
export function useWebhooks(database: Database, options: UseWebhooksOptions = {}): Webhooks {
  readOptions('useWebhooks()', options, rules);
  requireArguments('useWebhooks()', { database }, { database: queryable });
  const { clock = database.clock, log = silentLog, registry, users, ...rest } = options;
  const standings =
    users === undefined ? (registry?.standings ?? emptyRegistry.standings) : standingsOf({ users: directoryOf(users), tenants: {} });
  return bindWebhooks(database, readWebhookOptions(rest), {
    clock,
    log,
    registry: { ...emptyRegistry, ...registry, standings },
    findHindrances: hindrancesIn(standings, registry?.tenants ?? emptyRegistry.tenants, database),
    owners: ownersIn(users === undefined ? null : directoryOf(users), database),
  });
}

type Surroundings = Pick<Webhooks, 'clock' | 'log' | 'registry' | 'findHindrances' | 'owners'> & {
  readonly metrics?: WebhookMetrics | undefined;
};

export function bindWebhooks(
  database: Database,
  settings: WebhookSettings,
  { clock, log, registry, metrics, findHindrances, owners }: Surroundings,
): Webhooks {
  const keys = settings.secretKeys ?? [];
  const secrets = secretBox({ ...SECRET_WORDS, keys, strict: settings.strictSecrets, clock: () => clock.now() });
  const webhooks: Webhooks = Object.freeze({ database, settings, secrets, clock, log, registry, metrics, findHindrances, owners });
  state.bind(database, webhooks);
  return webhooks;
}

/** Ends the binding that `useWebhooks()` created for a database. */
export function unbindWebhooks(database: Database): void {
  state.release(database);
}

/** The webhooks of the database that a handle or transaction belongs to. */
export const webhooksOf = (db: Db): Webhooks => state.of(db);

export const findWebhooks = (db: Db): Webhooks | undefined => state.find(db);

/** By alias, for task queues that carry only text. An alias that two applications of this process use is refused. */
export const webhooksNamed = (using: string): Webhooks => state.named(using);
