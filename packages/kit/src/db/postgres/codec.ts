import pg from 'pg';
import { dbErrors } from '../errors.ts';
import { JsonParameter, jsonText } from '../json-parameter.ts';
import { assertStorableJson, assertStorableText } from '../storable-text.ts';
import { timestampText } from '../timestamp.ts';

export const INT8 = 20;

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

type Parser = (text: string) => unknown;

/** The driver's own readers, by type number; its types know only some of the numbers. */
const driverParser = pg.types.getTypeParser as (oid: number, format?: string) => Parser;
const parseTextArray = driverParser(1009) as (text: string) => (string | null)[];
const parseTimestamptz = driverParser(1184);
const parseBytea = driverParser(17) as (text: string) => Buffer;

function timestamp(text: string): unknown {
  // With a UTC session (the usual server setting) the text is ISO 8601 but for two characters.
  if (text.length >= 22 && text.endsWith('+00')) return new Date(`${text.slice(0, 10)}T${text.slice(11, -3)}Z`);
  return parseTimestamptz(text);
}

const arrayOf =
  (parse: Parser): Parser =>
  (text) =>
    parseTextArray(text).map((item) => (item === null ? null : parse(item)));

const same: Parser = (text) => text;

/** Where the driver's own reading would lose something: bigint and numeric digits, days shifted by time zones. */
const parsers = new Map<number, Parser>([
  [INT8, BigInt],
  [17, (text) => new Uint8Array(parseBytea(text))],
  [1082, same],
  [1184, timestamp],
  [1700, same],
  [1016, arrayOf(BigInt)],
  [1182, arrayOf(same)],
  [1185, arrayOf(timestamp)],
  [1231, arrayOf(same)],
]);

/** 2026-02-28 10:00:00.5+00 → 2026-02-28T10:00:00.500Z */
function wireTimestamp(text: string): unknown {
  if (text.length < 22 || !text.endsWith('+00')) return (parseTimestamptz(text) as Date).toISOString();
  return `${text.slice(0, 10)}T${text.slice(11, 19)}.${text.slice(20, -3).padEnd(3, '0')}Z`;
}

/** To the form that columns have in JSON. */
const wireParsers = new Map<number, Parser>([
  ...parsers,
  [INT8, same],
  [17, (text) => parseBytea(text).toString('base64')],
  [1184, wireTimestamp],
  [1016, arrayOf(same)],
  [1185, arrayOf(wireTimestamp)],
]);

/** For one pool, never for the process: other users of the driver keep its defaults. */
export const postgresTypes = typesOf(parsers);
export const postgresWireTypes = typesOf(wireParsers);

function typesOf(own: ReadonlyMap<number, Parser>): pg.CustomTypesConfig {
  return {
    getTypeParser: ((oid: number, format?: string) =>
      (format === 'binary' ? undefined : own.get(oid)) ?? driverParser(oid, format)) as pg.CustomTypesConfig['getTypeParser'],
  };
}
