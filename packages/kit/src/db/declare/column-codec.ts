import { decimalForm, parseDecimal } from '../values/decimal.ts';
import { dbErrors } from '../errors.ts';
import { keyIdOf } from '../sealing/encrypted-value.ts';
import { EncryptedParameter } from '../sealing/keyed-parameter.ts';
import { plaintextBytes } from './encrypted-column.ts';
import { JsonParameter, jsonText } from '../values/json-parameter.ts';
import { isStorableText, assertStorableJson } from '../values/storable-text.ts';
import type { ColumnDefinition } from './table-definition.ts';
import { timestampText } from '../values/timestamp.ts';
import { isUuid } from '../values/uuid.ts';

export type ColumnEncoder = (value: unknown) => unknown;

const INT_MIN = -2_147_483_648;
const INT_MAX = 2_147_483_647;
const BIGINT_MIN = -(2n ** 63n);
const BIGINT_MAX = 2n ** 63n - 1n;

/** What is wrong with a value, as the end of a sentence that starts with the column's name. */
class Unfit {
  readonly reason: string;

  constructor(reason: string) {
    this.reason = reason;
  }
}

type Check = (value: unknown, column: ColumnDefinition) => unknown;

const checks: Readonly<Record<ColumnDefinition['kind'], Check>> = {
  uuid: (value) => (typeof value === 'string' && isUuid(value) ? value.toLowerCase() : new Unfit('must be a UUID')),
  text: checkText,
  enum: (value, { values = [] }) =>
    typeof value === 'string' && values.includes(value) ? value : new Unfit(`must be one of ${values.join(', ')}`),
  int: (value) =>
    typeof value === 'number' && Number.isInteger(value) && value >= INT_MIN && value <= INT_MAX
      ? value + 0
      : new Unfit('must be a 32-bit integer'),
  bigint: (value) =>
    typeof value === 'bigint' && value >= BIGINT_MIN && value <= BIGINT_MAX ? value : new Unfit('must be a bigint of 64 bits'),
  float: (value) => (typeof value === 'number' && Number.isFinite(value) ? value + 0 : new Unfit('must be a finite number')),
  bool: (value) => (typeof value === 'boolean' ? value : new Unfit('must be true or false')),
  decimal: (value, { precision = 0, scale = 0 }) =>
    (typeof value === 'string' ? parseDecimal(value, scale, precision) : undefined) ?? new Unfit(decimalForm(precision, scale)),
  timestamp: (value) => (value instanceof Date ? timestampText(value) : new Unfit('must be a Date')),
  date: (value) => (typeof value === 'string' && isCalendarDate(value) ? value : new Unfit('must be a date of the form 2026-02-28')),
  json: (value) => {
    assertStorableJson(jsonText(value));
    return new JsonParameter(value);
  },
  bytes: (value) => (value instanceof Uint8Array ? value : new Unfit('must be bytes (Uint8Array)')),
  array: (value, { of }) => {
    if (!Array.isArray(value) || of === undefined) return new Unfit('must be an array');
    const items = value.map((item: unknown) => checks[of.kind](item, of));
    const unfit = items.find((item) => item instanceof Unfit);
    return unfit === undefined ? items : new Unfit(`has an element that ${unfit.reason}`);
  },
};

function checkText(value: unknown, { max }: ColumnDefinition): unknown {
  if (typeof value !== 'string') return new Unfit('must be a string');
  if (!isStorableText(value)) return new Unfit('must not contain U+0000 or half of a surrogate pair');
  if (max !== undefined && value.length > max && codePoints(value) > max) return new Unfit(`must have at most ${max} characters`);
  return value;
}

export function codePoints(text: string): number {
  let count = 0;
  for (const _ of text) count++;
  return count;
}

export function isCalendarDate(text: string): boolean {
  if (!/^\d{4}-\d\d-\d\d$/.test(text) || text.startsWith('0000')) return false;
  const time = Date.parse(`${text}T00:00:00Z`);
  return !Number.isNaN(time) && new Date(time).toISOString().startsWith(text);
}

/**
 * Turns a value of code into a statement parameter, in the one spelling both databases give back, or refuses it with a
 * sentence. In a column that cannot be NULL, `null` is JSON's own null.
 */
export function columnEncoder(name: string, column: ColumnDefinition): ColumnEncoder {
  const check = checks[column.kind];
  return (value) => {
    if (value === null || value === undefined) {
      if (column.nullable) return null;
      if (column.kind === 'json' && value === null) return new JsonParameter(null);
      throw dbErrors.value_not_storable({ detail: `${name} must not be null.` });
    }
    const encoded = check(value, column);
    if (encoded instanceof Unfit) throw dbErrors.value_not_storable({ detail: `${name} ${encoded.reason}.` });
    return encoded;
  };
}

/** Why a value does not fit its column, or undefined. */
export function valueFault(value: unknown, column: ColumnDefinition): string | undefined {
  try {
    const encoded = checks[column.kind](value, column);
    return encoded instanceof Unfit ? encoded.reason : undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

/** Like {@link columnEncoder}, for a column that is stored encrypted: `column` says what its plaintext must be. */
export function encryptedEncoder(name: string, column: ColumnDefinition): ColumnEncoder {
  const encode = columnEncoder(name, column);
  return (value) => {
    const encoded = encode(value);
    if (encoded === null) return null;
    if (typeof value === 'string' && keyIdOf(value) !== undefined)
      throw dbErrors.value_not_storable({ detail: `${name} must be the plaintext: reveal() the value of the other row first.` });
    return new EncryptedParameter(plaintextBytes(column.kind, value));
  };
}
