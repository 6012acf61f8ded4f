import { type OptionRules, readOptions } from '../../options/read-options.ts';
import { aFunction, filledText, oneOf } from '../../options/value-rule.ts';
import { jsonText } from '../values/json-parameter.ts';
import type { ColumnKind } from './table-definition.ts';

declare const plaintext: unique symbol;

/** A value of an encrypted column as rows contain it: the ciphertext. `reveal()` returns the plaintext. */
export interface Encrypted<T> {
  readonly [plaintext]: T;
}

/** The value of an encrypted column in a row. */
export type EncryptedOf<S> = unknown extends S ? Encrypted<S> : null extends S ? Encrypted<Exclude<S, null>> | null : Encrypted<S>;

/** The value that an insert or an update takes. */
export type PlainOf<S> = S extends Encrypted<infer T> ? T : S;

export interface EncryptedOptions<S = unknown> {
  /** The stable id of the column inside its values. Default: the name of the column. After a rename, set the old name. */
  readonly id?: string;
  /** Adds a column with an HMAC of the value, so that rows can be found by it: `eq`, `in`, unique. It reveals which rows have the same value. */
  readonly search?: 'equality';
  /** The column of the tenant: equal values of two tenants get different search values. A search then needs the tenant. */
  readonly tenant?: string;
  /** Values that are equal after it are found by each other. Default: the value itself. */
  readonly normalize?: (value: Exclude<S, null>) => string;
  /**
   * The plaintext column of the table that this one takes the place of. Whatever writes that column writes this one, too; clients cannot send it. `kit migrate make`
   * writes the steps: add this column, encrypt the rows, drop the other one.
   */
  readonly replaces?: string;
}

/** What a declaration says about encryption. */
export type EncryptedSettings = EncryptedOptions<never>;

const rules: OptionRules<EncryptedOptions> = {
  id: filledText,
  search: oneOf('equality'),
  tenant: filledText,
  normalize: aFunction,
  replaces: filledText,
};

export function encryptedSettings<S>(options: EncryptedOptions<S>): EncryptedSettings {
  return readOptions('encrypted()', options, rules as OptionRules<EncryptedOptions<S>>);
}

/** The column that contains the search values of an encrypted column. */
export function searchColumnName(column: string): string {
  return `${column}_search`;
}

/** A value of code as the bytes that are encrypted. Text and JSON are UTF-8. */
export function plaintextBytes(kind: ColumnKind, value: unknown): Uint8Array {
  if (kind === 'bytes') return value as Uint8Array;
  return Buffer.from(kind === 'json' ? jsonText(value) : (value as string));
}

export function plaintextValue(kind: ColumnKind, bytes: Uint8Array): unknown {
  if (kind === 'bytes') return new Uint8Array(bytes);
  const text = Buffer.from(bytes).toString();
  return kind === 'json' ? (JSON.parse(text) as unknown) : text;
}

/** The bytes that a search value is computed from. */
export function normalizedBytes({ normalize }: EncryptedSettings, kind: ColumnKind, bytes: Uint8Array): Uint8Array {
  return normalize === undefined ? bytes : Buffer.from(normalize(plaintextValue(kind, bytes) as never));
}
