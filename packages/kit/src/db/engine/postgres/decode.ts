import pg from 'pg';
import { jsonValue } from '../../values/json-value.ts';

export const INT8 = 20;

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
  [114, jsonValue],
  [3802, jsonValue],
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
