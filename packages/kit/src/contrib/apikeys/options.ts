import type { Rate } from '../../throttle/rate.ts';
import { toRate } from '../../throttle/rate.ts';
import { DEFAULT_TAG, tagFault } from './key/key.ts';
import { objectOf, type OptionRules, readOptions } from '../../options/read-options.ts';
import { nullable, parsedBy, required, secret, sentenceRule, wholeNumber } from '../../options/value-rule.ts';

export interface ApiKeyOptions {
  /** The first word of every key: 2 to 8 lowercase letters. Default: `kit`. Choose once: keys of another tag stop working. */
  readonly tag?: string;
  /** HMAC key of the stored digests. Default: the setting API_KEY_PEPPER. Changing it ends every key, unless `previousPepper` has the old one. */
  readonly pepper?: string | null;
  /**
   * The pepper before, null where there was none: keys go on working, and each is stored under the new one when it is used. Default: the
   * setting API_KEY_PEPPER_PREVIOUS.
   */
  readonly previousPepper?: string | null;
  /** Keys an owner may have in state `active` at a time. Default: 100. */
  readonly maxKeysPerOwner?: number;
  /** Bad keys per client address before the address gets 429. Default: `30/min`; null for no limit. Counted per process. */
  readonly failedAttempts?: string | Rate | null;
  /** Disabled by default. Caches verified keys for up to `maxAgeMs`. See docs/reference/apikeys.md for what that means. */
  readonly cache?: KeyCacheOptions | null;
}

export interface KeyCacheOptions {
  /** How long a row may be trusted where no notification can reach (another process on SQLite). 1 to 300,000. */
  readonly maxAgeMs: number;
  /** Keys remembered at a time. Default: 10,000. */
  readonly entriesMax?: number;
}

/** Complete and frozen. `pepper` undefined: not said, the app's setting decides. */
export interface ApiKeySettings {
  readonly tag: string;
  readonly pepper: string | null | undefined;
  readonly previousPepper: string | null | undefined;
  readonly maxKeysPerOwner: number;
  readonly failedAttempts: Rate | null;
  readonly cache: Required<KeyCacheOptions> | null;
}

const CACHE_AGE_MS_MAX = 300_000;
/** A pepper that can be guessed protects nothing. */
const PEPPER_LENGTH_MIN = 16;

const aPepper = nullable(
  secret(
    `${PEPPER_LENGTH_MIN} characters or more, better 32 random ones`,
    (value) => typeof value === 'string' && value.length >= PEPPER_LENGTH_MIN,
  ),
);

export const apiKeyRules: OptionRules<ApiKeyOptions> = {
  tag: sentenceRule(tagFault),
  pepper: aPepper,
  previousPepper: aPepper,
  maxKeysPerOwner: wholeNumber(1),
  failedAttempts: nullable(parsedBy(toRate)),
  cache: nullable(objectOf<KeyCacheOptions>({ maxAgeMs: required(wholeNumber(1, CACHE_AGE_MS_MAX)), entriesMax: wholeNumber(1) })),
};

/** Every fault is reported at once; the pepper itself is never part of the message. */
export function readApiKeyOptions(options: ApiKeyOptions = {}): ApiKeySettings {
  return completed(readOptions('apiKeys()', options, apiKeyRules));
}

/** The settings of options that were checked. */
export function completed(options: ApiKeyOptions): ApiKeySettings {
  const { tag = DEFAULT_TAG, pepper, previousPepper, maxKeysPerOwner = 100, failedAttempts = '30/min', cache = null } = options;
  return Object.freeze({
    tag,
    pepper,
    previousPepper,
    maxKeysPerOwner,
    failedAttempts: failedAttempts === null ? null : toRate(failedAttempts),
    cache: cache === null ? null : Object.freeze({ maxAgeMs: cache.maxAgeMs, entriesMax: cache.entriesMax ?? 10_000 }),
  });
}

export function pepperFault(pepper: string | null | undefined): string | null {
  if (pepper === undefined || pepper === null || pepper.length >= PEPPER_LENGTH_MIN) return null;
  return `API_KEY_PEPPER has fewer than ${PEPPER_LENGTH_MIN} characters; use 32 or more random ones.`;
}

export function previousPepperFault(previous: string | null | undefined, pepper: string | null | undefined): string | null {
  if (previous === undefined) return null;
  if (previous === (pepper ?? null))
    return 'API_KEY_PEPPER_PREVIOUS is the same as API_KEY_PEPPER: remove it, or set the pepper from before.';
  return pepperFault(previous) === null
    ? null
    : `API_KEY_PEPPER_PREVIOUS has fewer than ${PEPPER_LENGTH_MIN} characters; write "none" where there was no pepper.`;
}
