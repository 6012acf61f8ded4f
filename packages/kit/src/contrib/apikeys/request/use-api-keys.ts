import { emptyRegistry, type Registry } from '../../../app/declare/registry.ts';
import { directoryOf, type UserDirectory, type UserSource } from '../../../auth/people/user-directory.ts';
import { columnTypes, userTableFaults } from '../../../auth/people/user-table.ts';
import type { Clock } from '../../../db/clock.ts';
import type { Database, Db } from '../../../db/engine/db.ts';
import { type DbLog, silentLog } from '../../../db/log.ts';
import type { Counter } from '../../../observe/metric-registry.ts';
import { AcceptedKeys } from '../verify/accepted-keys.ts';
import { KeyCache } from '../verify/cache.ts';
import { DigestUpgrades } from '../verify/digest-upgrades.ts';
import { FailedAttempts } from '../verify/failed-attempts.ts';
import { followChanges, ownerChanged } from '../verify/invalidation.ts';
import { keyrings } from '../verify/keyring.ts';
import { LastUsed } from '../verify/last-used.ts';
import { apiKeyRules, completed, pepperFault, previousPepperFault, type ApiKeyOptions, type ApiKeySettings } from '../options.ts';
import { keyStatements } from '../rows/store.ts';
import { Usage } from '../verify/usage.ts';
import { userDirectory } from '../../../auth/people/user-directory-rule.ts';
import { InvalidOptions, type OptionRules, readOptions } from '../../../options/read-options.ts';
import { clock, objectWith, required } from '../../../options/value-rule.ts';

export interface UseApiKeysOptions extends ApiKeyOptions {
  /** Where the owners live. */
  readonly users: UserSource;
  /** The time. Default: the clock of the database. */
  readonly clock?: Clock;
  /** Where warnings and errors are written. Default: nowhere. */
  readonly log?: DbLog;
  /** What records and publishes changes. Default: nothing. */
  readonly registry?: Partial<Registry>;
}

/** Keys of a database that are in use: stop writes what is left to write and ends the listener. */
export interface ApiKeysInUse {
  /** Writes the last-used times and the counted requests that wait. */
  flush(): Promise<void>;
  /**
   * Call it in the transaction that changes, deactivates or deletes an owner: caches drop the owner's keys at commit. The keys of an owner that
   * `users` no longer finds are deleted, so that another user with the same id does not get them. With `createApp`, call `app.registry.userChanges`.
   */
  ownerChanged(tx: Db, userId: string): Promise<void>;
  stop(): Promise<void>;
}

const rules: OptionRules<UseApiKeysOptions> = {
  ...apiKeyRules,
  users: required(userDirectory),
  clock,
  log: objectWith('a log with warn and error, such as pino()', 'warn', 'error'),
  registry: objectWith('a registry: { audit, events, metrics, userChanges }'),
};

/** Sets keys up for a database without the toolkit's application: afterwards `verifyApiKey(database, raw)` and the other verbs work on it. */
export async function useApiKeys(database: Database, options: UseApiKeysOptions): Promise<ApiKeysInUse> {
  readOptions('useApiKeys()', options, rules);
  const faults = await userTableFaults(database, options.users.table);
  if (faults.length > 0)
    throw new InvalidOptions(faults.map(({ id, message, hint }) => ({ id, message: `useApiKeys(): ${message}`, hint })));
  const { users, clock = database.clock, log = silentLog, registry, ...rest } = options;
  return startKeyring(database, completed(rest), {
    users: directoryOf(users),
    clock,
    log,
    registry: { ...emptyRegistry, ...registry },
    pepper: null,
    previousPepper: undefined,
    verifications: undefined,
    routeScopes: () => [],
  });
}

export interface KeyringSurroundings {
  readonly users: UserDirectory;
  readonly clock: Clock;
  readonly log: DbLog;
  readonly registry: Registry;
  /** Used when the options say nothing about a pepper. */
  readonly pepper: string | null;
  readonly previousPepper: string | null | undefined;
  readonly verifications: Counter<'outcome'> | undefined;
  readonly routeScopes: () => readonly string[];
}

export async function startKeyring(
  database: Database,
  settings: ApiKeySettings,
  { users, clock, log, registry, pepper: defaultPepper, previousPepper: defaultPrevious, verifications, routeScopes }: KeyringSurroundings,
): Promise<ApiKeysInUse> {
  const pepper = settings.pepper === undefined ? defaultPepper : settings.pepper;
  const previousPepper = settings.previousPepper === undefined ? defaultPrevious : settings.previousPepper;
  const fault = pepperFault(pepper) ?? previousPepperFault(previousPepper, pepper);
  if (fault !== null) throw new TypeError(fault);
  const lastUsed = new LastUsed(database, log);
  const usage = new Usage(database, log);
  const upgrades = new DigestUpgrades(database, log);
  const cache = settings.cache === null ? null : new KeyCache(settings.cache);
  keyrings.bind(database, {
    tag: settings.tag,
    pepper,
    previousPepper,
    accepted: new AcceptedKeys(),
    upgrades,
    maxKeysPerOwner: settings.maxKeysPerOwner,
    users,
    statements: keyStatements(users.table, await columnTypes(database, users.table.name), database.dialect),
    clock,
    registry,
    failedAttempts: settings.failedAttempts === null ? null : new FailedAttempts(settings.failedAttempts),
    lastUsed,
    usage,
    cache,
    verifications,
    routeScopes,
  });
  try {
    const unfollow = cache === null ? async () => undefined : await followChanges(database, cache);
    return {
      async flush() {
        await lastUsed.flush();
        await usage.flush();
        await upgrades.flush();
      },
      ownerChanged: (tx, userId) => ownerChanged(tx, userId),
      async stop() {
        await unfollow();
        await lastUsed.stop();
        await usage.stop();
        await upgrades.stop();
        keyrings.release(database);
      },
    };
  } catch (error) {
    keyrings.release(database);
    throw error;
  }
}
