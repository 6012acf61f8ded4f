import { moduleState } from '../../../app/assemble/module-state.ts';
import type { Registry } from '../../../app/declare/registry.ts';
import type { UserDirectory } from '../../../auth/people/user-directory.ts';
import type { Clock } from '../../../db/clock.ts';
import type { Db } from '../../../db/engine/db.ts';
import type { AcceptedKeys } from './accepted-keys.ts';
import type { KeyCache } from './cache.ts';
import type { DigestUpgrades } from './digest-upgrades.ts';
import type { FailedAttempts } from './failed-attempts.ts';
import type { LastUsed } from './last-used.ts';
import type { KeyStatements } from '../rows/store.ts';
import type { Usage } from './usage.ts';
import type { Counter } from '../../../observe/metric-registry.ts';

/** Everything the verbs need to know about the keys of one database, besides the database. */
export interface Keyring {
  readonly tag: string;
  readonly pepper: string | null;
  /** The pepper before, null for none at all; undefined when every digest is of the current one. */
  readonly previousPepper: string | null | undefined;
  /** Digests of keys that worked lately: they pass where an address has sent too many bad keys. */
  readonly accepted: AcceptedKeys;
  readonly upgrades: DigestUpgrades;
  readonly maxKeysPerOwner: number;
  readonly users: UserDirectory;
  readonly statements: KeyStatements;
  readonly clock: Clock;
  readonly registry: Registry;
  readonly failedAttempts: FailedAttempts | null;
  readonly lastUsed: LastUsed;
  readonly usage: Usage;
  readonly cache: KeyCache | null;
  /** Undefined unless the application has metrics. */
  readonly verifications: Counter<'outcome'> | undefined;
  /** Scopes that mounted routes require, sorted. */
  readonly routeScopes: () => readonly string[];
}

/** One keyring per database: verbs find it from the handle or transaction they are given. */
export const keyrings = moduleState<Keyring>({
  name: 'API keys',
  setUp: 'add apiKeys() to the modules of createApp, or call useApiKeys(database, { users })',
});

export const keyringOf = (db: Db): Keyring => keyrings.of(db);
