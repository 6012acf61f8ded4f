import { SECRET_LENGTH } from '../../src/contrib/apikeys/key.ts';

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
/** Whatever could hold a secret part: shorter runs of letters and digits cannot. */
const LONG_RUN = /[0-9A-Za-z]{43,}/g;
const WEBHOOK_SECRETS = /\bwhs(?:ec|k)_[0-9A-Za-z+/=_-]{20,}/g;

/** Keys are found by their form and by what was minted in this process; a secret part alone has no form, so only by the latter. */
export function findKey(text: string, { keys }: Pick<KnownSecrets, 'keys'>): Finding | null {
  const raw = RAW_KEY.exec(text)?.[0];
  if (raw !== undefined) return { kind: 'an API key', shown: `${raw.slice(0, raw.lastIndexOf('_'))}_…` };
  for (const [run] of text.matchAll(LONG_RUN)) {
    for (let at = 0; at + SECRET_LENGTH <= run.length; at += 1) {
      const part = run.slice(at, at + SECRET_LENGTH);
      if (keys.has(part)) return { kind: 'the secret part of an API key', shown: `${part.slice(0, 4)}…` };
    }
  }
  return null;
}

/** Any signing secret; or, where they are kept, only one of those given. */
export function findWebhookSecret(text: string, only?: ReadonlySet<string>): Finding | null {
  for (const [secret] of text.matchAll(WEBHOOK_SECRETS)) {
    if (only === undefined || only.has(secret)) return { kind: 'a webhook signing secret', shown: `${secret.slice(0, 10)}…` };
  }
  return null;
}
