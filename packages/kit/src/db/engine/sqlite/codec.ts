import { dbErrors } from '../../errors.ts';
import { JsonParameter, jsonText } from '../../values/json-parameter.ts';
import { timestampText } from '../../values/timestamp.ts';
import { assertStorableJson, assertStorableText } from '../../values/storable-text.ts';
import { canonicalDecimal } from '../../values/decimal.ts';
import { jsonValue } from '../../values/json-value.ts';

export type SqliteValue = null | number | bigint | string | Uint8Array;
export type SqliteDecoder = (value: never) => unknown;

/** Binds a JavaScript value of a hand-built query. Columns decode by their declared type, see {@link decoderOf}. */
export function encodeSqlite(value: unknown): SqliteValue {
  switch (typeof value) {
    case 'string':
      return assertStorableText(value);
    case 'number':
      if (!Number.isFinite(value)) throw dbErrors.value_not_storable({ detail: 'A number must be finite.' });
      return value;
    case 'bigint':
      return value;
    case 'boolean':
      return value ? 1 : 0;
    case 'undefined':
      return null;
    case 'object':
      if (value === null || value instanceof Uint8Array) return value;
      if (value instanceof Date) return timestampText(value);
      return assertStorableJson(jsonText(value instanceof JsonParameter ? value.value : value));
    default:
      throw new TypeError(`A ${typeof value} cannot be a query parameter.`);
  }
}

const decoders: Readonly<Record<string, SqliteDecoder>> = {
  boolean: (value: number | bigint) => Number(value) !== 0,
  timestamp_text: (value: string) => new Date(value),
  json_text: jsonValue,
  array_text: (value: string) => JSON.parse(value) as unknown,
  array_text_big: (value: string) => (JSON.parse(value) as string[]).map(BigInt),
  array_text_timestamp: (value: string) => (JSON.parse(value) as string[]).map((item) => new Date(item)),
  bigint: (value: number | bigint) => BigInt(value),
};

/** Integers come as bigint when a statement reads any bigint column; its other columns go back to numbers. */
const toNumber: SqliteDecoder = (value: unknown) => (typeof value === 'bigint' ? Number(value) : value);

/**
 * The declared column type carries the codec: SQLite reports it through aliases, subqueries and RETURNING, so every
 * query decodes, not only generated ones. Expressions have no declared type and come back as SQLite has them.
 */
export function decoderOf(declared: string | null, readsBigints: boolean): SqliteDecoder | undefined {
  const type = declared?.toLowerCase() ?? '';
  const known = decoders[type];
  if (known !== undefined) return known;
  const decimal = /^decimal_text\(\d+,(\d+)\)$/.exec(type);
  if (decimal !== null) {
    const scale = Number(decimal[1]);
    return (value: unknown) => (typeof value === 'string' ? canonicalDecimal(value, scale) : value);
  }
  return readsBigints ? toNumber : undefined;
}

const wireDecoders: Readonly<Record<string, SqliteDecoder>> = {
  timestamp_text: isoTimestamp,
  array_text_big: (value: string) => (JSON.parse(value) as unknown[]).map(String),
  array_text_timestamp: (value: string) => (JSON.parse(value) as string[]).map(isoTimestamp),
  bigint: (value: number | bigint) => String(value),
  blob: (value: Uint8Array) => Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('base64'),
};

/** Like {@link decoderOf}, to the form that columns have in JSON. */
export function wireDecoderOf(declared: string | null, readsBigints: boolean): SqliteDecoder | undefined {
  return wireDecoders[declared?.toLowerCase() ?? ''] ?? decoderOf(declared, readsBigints);
}

/** The toolkit stores timestamps as JSON has them; a statement by hand may have stored another spelling. */
function isoTimestamp(text: string): string {
  return text.length === 24 && text.endsWith('Z') && text[10] === 'T' ? text : new Date(text).toISOString();
}
