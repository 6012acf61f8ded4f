import { randomBytes } from 'node:crypto';

/** A key of DATA_KEYS or DATA_SEARCH_KEYS. */
export interface NamedKey {
  /** Part of every value that the key encrypts. */
  readonly id: string;
  readonly bytes: Uint8Array;
}

export const KEY_BYTES = 32;
const ENTRY = /^([A-Za-z0-9_-]{1,32}):([A-Za-z0-9+/_=-]+)$/;

/** A setting with keys, separated by commas or whitespace, each `id:base64url`. The bytes are not judged: a wrapped key has any length. */
export function parseKeyList(setting: string, text: string | undefined, faults: string[]): NamedKey[] {
  const keys: NamedKey[] = [];
  for (const [index, entry] of (text ?? '')
    .split(/[\s,]+/)
    .filter(Boolean)
    .entries()) {
    const [, id, encoded = ''] = ENTRY.exec(entry) ?? [];
    // The entry itself is not shown: it is a secret.
    if (id === undefined) faults.push(`Key ${index + 1} of ${setting} is not id:key. Create one with \`kit data-keys generate\`.`);
    else if (keys.some((each) => each.id === id)) faults.push(`Two keys of ${setting} have the id "${id}".`);
    else keys.push({ id, bytes: Buffer.from(encoded, 'base64url') });
  }
  return keys;
}

/** An entry of DATA_KEYS; `bytes` is the key, or the wrapped key. */
export function keyEntry({ id, bytes }: NamedKey): string {
  return `${id}:${Buffer.from(bytes).toString('base64url')}`;
}

export function newKey(id: string): NamedKey {
  return { id, bytes: randomBytes(KEY_BYTES) };
}
