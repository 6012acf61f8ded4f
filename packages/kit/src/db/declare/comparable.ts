import { parseDecimal } from '../values/decimal.ts';
import type { Dialect } from '../dialect.ts';
import type { ColumnDefinition } from './table-definition.ts';

/**
 * SQL expressions that compare, one after the other, as the values of a column do. One for every column but a decimal of more than 18
 * digits on SQLite, which keeps decimals as text: there digits are compared as 64-bit integers, exactly.
 */
export function comparableSql(sql: string, column: ColumnDefinition, dialect: Dialect): readonly string[] {
  if (column.kind !== 'decimal' || dialect === 'postgres') return [sql];
  const { precision = 0, scale = 0 } = column;
  const digits = scaledDigits(sql, scale);
  if (precision <= CHUNK) return [`cast(${digits} as integer)`];
  const width = chunksOf(precision) * CHUNK;
  const padded = `substr('${'0'.repeat(width)}' || ltrim(${digits}, '-'), -${width})`;
  const sign = `iif(substr(${sql}, 1, 1) = '-', -1, 1)`;
  return Array.from(
    { length: chunksOf(precision) },
    (_, index) => `${sign} * cast(substr(${padded}, ${index * CHUNK + 1}, ${CHUNK}) as integer)`,
  );
}

/** The parameters for {@link comparableSql} of a value in its encoded form. */
export function comparableParameters(encoded: unknown, column: ColumnDefinition, dialect: Dialect): readonly unknown[] {
  if (column.kind !== 'decimal' || dialect === 'postgres') return [encoded];
  const { precision = 0 } = column;
  const digits = String(encoded).replace('.', '');
  if (precision <= CHUNK) return [BigInt(digits)];
  const sign = digits.startsWith('-') ? -1n : 1n;
  const padded = digits.replace('-', '').padStart(chunksOf(precision) * CHUNK, '0');
  return Array.from({ length: chunksOf(precision) }, (_, index) => sign * BigInt(padded.slice(index * CHUNK, (index + 1) * CHUNK)));
}

/** Decimal digits that always fit a 64-bit integer. */
const CHUNK = 18;

function chunksOf(precision: number): number {
  return Math.ceil(precision / CHUNK);
}

/** The digits of a decimal at its full scale, also when a statement by hand stored fewer. */
export function scaledDigits(sql: string, scale: number): string {
  if (scale === 0) return sql;
  const given = `iif(instr(${sql}, '.') = 0, 0, length(${sql}) - instr(${sql}, '.'))`;
  return `replace(${sql}, '.', '') || substr('${'0'.repeat(scale)}', 1 + ${given})`;
}

/** A value of code in a form that JavaScript compares as the databases do. */
export type Comparable = string | number | bigint;

/** `value` as rows have it. Bytes compare only for equality; JSON and arrays do not compare. */
export function comparableOf(value: unknown, column: ColumnDefinition): Comparable {
  switch (column.kind) {
    case 'decimal':
      return BigInt((parseDecimal(value as string, column.scale ?? 0) ?? '').replace('.', ''));
    case 'timestamp':
      return (value as Date).getTime();
    case 'bool':
      return Number(value);
    case 'bytes':
      return Buffer.from(value as Uint8Array).toString('hex');
    case 'uuid':
      return (value as string).toLowerCase();
    default:
      return value as Comparable;
  }
}

/** Negative, zero or positive. Text goes by code point, as SQLite and PostgreSQL's "C" collation do. */
export function compareValues(a: Comparable, b: Comparable): number {
  if (typeof a === 'string' && typeof b === 'string') return compareText(a, b);
  return a < b ? -1 : a > b ? 1 : 0;
}

function compareText(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let index = 0; index < length; index++) {
    const left = a.charCodeAt(index);
    const right = b.charCodeAt(index);
    if (left === right) continue;
    // JavaScript orders by 16-bit units: surrogates (code points beyond U+FFFF) would come before U+E000–U+FFFF.
    return codePointRank(left) - codePointRank(right);
  }
  return a.length - b.length;
}

function codePointRank(unit: number): number {
  return unit >= 0xd800 && unit <= 0xdfff ? unit + 0x1_0000 : unit;
}
