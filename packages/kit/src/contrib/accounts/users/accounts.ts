import type { GroupChangeListener } from '../../../app/declare/registry.ts';
import { moduleState } from '../../../app/assemble/module-state.ts';
import type { App } from '../../../app/declare/module.ts';
import type { AuditSink } from '../../../auth/request/audit-sink.ts';
import type { Clock } from '../../../db/clock.ts';
import type { Db } from '../../../db/engine/db.ts';
import type { Log } from '../../../http/log.ts';
import { secretBox, type SecretBox, splitSecretKeys } from '../../../db/sealing/secret-box.ts';
import type { Counter } from '../../../observe/metric-registry.ts';
import type { ThrottleStorage } from '../../../throttle/storage.ts';
import type { UserManagement } from './user-management.ts';
import type { AccountsSettings } from '../options.ts';

/** The module at run time: its settings, and what it uses of the app. */
export interface Accounts {
  readonly settings: AccountsSettings;
  readonly clock: Clock;
  readonly log: Log;
  /** Seals the secrets of one-time codes with ACCOUNT_SECRET_KEYS. */
  readonly secrets: SecretBox;
  readonly throttleStorage: ThrottleStorage;
  readonly throttleRates: App['settings']['throttleRates'];
  /** Undefined unless the application has metrics. */
  readonly logins: Counter<'outcome'> | undefined;
  /** One-time codes by outcome; undefined without metrics. */
  readonly codes: Counter<'outcome'> | undefined;
  readonly mails: Counter<'outcome'> | undefined;
  /** The application's name, which authenticator apps show and mails mention. */
  readonly title: string;
  /** Null: nothing is recorded. */
  audit(): AuditSink | null;
  /** Those of these users that are service users, which nobody logs in as and which are never staff. */
  serviceUsersAmong(db: Db, ids: readonly string[]): Promise<ReadonlySet<string>>;
  /** Told in the transaction when a group is deleted. */
  groupChanges(): readonly GroupChangeListener[];
  /** For the verbs that change users. */
  management(actor: UserManagement['actor'], requestId?: string | null): UserManagement;
}

export const accountsState = moduleState<Accounts>({ name: 'Accounts', setUp: 'add accounts() to the modules of createApp' });

/** The accounts module of an application, found from its database or a transaction on it. */
export const accountsOf = (db: Db): Accounts => accountsState.of(db);

/** What can come of a login by password. `throttled`: the account's budget of guesses is used up. */
export const LOGIN_OUTCOMES = ['succeeded', 'refused', 'throttled', 'failed', 'code_required'] as const;
export const CODE_OUTCOMES = ['accepted', 'refused', 'throttled'] as const;
export const MAIL_OUTCOMES = ['sent', 'failed', 'no_recipient'] as const;

const SECRET_WORDS = { what: 'the secret of one-time codes', setting: 'ACCOUNT_SECRET_KEYS', command: 'kit user generate-key' } as const;

export interface AccountsMetrics {
  readonly logins: Counter<'outcome'>;
  readonly codes: Counter<'outcome'>;
  readonly mails: Counter<'outcome'>;
}

export function accountsIn(app: App, settings: AccountsSettings, metrics?: AccountsMetrics): Accounts {
  const { clock, log, throttleStorage, registry } = app;
  const secrets = secretBox({ ...SECRET_WORDS, keys: splitSecretKeys(app.settings.accountSecretKeys), clock: () => clock.now() });
  return Object.freeze({
    settings,
    clock,
    log,
    secrets,
    throttleStorage,
    throttleRates: app.settings.throttleRates,
    logins: metrics?.logins,
    codes: metrics?.codes,
    mails: metrics?.mails,
    title: app.title,
    audit: () => registry.audit,
    serviceUsersAmong: async (db: Db, ids: readonly string[]) => (await registry.serviceUsers?.among(db, ids)) ?? new Set<string>(),
    groupChanges: () => registry.groupChanges,
    management(actor: UserManagement['actor'], requestId: string | null = null): UserManagement {
      const { audit, userChanges } = registry;
      return { clock, passwordCost: settings.passwordCost, audit, userChanges, actor: actor ?? null, requestId };
    },
  });
}
