import type { Registry } from '../../app/registry.ts';
import type { UserDirectory } from '../../auth/user-directory.ts';
import type { Clock } from '../../db/clock.ts';
import type { Database, Db } from '../../db/db.ts';
import type { KeyCache } from './cache.ts';
import type { FailedAttempts } from './failed-attempts.ts';
import type { LastUsed } from './last-used.ts';
import type { KeyStatements } from './store.ts';

/** Everything the verbs need to know about the keys of one database, besides the database. */
export interface Keyring {
  readonly tag: string;
  readonly pepper: string | null;
  readonly maxKeysPerOwner: number;
  readonly users: UserDirectory;
  readonly statements: KeyStatements;
  readonly clock: Clock;
  readonly registry: Registry;
  readonly failedAttempts: FailedAttempts | null;
  readonly lastUsed: LastUsed;
  readonly cache: KeyCache | null;
  /** Scopes that mounted routes require, sorted. */
  readonly routeScopes: () => readonly string[];
}

const keyrings = new WeakMap<Database, Keyring>();

/** One keyring per database: verbs find it from whatever handle or transaction they are given. */
export function bindKeyring(database: Database, keyring: Keyring): void {
  if (keyrings.has(database))
    throw new Error('API keys are already set up for this database: install apiKeys() or call useApiKeys() once.');
  keyrings.set(database, keyring);
}

export function unbindKeyring(database: Database): void {
  keyrings.delete(database);
}

export function keyringOf(db: Db): Keyring {
  const keyring = keyrings.get(db.database);
  if (keyring === undefined) {
    throw new Error(
      `API keys are not set up for the database "${db.using}": add apiKeys() to the modules of createApp, or call useApiKeys(database, { users }).`,
    );
  }
  return keyring;
}
