// How secrets that must be read again are stored: `fernet:<token>` when encryption keys are configured, otherwise as given.
import { decryptWithAny, encrypt, parseFernetKey } from './fernet.ts';

const PREFIX = 'fernet:';

/** A stored secret that cannot be read with the configured keys. */
export class SecretUnavailable extends Error {
  override readonly name = 'SecretUnavailable';
  readonly code = 'secret_unavailable';
}

/** For the sentences of errors. */
export interface SecretBoxWords {
  /** What is stored: `the signing secret`. */
  readonly what: string;
  /** The setting of the keys: `WEBHOOK_SECRET_KEYS`. */
  readonly setting: string;
  /** The command that creates a key: `kit webhooks generate-key`. */
  readonly command: string;
}

export interface SecretBoxOptions extends SecretBoxWords {
  /** Fernet keys: the first encrypts, all decrypt. To rotate, put the new key first and re-seal what is stored. */
  readonly keys?: readonly string[];
  /** Refuses to store a secret in plain text. */
  readonly strict?: boolean;
  readonly clock?: () => Date;
}

export interface SecretBox {
  /** The form to store. */
  seal(secret: string): string;
  /** The raw secret of a stored form; throws `SecretUnavailable`. */
  open(stored: string): string;
  /** The form to store instead, or null when the first key already seals it (or no key is configured). */
  reseal(stored: string): string | null;
}

export function secretBox({ keys = [], strict = false, clock = () => new Date(), what, setting, command }: SecretBoxOptions): SecretBox {
  const parsed = keys.map((key, index) => {
    try {
      return parseFernetKey(key);
    } catch (cause) {
      const reason = (cause as Error).message;
      throw new TypeError(`Key ${index + 1} of ${keys.length} in ${setting} cannot be used. ${reason} Create one with \`${command}\`.`, {
        cause,
      });
    }
  });
  const [first] = parsed;
  if (strict && first === undefined) {
    throw new TypeError(`Strict secret storage needs at least one key in ${setting}; create one with \`${command}\`.`);
  }

  function seal(secret: string): string {
    if (first !== undefined) return PREFIX + encrypt(first, secret, clock());
    // Stored as given it would later be taken for a token and be lost.
    if (secret.startsWith(PREFIX)) throw new TypeError(`A secret must not begin with "${PREFIX}".`);
    return secret;
  }

  function unseal(stored: string): { secret: string; sealedByFirst: boolean } {
    if (!stored.startsWith(PREFIX)) return { secret: stored, sealedByFirst: false };
    if (first === undefined) throw new SecretUnavailable(`${sentence(what)} is encrypted and ${setting} is empty.`);
    try {
      const { message, keyIndex } = decryptWithAny(parsed, stored.slice(PREFIX.length));
      return { secret: message.toString('utf8'), sealedByFirst: keyIndex === 0 };
    } catch (error) {
      throw new SecretUnavailable(`None of the keys in ${setting} decrypts ${what}.`, { cause: error });
    }
  }

  return {
    seal,
    open: (stored) => unseal(stored).secret,
    reseal(stored) {
      if (first === undefined) return null;
      const { secret, sealedByFirst } = unseal(stored);
      return sealedByFirst ? null : seal(secret);
    },
  };
}

/** A setting with keys, separated by commas or whitespace. */
export function splitSecretKeys(text: string | undefined): readonly string[] {
  return (text ?? '').split(/[\s,]+/).filter((key) => key !== '');
}

function sentence(what: string): string {
  return what.charAt(0).toUpperCase() + what.slice(1);
}
