import { DEFAULT_PASSWORD_COST, isCost, type PasswordCost } from './password.ts';
import { trustedOriginFault } from './request-origin.ts';

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
const KNOWN: readonly (keyof AccountsOptions)[] = ['sessionLifetimeMs', 'sessionIdleMs', 'secureCookies', 'trustedOrigins', 'passwordCost'];

/** Complete and frozen; every fault is reported at once. */
export function readAccountsOptions(options: AccountsOptions, environment: { readonly development: boolean }): AccountsSettings {
  const settings: AccountsSettings = {
    sessionLifetimeMs: options.sessionLifetimeMs ?? 14 * 24 * HOUR_MS,
    sessionIdleMs: options.sessionIdleMs ?? 24 * HOUR_MS,
    secureCookies: options.secureCookies ?? !environment.development,
    trustedOrigins: Object.freeze([...(options.trustedOrigins ?? [])]),
    passwordCost: options.passwordCost ?? DEFAULT_PASSWORD_COST,
  };
  const faults = Object.keys(options)
    .filter((name) => !(KNOWN as readonly string[]).includes(name))
    .map((name) => `${name} is not an option; the options are ${KNOWN.join(', ')}.`);
  for (const name of ['sessionLifetimeMs', 'sessionIdleMs'] as const) {
    if (!Number.isInteger(settings[name]) || settings[name] < 60_000)
      faults.push(`${name} is ${settings[name]}; use whole milliseconds, one minute or more.`);
  }
  if (!isCost(settings.passwordCost)) faults.push('passwordCost is out of bounds; use { logN: 1…20, r: 1…32, p: 1…16 }.');
  faults.push(...settings.trustedOrigins.map(trustedOriginFault).filter((fault) => fault !== null));
  if (faults.length > 0) throw new TypeError(`accounts(): ${faults.join(' ')}`);
  return Object.freeze(settings);
}
