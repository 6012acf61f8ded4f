import { DEFAULT_PASSWORD_COST, isCost, type PasswordCost } from './password.ts';
import { trustedOriginFault } from './request-origin.ts';
import { type OptionRules, readOptions } from '../../options/read-options.ts';
import { flag, isMembers, listOf, rule, sentenceRule, wholeNumber } from '../../options/value-rule.ts';

export interface AccountsOptions {
  /** A session ends this long after login, however busy (default 14 days). */
  readonly sessionLifetimeMs?: number;
  /** A session ends after this long without a request (default 24 hours). */
  readonly sessionIdleMs?: number;
  /** `Secure` and `__Host-` on the cookie (default true, false when NODE_ENV is `development`). */
  readonly secureCookies?: boolean;
  /** Other origins whose pages may use the session, e.g. `https://app.example.com` for an API on another host of the same site. */
  readonly trustedOrigins?: readonly string[];
  readonly passwordCost?: PasswordCost;
}

export type AccountsSettings = Required<AccountsOptions>;

const HOUR_MS = 3_600_000;
/** A session shorter than a minute ends while its page loads. */
const wholeMilliseconds = wholeNumber(60_000);

const rules: OptionRules<AccountsOptions> = {
  sessionLifetimeMs: wholeMilliseconds,
  sessionIdleMs: wholeMilliseconds,
  secureCookies: flag,
  trustedOrigins: listOf(sentenceRule(trustedOriginFault)),
  passwordCost: rule('{ logN: 1…20, r: 1…32, p: 1…16 }', (value) => isMembers(value) && isCost(value as unknown as PasswordCost)),
};

/** Complete and frozen; every fault is reported at once. */
export function readAccountsOptions(options: AccountsOptions, environment: { readonly development: boolean }): AccountsSettings {
  readOptions('accounts()', options, rules);
  const settings: AccountsSettings = {
    sessionLifetimeMs: options.sessionLifetimeMs ?? 14 * 24 * HOUR_MS,
    sessionIdleMs: options.sessionIdleMs ?? 24 * HOUR_MS,
    secureCookies: options.secureCookies ?? !environment.development,
    trustedOrigins: Object.freeze([...(options.trustedOrigins ?? [])]),
    passwordCost: options.passwordCost ?? DEFAULT_PASSWORD_COST,
  };
  return Object.freeze(settings);
}
