import { dbErrors } from '../errors.ts';
import { JsonParameter, jsonText } from './json-parameter.ts';
import { assertStorableJson, assertStorableText } from './storable-text.ts';
import { timestampText } from './timestamp.ts';

/** Binds a JavaScript value of a hand-built query. Arrays become SQL arrays, plain objects JSON. */
export function encodePostgres(value: unknown): unknown {
  switch (typeof value) {
    case 'string':
      return assertStorableText(value);
    case 'number':
      if (!Number.isFinite(value)) throw dbErrors.value_not_storable({ detail: 'A number must be finite.' });
      return value;
    case 'bigint':
      return value.toString();
    case 'boolean':
      return value;
    case 'undefined':
      return null;
    case 'object':
      if (value === null || value instanceof Uint8Array) return value;
      if (value instanceof Date) return timestampText(value);
      if (Array.isArray(value)) return arrayLiteral(value);
      return assertStorableJson(jsonText(value instanceof JsonParameter ? value.value : value));
    default:
      throw new TypeError(`A ${typeof value} cannot be a query parameter.`);
  }
}

/** Every element quoted: no element can be read as a delimiter, a brace or the word NULL. */
function arrayLiteral(items: readonly unknown[]): string {
  const elements = items.map((item) => {
    if (item === null || item === undefined) return 'NULL';
    const encoded = encodePostgres(item);
    const text = encoded instanceof Uint8Array ? `\\x${Buffer.from(encoded).toString('hex')}` : String(encoded);
    return `"${text.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`;
  });
  return `{${elements.join(',')}}`;
}
