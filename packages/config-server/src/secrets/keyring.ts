import { createHash } from 'node:crypto';
import type { Decrypter } from 'age-encryption';
import type { AgeLibrary } from './age-library.ts';

/** More recipients than any team has. Each one costs a key agreement per identity. */
export const RECIPIENTS_MAX = 64;
/** 64 post-quantum recipients fit; a header that goes on beyond it is not parsed. */
const HEADER_BYTES_MAX = 160 * 1024;
const VERSION_LINE = 'age-encryption.org/v1\n';
const ARMOR = '-----BEGIN AGE ENCRYPTED FILE-----';

/** Why an age file was not decrypted. */
export type AgeProblem = 'no-identity' | 'damaged' | 'recipients' | 'budget';
export type AgeOpened = { readonly plaintext: Buffer } | { readonly problem: AgeProblem };

/** One attempt is one key agreement, about a millisecond: a hostile file costs seconds and not hours. */
const ATTEMPTS_MAX = 5_000;

/** How much work one file may cause: each ciphertext takes up to one attempt per recipient and identity. */
export class DecryptionBudget {
  #left = ATTEMPTS_MAX;

  spend(attempts: number): boolean {
    this.#left -= attempts;
    return this.#left >= 0;
  }
}

/** The identities of a server or of the command line. Private fields: printing a keyring shows no key. */
export class Keyring {
  readonly #decrypter: Decrypter;
  readonly #age: AgeLibrary;
  readonly #digest: string;
  readonly size: number;

  /** Throws when one of the identities is malformed; the error of the library may quote it and must not be shown. */
  constructor(age: AgeLibrary, identities: readonly string[]) {
    this.#age = age;
    this.#decrypter = new age.Decrypter();
    for (const identity of identities) this.#decrypter.addIdentity(identity);
    this.#digest = createHash('sha256').update(identities.join('\n')).digest('hex');
    this.size = identities.length;
  }

  /** Decrypts a binary or armored age file with whichever identity fits. */
  async open(file: Uint8Array | string, budget: DecryptionBudget): Promise<AgeOpened> {
    const binary = typeof file === 'string' ? this.#withoutArmor(file) : file;
    const recipients = binary === undefined ? 0 : countRecipients(binary);
    if (binary === undefined || recipients === 0) return { problem: 'damaged' };
    if (recipients > RECIPIENTS_MAX) return { problem: 'recipients' };
    if (!budget.spend(recipients * this.size)) return { problem: 'budget' };
    try {
      return { plaintext: Buffer.from(await this.#decrypter.decrypt(binary)) };
    } catch (error) {
      return { problem: /no identity matched/.test((error as Error).message) ? 'no-identity' : 'damaged' };
    }
  }

  equals(other: Keyring): boolean {
    return this.#digest === other.#digest;
  }

  #withoutArmor(text: string): Uint8Array | undefined {
    try {
      return text.trimStart().startsWith(ARMOR) ? this.#age.armor.decode(text) : undefined;
    } catch {
      return undefined;
    }
  }
}

/** How many recipients a header has; 0 when it is not an age header. */
function countRecipients(file: Uint8Array): number {
  const header = Buffer.from(file.subarray(0, HEADER_BYTES_MAX)).toString('latin1');
  const end = header.indexOf('\n--- ');
  if (!header.startsWith(VERSION_LINE) || end === -1) return 0;
  return header.slice(0, end).split('\n-> ').length - 1;
}
