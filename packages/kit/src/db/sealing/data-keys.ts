import { createHmac, hkdfSync } from 'node:crypto';
import { type OptionRules, readOptions } from '../../options/read-options.ts';
import { objectWith, secret } from '../../options/value-rule.ts';
import { BoundedMap } from '../values/bounded-map.ts';
import { decryptValue, encryptValue, keyIdOf, type ValuePlace, type WrappingKey } from './encrypted-value.ts';
import { KEY_BYTES, type NamedKey, parseKeyList } from './key-list.ts';

/** Key-encryption keys that a service keeps: the settings contain wrapped keys, and the service unwraps them at startup. */
export interface KeyWrapping {
  /** Encrypts a new key: `kit data-keys generate`. */
  readonly wrapKey: (key: Uint8Array, id: string) => Promise<Uint8Array>;
  /** Decrypts a key of DATA_KEYS or DATA_SEARCH_KEYS, once per process. */
  readonly unwrapKey: (wrapped: Uint8Array, id: string) => Promise<Uint8Array>;
}

/** What a search value is computed from, besides the value itself. */
export interface SearchPlace extends Omit<ValuePlace, 'key'> {
  /** The value of the column that separates tenants; null where the declaration names none. */
  readonly tenant: string | null;
}

export interface DataKeySettings {
  /** DATA_KEYS: the first encrypts, all decrypt. */
  readonly keys: string | undefined;
  /** DATA_SEARCH_KEYS: the first is written, all are searched. */
  readonly searchKeys?: string | undefined;
  /** Unwraps the keys of the settings, where a KMS or Vault wrapped them. */
  readonly wrapping?: Pick<KeyWrapping, 'unwrapKey'> | undefined;
}

const aSecret = secret('a string such as "id:key"', (value: unknown) => value === undefined || typeof value === 'string');
const rules: OptionRules<DataKeySettings> = { keys: aSecret, searchKeys: aSecret, wrapping: objectWith('{ unwrapKey }', 'unwrapKey') };

/** Without, the search value of a row costs two HMACs more. One entry per column and tenant in use. */
const SEARCH_KEYS_MAX = 10_000;

/** The keys of encrypted columns. They are never part of what is printed or logged. */
export class DataKeys {
  readonly #keys: readonly WrappingKey[];
  readonly #search: readonly NamedKey[];
  readonly #searchKeys = new BoundedMap<string, Buffer>(SEARCH_KEYS_MAX);

  constructor(keys: readonly NamedKey[], search: readonly NamedKey[]) {
    // What wraps data keys does nothing else, also where a setting is used twice.
    this.#keys = keys.map(({ id, bytes }) => ({ id, bytes: derived(bytes, ['kit wrap', id]) }));
    this.#search = search;
  }

  /** The ids of DATA_KEYS. The first encrypts. */
  get ids(): readonly string[] {
    return this.#keys.map(({ id }) => id);
  }

  /** The ids of DATA_SEARCH_KEYS. The first is written. */
  get searchIds(): readonly string[] {
    return this.#search.map(({ id }) => id);
  }

  encrypt(place: ValuePlace, plaintext: Uint8Array): string {
    const [key] = this.#keys;
    if (key === undefined) throw new Error(`"${place.column}" of "${place.table}" is encrypted, and DATA_KEYS is empty.`);
    return encryptValue(key, place, plaintext);
  }

  decrypt(place: ValuePlace, value: unknown): Buffer {
    return decryptValue((id) => this.#keys.find((each) => each.id === id), place, value);
  }

  /** Whether the first key encrypted the value. */
  isCurrent(value: string): boolean {
    return keyIdOf(value) === this.#keys[0]?.id;
  }

  /** The search values of a plaintext: that of the first key first. */
  searchValues(place: SearchPlace, plaintext: Uint8Array): [string, ...string[]] {
    const values = this.#search.map(
      (key) => `${key.id}.${createHmac('sha256', this.#searchKeyOf(key, place)).update(plaintext).digest('base64url')}`,
    );
    if (values[0] === undefined) throw new Error(`"${place.column}" of "${place.table}" can be searched, and DATA_SEARCH_KEYS is empty.`);
    return values as [string, ...string[]];
  }

  #searchKeyOf({ id, bytes }: NamedKey, { table, column, tenant }: SearchPlace): Buffer {
    const name = ['kit search', id, table, column, tenant];
    const cached = JSON.stringify(name);
    let key = this.#searchKeys.get(cached);
    if (key === undefined) this.#searchKeys.set(cached, (key = derived(bytes, name)));
    return key;
  }
}

/** Reads the keys of encrypted columns: `id:key` entries, separated by commas. All problems are reported together, without the keys. */
export async function readDataKeys(settings: DataKeySettings): Promise<DataKeys> {
  const { keys, searchKeys, wrapping } = readOptions('dataKeys', settings, rules);
  const faults: string[] = [];
  const lists = { DATA_KEYS: keys, DATA_SEARCH_KEYS: searchKeys };
  const [wrap = [], search = []] = await Promise.all(
    Object.entries(lists).map(async ([setting, text]) => {
      const parsed = parseKeyList(setting, text, faults);
      const opened = wrapping === undefined ? parsed : await Promise.all(parsed.map(async (key) => unwrapped(setting, key, wrapping)));
      for (const { id, bytes } of opened)
        if (bytes.length !== KEY_BYTES) faults.push(`The key "${id}" of ${setting} has ${bytes.length} bytes instead of ${KEY_BYTES}.`);
      return opened;
    }),
  );
  if (faults.length > 0) throw new TypeError(faults.join(' '));
  return new DataKeys(wrap, search);
}

async function unwrapped(setting: string, { id, bytes }: NamedKey, { unwrapKey }: Pick<KeyWrapping, 'unwrapKey'>): Promise<NamedKey> {
  try {
    return { id, bytes: await unwrapKey(bytes, id) };
  } catch (cause) {
    throw new Error(`The key "${id}" of ${setting} could not be unwrapped: ${(cause as Error).message}`, { cause });
  }
}

function derived(key: Uint8Array, name: readonly (string | null)[]): Buffer {
  return Buffer.from(hkdfSync('sha256', key, '', JSON.stringify(name), KEY_BYTES));
}
