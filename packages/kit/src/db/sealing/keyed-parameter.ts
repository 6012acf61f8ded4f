import type { Dialect } from '../dialect.ts';
import type { DataKeys, SearchPlace } from './data-keys.ts';
import { EncryptedValueUnreadable, type ValuePlace } from './encrypted-value.ts';

/** A parameter that the handle computes with the data keys of its database, right before the statement is sent. */
export abstract class KeyedParameter {
  abstract resolve(keys: DataKeys, dialect: Dialect): unknown;
}

/** The plaintext of an encrypted column. It becomes a parameter when the row that it belongs to is known. */
export class EncryptedParameter extends KeyedParameter {
  readonly #plaintext: Uint8Array;
  #place: ValuePlace | undefined;
  #kept: string | undefined;

  constructor(plaintext: Uint8Array) {
    super();
    this.#plaintext = plaintext;
  }

  /** `kept`: the value that the row has. It stays where the plaintext is the same. */
  bind(place: ValuePlace, kept?: string): void {
    this.#place = place;
    this.#kept = kept;
  }

  /** The search value of the same plaintext. */
  search(place: SearchPlace, normalize: (plaintext: Uint8Array) => Uint8Array): SearchParameter {
    return new SearchParameter(place, [normalize(this.#plaintext)], 'value');
  }

  #isKept(keys: DataKeys, place: ValuePlace): boolean {
    try {
      return keys.decrypt(place, this.#kept).equals(this.#plaintext);
    } catch (error) {
      if (error instanceof EncryptedValueUnreadable) return false;
      throw error;
    }
  }

  override resolve(keys: DataKeys): string {
    const place = this.#place;
    if (place === undefined) throw new Error('An encrypted value can only be written together with the primary key of its row.');
    return this.#kept !== undefined && this.#isKept(keys, place) ? this.#kept : keys.encrypt(place, this.#plaintext);
  }
}

/** Plaintexts that an encrypted column is searched for, or the search value of one that is written. */
export class SearchParameter extends KeyedParameter {
  readonly #place: SearchPlace;
  readonly #plaintexts: readonly Uint8Array[];
  readonly #form: 'value' | 'list';

  constructor(place: SearchPlace, plaintexts: readonly Uint8Array[], form: 'value' | 'list') {
    super();
    this.#place = place;
    this.#plaintexts = plaintexts;
    this.#form = form;
  }

  override resolve(keys: DataKeys, dialect: Dialect): unknown {
    const values = this.#plaintexts.flatMap((each) => keys.searchValues(this.#place, each));
    if (this.#form === 'value') return values[0];
    return dialect === 'postgres' ? values : JSON.stringify(values);
  }
}

/** The parameters of a statement, with values in place of those that need keys. */
export function withoutKeyed(parameters: readonly unknown[], keys: DataKeys | undefined, dialect: Dialect): readonly unknown[] {
  // Every statement comes by: lists without such parameters are not copied.
  if (!parameters.some((each) => each instanceof KeyedParameter)) return parameters;
  if (keys === undefined)
    throw new Error('The table has encrypted columns, and the database was opened without data keys. Set DATA_KEYS, or pass dataKeys.');
  return parameters.map((each) => (each instanceof KeyedParameter ? each.resolve(keys, dialect) : each));
}
