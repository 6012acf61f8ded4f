import { createHash, type Hash } from 'node:crypto';
import { joinKeyPath } from '../document/key-path.ts';
import { emptyTable } from '../document/value.ts';
import type { DecryptionBudget, Keyring } from './keyring.ts';
import type { OrderedTable } from './ordered-tree.ts';
import { readSopsMetadata, SOPS_KEY, type SopsMetadata } from './sops-metadata.ts';
import { compileRule, keysOf, type IsEncrypted } from './sops-rules.ts';
import { DATA_KEY_BYTES, decodeSopsValue, macBytes, openSopsValue, sopsPath, type SopsPlaintext } from './sops-value.ts';

/** Every MAC of documents with `mac_only_encrypted` begins with these bytes, the SHA-256 of "sops". */
const MAC_ONLY_ENCRYPTED = createHash('sha256').update('sops').digest();

/** A decrypted document: values without the metadata, and the key paths of those that were encrypted. */
export interface SopsOpened {
  readonly raw: Record<string, unknown>;
  readonly decrypted: ReadonlySet<string>;
  readonly metadata: SopsMetadata;
  readonly dataKey: Buffer;
}

/** Why a document was not decrypted: a sentence, and the key path it is about if there is one. */
export interface SopsProblem {
  readonly problem: string;
  readonly key?: string;
}

/** Decrypts every value and verifies the MAC over all of them. */
export async function openSopsDocument(tree: OrderedTable, keyring: Keyring, budget: DecryptionBudget): Promise<SopsOpened | SopsProblem> {
  const metadata = readSopsMetadata(tree);
  if (typeof metadata === 'string') return { problem: metadata, key: SOPS_KEY };
  const dataKey = await openDataKey(metadata, keyring, budget);
  if (!Buffer.isBuffer(dataKey)) return dataKey;
  return openWithDataKey(tree, metadata, dataKey);
}

/** The same for a data key that is known already. */
export function openWithDataKey(tree: OrderedTable, metadata: SopsMetadata, dataKey: Buffer): SopsOpened | SopsProblem {
  const values = new Map(tree);
  values.delete(SOPS_KEY);
  const isEncrypted = compileRule(metadata.rule, keysOf(values));
  if (isEncrypted === undefined) {
    return {
      problem: `the expression of ${metadata.rule.name} is not supported or takes too long`,
      key: `${SOPS_KEY}.${metadata.rule.name}`,
    };
  }
  const walk = new DecryptingWalk(dataKey, isEncrypted, sopsMac(metadata));
  const raw = walk.table(values, [], []);
  if (walk.problem !== undefined) return walk.problem;
  const expected = openSopsValue(metadata.mac, dataKey, metadata.lastModified)?.bytes.toString('latin1');
  if (expected === undefined) return { problem: 'the MAC of the document does not decrypt', key: `${SOPS_KEY}.mac` };
  if (expected !== walk.mac()) return { problem: 'the MAC does not match: the document was changed after it was encrypted' };
  return { raw, decrypted: walk.decrypted, metadata, dataKey };
}

export function sopsMac({ macOnlyEncrypted }: Pick<SopsMetadata, 'macOnlyEncrypted'>): SopsMac {
  return new SopsMac(macOnlyEncrypted);
}

/** The MAC of a document: SHA-512 of its values in the order of the file. */
export class SopsMac {
  readonly #hash: Hash = createHash('sha512');
  readonly #onlyEncrypted: boolean;

  constructor(onlyEncrypted: boolean) {
    this.#onlyEncrypted = onlyEncrypted;
    if (onlyEncrypted) this.#hash.update(MAC_ONLY_ENCRYPTED);
  }

  add(bytes: Uint8Array, encrypted: boolean): void {
    if (encrypted || !this.#onlyEncrypted) this.#hash.update(bytes);
  }

  digest(): string {
    return this.#hash.digest('hex').toUpperCase();
  }
}

/** Decrypts the data key with whichever recipient has an identity here. */
async function openDataKey({ age }: SopsMetadata, keyring: Keyring, budget: DecryptionBudget): Promise<Buffer | SopsProblem> {
  let damaged = false;
  for (const { enc } of age) {
    const opened = await keyring.open(enc, budget);
    if ('plaintext' in opened && opened.plaintext.length === DATA_KEY_BYTES) return opened.plaintext;
    damaged ||= 'plaintext' in opened || opened.problem !== 'no-identity';
  }
  return {
    problem: damaged
      ? 'the data key of the document is damaged'
      : 'no identity of the server can decrypt the document; add the identity, or rekey the file for one of them',
    key: `${SOPS_KEY}.age`,
  };
}

/** Decrypts in the order of the file. It stops at the first value that fails. */
class DecryptingWalk {
  readonly decrypted = new Set<string>();
  problem: SopsProblem | undefined;
  readonly #dataKey: Buffer;
  readonly #isEncrypted: IsEncrypted;
  readonly #mac: SopsMac;

  constructor(dataKey: Buffer, isEncrypted: IsEncrypted, mac: SopsMac) {
    this.#dataKey = dataKey;
    this.#isEncrypted = isEncrypted;
    this.#mac = mac;
  }

  mac(): string {
    return this.#mac.digest();
  }

  /** `path` has the positions in arrays; `keys`, which SOPS authenticates, does not. */
  table(table: OrderedTable, path: readonly string[], keys: readonly string[]): Record<string, unknown> {
    const result: Record<string, unknown> = emptyTable();
    for (const [key, value] of table) {
      if (this.problem !== undefined) break;
      result[key] = this.#value(value, [...path, key], [...keys, key]);
    }
    return result;
  }

  #value(value: unknown, path: readonly string[], keys: readonly string[]): unknown {
    if (this.problem !== undefined) return null;
    if (value instanceof Map) return this.table(value as OrderedTable, path, keys);
    if (Array.isArray(value)) return value.map((item, index) => this.#value(item, [...path, String(index)], keys));
    // SOPS does not encrypt what is empty.
    if (value === null || value === undefined) return null;
    const encrypted = this.#isEncrypted(keys);
    if (encrypted && value !== '') return this.#decrypt(value, path, keys);
    this.#mac.add(plainBytes(value), encrypted);
    return value;
  }

  #decrypt(value: unknown, path: readonly string[], keys: readonly string[]): unknown {
    const key = joinKeyPath(path);
    if (typeof value !== 'string') return this.#fail(key, 'is not encrypted, but the document encrypts this key');
    const opened = openSopsValue(value, this.#dataKey, sopsPath(keys));
    if (opened === undefined)
      return this.#fail(key, 'does not decrypt: it is not encrypted, was changed, or was moved from another key or file');
    const decoded = decodeSopsValue(opened);
    if (decoded === undefined) return this.#fail(key, 'decrypts to something that is not of its type');
    this.#mac.add(decryptedBytes(opened, decoded), true);
    this.decrypted.add(key);
    return decoded;
  }

  #fail(key: string, what: string): null {
    this.problem = { problem: `key ${key} ${what}`, key };
    return null;
  }
}

/** A value that is not encrypted, as the MAC covers it. */
export function plainBytes(value: unknown): Buffer {
  if (value instanceof Date) return Buffer.from(value.toISOString());
  return macBytes(value as string | number | bigint | boolean);
}

function decryptedBytes({ bytes }: SopsPlaintext, decoded: unknown): Buffer {
  return typeof decoded === 'boolean' ? macBytes(decoded) : bytes;
}
