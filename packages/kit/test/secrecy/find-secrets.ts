import { SECRET_LENGTH } from '../../src/contrib/apikeys/key/key.ts';

/** What must never be written anywhere: `kind` says what it is; `shown` is enough of it to find the place and too little to use it. */
export interface Finding {
  readonly kind: 'an API key' | 'the secret part of an API key' | 'a webhook signing secret';
  readonly shown: string;
}

/** What was made in this process. */
export interface KnownSecrets {
  /** Secret parts of API keys. */
  readonly keys: ReadonlySet<string>;
  /** Signing secrets that were encrypted to be stored: in plain text they must not be stored any more. */
  readonly sealed: ReadonlySet<string>;
}

/** A whole key, of whatever tag an app chose. */
const RAW_KEY = /\b[a-z]{2,8}_[0-9A-Za-z]{12}_[0-9A-Za-z]{49}\b/;
/** What is before the 49 characters, and a character to see whether the tag begins there. */
const BEFORE_RUN = 8 + 1 + 12 + 1 + 1;
const WEBHOOK_SECRETS = /\bwhs(?:ec|k)_[0-9A-Za-z+/=_-]{20,}/g;

/** Keys are found by their form and by what was minted in this process; a secret part alone has no form, so only by the latter. */
export function findKey(text: string, { keys }: Pick<KnownSecrets, 'keys'>): Finding | null {
  let part: string | null = null;
  for (const [start, end] of longRuns(text)) {
    const raw = RAW_KEY.exec(text.slice(Math.max(0, start - BEFORE_RUN), end + 1))?.[0];
    if (raw !== undefined) return { kind: 'an API key', shown: `${raw.slice(0, raw.lastIndexOf('_'))}_…` };
    if (keys.size > 0) part ??= knownPart(text.slice(start, end), keys);
  }
  return part === null ? null : { kind: 'the secret part of an API key', shown: `${part.slice(0, 4)}…` };
}

/**
 * Where letters and digits are that could hold a secret part: shorter runs cannot. Of a text only each 43rd character is looked at, and what is
 * around it where that is one of them: every database of every test is searched, and regular expressions took a twentieth of all their time.
 */
function* longRuns(text: string): Generator<readonly [start: number, end: number], void, undefined> {
  const isPart = (at: number): boolean => LETTERS_AND_DIGITS[text.charCodeAt(at)] === true;
  for (let at = SECRET_LENGTH - 1; at < text.length; at += SECRET_LENGTH) {
    if (!isPart(at)) continue;
    let [start, end] = [at, at + 1];
    while (start > 0 && isPart(start - 1)) start -= 1;
    while (end < text.length && isPart(end)) end += 1;
    if (end - start >= SECRET_LENGTH) yield [start, end];
    at = end;
  }
}

/** By code. */
const LETTERS_AND_DIGITS = Array.from({ length: 128 }, (_, code) => /[0-9A-Za-z]/.test(String.fromCharCode(code)));

/**
 * The key that a run of letters and digits holds. A look-up of the 43 characters from each place on would take 20 s for the 60 MB that some
 * tests write, so a run is compared with the keys only where the first four characters of one are.
 */
function knownPart(run: string, keys: ReadonlySet<string>): string | null {
  const starts = startsOf(keys);
  let start = 0;
  for (let end = 0; end < run.length; end += 1) {
    start = shifted(start, run.charCodeAt(end));
    if (end < START_LENGTH - 1 || !starts.has(start)) continue;
    const at = end - START_LENGTH + 1;
    const part = run.slice(at, at + SECRET_LENGTH);
    if (keys.has(part)) return part;
  }
  return null;
}

const START_LENGTH = 4;
const indexes = new WeakMap<ReadonlySet<string>, { readonly size: number; readonly starts: ReadonlySet<number> }>();

/** The first characters of every key, each as one number; made again when there are more keys. */
function startsOf(keys: ReadonlySet<string>): ReadonlySet<number> {
  const known = indexes.get(keys);
  if (known?.size === keys.size) return known.starts;
  const starts = new Set<number>();
  for (const key of keys) {
    let start = 0;
    for (let at = 0; at < START_LENGTH; at += 1) start = shifted(start, key.charCodeAt(at));
    starts.add(start);
  }
  indexes.set(keys, { size: keys.size, starts });
  return starts;
}

/** Keys are ASCII: four characters of 7 bits are 28 bits, which V8 keeps without an allocation. */
function shifted(start: number, code: number): number {
  return ((start << 7) | code) & 0xfffffff;
}

/** Any signing secret; or, where they are kept, only one of those given. */
export function findWebhookSecret(text: string, only?: ReadonlySet<string>): Finding | null {
  if (!text.includes('whs')) return null;
  for (const [secret] of text.matchAll(WEBHOOK_SECRETS)) {
    if (only === undefined || only.has(secret)) return { kind: 'a webhook signing secret', shown: `${secret.slice(0, 10)}…` };
  }
  return null;
}
