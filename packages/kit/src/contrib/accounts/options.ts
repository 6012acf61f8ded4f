import { DEFAULT_PASSWORD_COST, isCost, type PasswordCost } from './users/password.ts';
import { mailRule, type MailOptions } from './mail/mail.ts';
import { trustedOriginFault } from './sessions/request-origin.ts';
import { type OptionRules, readOptions } from '../../options/read-options.ts';
import { flag, isMembers, listOf, oneOf, rule, sentenceRule, wholeNumber } from '../../options/value-rule.ts';

export interface AccountsOptions {
  /** A session ends this long after login, however busy (default 14 days). */
  readonly sessionLifetimeMs?: number;
  /** A session ends after this long without a request (default 24 hours). */
  readonly sessionIdleMs?: number;
  /** `Secure` and `__Host-` on the cookie (default true, false when NODE_ENV is `development`). */
  readonly secureCookies?: boolean;
  /** Other origins whose pages may use the session, e.g. `https://app.example.com` for an API on another host of the same site. */
  readonly trustedOrigins?: readonly string[];
  /** The cost of scrypt for new passwords. Hashes of another cost are replaced at the next login. */
  readonly passwordCost?: PasswordCost;
  /**
   * `required`: sessions of staff have no staff rights until a one-time code was proved; a first login sets the codes up. `optional`: only
   * users who set one up are asked. Default: `required`.
   */
  readonly secondFactor?: 'required' | 'optional';
  /** `invitation`: staff can invite users through the API and the admin site. Default: `closed`; `kit user invite` always works. */
  readonly signUp?: 'closed' | 'invitation';
  /** How invitations and links to reset a password are sent. Needs jobs(). Default: no mail, and `kit user invite` and `kit user reset` print the link. */
  readonly mail?: MailOptions;
}

export interface AccountsSettings extends Required<Omit<AccountsOptions, 'mail'>> {
  readonly mail: MailOptions | null;
}

const HOUR_MS = 3_600_000;
/** A session shorter than a minute ends while its page loads. */
const wholeMilliseconds = wholeNumber(60_000);

const rules: OptionRules<AccountsOptions> = {
  sessionLifetimeMs: wholeMilliseconds,
  sessionIdleMs: wholeMilliseconds,
  secureCookies: flag,
  trustedOrigins: listOf(sentenceRule(trustedOriginFault)),
  passwordCost: rule('{ logN: 1…20, r: 1…32, p: 1…16 }', (value) => isMembers(value) && isCost(value as unknown as PasswordCost)),
  secondFactor: oneOf('required', 'optional'),
  signUp: oneOf('closed', 'invitation'),
  mail: mailRule,
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
    secondFactor: options.secondFactor ?? 'required',
    signUp: options.signUp ?? 'closed',
    mail: options.mail ?? null,
  };
  return Object.freeze(settings);
}
