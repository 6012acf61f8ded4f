import type { ColumnSettings } from '../../db/declare/column.ts';
import type { Comparable } from '../../db/declare/comparable.ts';
import { scaledDigits } from '../../db/declare/comparable.ts';
import type { Dialect } from '../../db/dialect.ts';
import type { ColumnDefinition } from '../../db/declare/table-definition.ts';
import type { MetricKind } from '../declare/metric.ts';

/** Parts of a timestamp or date that rows can be grouped by, in UTC. */
export const buckets = ['hour', 'day', 'week', 'month', 'year'] as const;
export type Bucket = (typeof buckets)[number];

/** The first moment of the bucket a value is in, as text: `2026-02-01T00:00:00.000Z`, of a date column `2026-02-01`. */
export function bucketSql(sql: string, kind: 'timestamp' | 'date', bucket: Bucket, dialect: Dialect): string {
  if (dialect === 'postgres') {
    const local = kind === 'timestamp' ? `${sql} at time zone 'UTC'` : `${sql}::timestamp`;
    const format = kind === 'timestamp' ? `YYYY-MM-DD"T"HH24:MI:SS".000Z"` : 'YYYY-MM-DD';
    return `to_char(date_trunc('${bucket}', ${local}), '${format}')`;
  }
  const day = {
    hour: `substr(${sql}, 1, 10)`,
    day: `substr(${sql}, 1, 10)`,
    // Six days back, then on to the next Monday: the Monday of the week.
    week: `date(substr(${sql}, 1, 10), '-6 days', 'weekday 1')`,
    month: `substr(${sql}, 1, 7) || '-01'`,
    year: `substr(${sql}, 1, 4) || '-01-01'`,
  }[bucket];
  if (kind === 'date') return day;
  return bucket === 'hour' ? `substr(${sql}, 1, 13) || ':00:00.000Z'` : `${day} || 'T00:00:00.000Z'`;
}

/** How a metric is read from the database, and made of what was read. Everything comes as text, so that no digit is lost. */
export interface MetricPlan {
  readonly columns: readonly string[];
  readonly value: (read: readonly (string | null)[]) => unknown;
}

export function metricPlan(kind: MetricKind, sql: string, column: ColumnDefinition | undefined, dialect: Dialect): MetricPlan {
  if (column === undefined) return { columns: [asText('count(*)', dialect)], value: ([read]) => Number(read) };
  switch (kind) {
    case 'countDistinct':
      return { columns: [asText(`count(distinct ${sql})`, dialect)], value: ([read]) => Number(read) };
    case 'sum':
    case 'avg':
      return sumPlan(kind, sql, column, dialect);
    default:
      return extremePlan(kind as 'min' | 'max', sql, column, dialect);
  }
}

function asText(sql: string, dialect: Dialect): string {
  return dialect === 'postgres' ? `(${sql})::text` : `cast(${sql} as text)`;
}

/** Sums are exact: PostgreSQL's own are, SQLite's are put together from sums of parts that cannot overflow 64 bits. */
function sumPlan(kind: 'sum' | 'avg', sql: string, column: ColumnDefinition, dialect: Dialect): MetricPlan {
  const counted = asText(`count(${sql})`, dialect);
  if (column.kind === 'float') {
    const total = dialect === 'postgres' ? asText(`sum(${sql})`, dialect) : `cast(format('%!.17g', sum(${sql})) as text)`;
    return { columns: [total, counted], value: ([read, rows]) => ratio(kind, read, Number(rows)) };
  }
  const scale = column.kind === 'decimal' ? (column.scale ?? 0) : 0;
  const parts = dialect === 'postgres' ? [asText(`sum(${sql})`, dialect)] : sqliteParts(sql, column);
  const total = (read: readonly (string | null)[]): bigint | null =>
    read[0] === null ? null : dialect === 'postgres' ? unscaled(read[0] as string, scale) : joined(read as readonly string[]);
  return {
    columns: [...parts, counted],
    value: (read) => {
      const sum = total(read.slice(0, -1));
      if (sum === null) return null;
      const rows = BigInt(read.at(-1) as string);
      if (kind === 'sum') return column.kind === 'int' ? safeNumber(sum) : scaledText(sum, scale);
      return column.kind === 'decimal'
        ? scaledText(divided(sum * 10n ** BigInt(AVG_DIGITS), rows), scale + AVG_DIGITS)
        : Number(sum) / Number(rows);
    },
  };
}

/** Digits of a mean beyond the scale of its column. */
const AVG_DIGITS = 4;

function ratio(kind: 'sum' | 'avg', read: string | null | undefined, rows: number): number | null {
  if (rows === 0) return null;
  // SQLite adds up to an infinity, or to NULL where there are two of them; PostgreSQL refuses: see isSumOverflow.
  const total = Number(read ?? Number.NaN);
  if (!Number.isFinite(total)) throw new SumTooLarge('The sum does not fit a JSON number.');
  return kind === 'sum' ? total : total / rows;
}

/** Whether PostgreSQL refused a statement because a sum of floats went out of range. */
export function isSumOverflow(error: unknown): boolean {
  return (error as { readonly code?: unknown } | null)?.code === '22003';
}

/** Nine decimal digits: a billion rows of them still fit 64 bits. */
const PART = 1_000_000_000n;
const PART_DIGITS = 9;

/** Sums of the digits nine by nine, the highest first. */
function sqliteParts(sql: string, column: ColumnDefinition): string[] {
  if (column.kind !== 'decimal') return [`${sql} / ${PART}`, `${sql} % ${PART}`].map((part) => asText(`sum(${part})`, 'sqlite'));
  const { precision = 0, scale = 0 } = column;
  const count = Math.ceil(precision / PART_DIGITS);
  const width = count * PART_DIGITS;
  const padded = `substr('${'0'.repeat(width)}' || ltrim(${scaledDigits(sql, scale)}, '-'), -${width})`;
  const sign = `iif(substr(${sql}, 1, 1) = '-', -1, 1)`;
  return Array.from({ length: count }, (_, index) =>
    asText(`sum(${sign} * cast(substr(${padded}, ${index * PART_DIGITS + 1}, ${PART_DIGITS}) as integer))`, 'sqlite'),
  );
}

function joined(parts: readonly string[]): bigint {
  return parts.reduce((sum, part) => sum * PART + BigInt(part), 0n);
}

function unscaled(text: string, scale: number): bigint {
  const [whole = '0', fraction = ''] = text.split('.');
  return BigInt(`${whole}${fraction.padEnd(scale, '0').slice(0, scale)}`);
}

/** Rounded half away from zero. */
function divided(value: bigint, by: bigint): bigint {
  const twice = 2n * value;
  return (twice + (value < 0n ? -by : by)) / (2n * by);
}

export function scaledText(value: bigint, scale: number): string {
  if (scale === 0) return value.toString();
  const digits = (value < 0n ? -value : value).toString().padStart(scale + 1, '0');
  return `${value < 0n ? '-' : ''}${digits.slice(0, -scale)}.${digits.slice(-scale)}`;
}

/** A sum that a JSON number cannot hold. */
export class SumTooLarge extends Error {
  override readonly name = 'SumTooLarge';
}

function safeNumber(value: bigint): number {
  const number = Number(value);
  if (!Number.isSafeInteger(number)) throw new SumTooLarge(`The sum ${value} does not fit a JSON number.`);
  return number;
}

function extremePlan(kind: 'min' | 'max', sql: string, column: ColumnDefinition, dialect: Dialect): MetricPlan {
  const plain = ([read]: readonly (string | null)[]) => read ?? null;
  const number = ([read]: readonly (string | null)[]) => (read === null || read === undefined ? null : Number(read));
  if (column.kind === 'decimal' && dialect === 'sqlite') return sqliteExtreme(kind, sql, column);
  switch (column.kind) {
    case 'int':
    case 'float':
      return { columns: [asText(`${kind}(${sql})`, dialect)], value: number };
    case 'timestamp':
      return {
        columns: [
          dialect === 'postgres' ? `to_char(${kind}(${sql}) at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')` : `${kind}(${sql})`,
        ],
        value: plain,
      };
    case 'text':
      return { columns: [dialect === 'postgres' ? `${kind}(${sql} collate "C")` : `${kind}(${sql})`], value: plain };
    default:
      return { columns: [asText(`${kind}(${sql})`, dialect)], value: plain };
  }
}

/** SQLite keeps decimals as text: the digits, filled up to one width, compare as the absolute values do. */
function sqliteExtreme(kind: 'min' | 'max', sql: string, { precision = 0, scale = 0 }: ColumnDefinition): MetricPlan {
  const width = precision + 1;
  const padded = `substr('${'0'.repeat(width)}' || ltrim(${scaledDigits(sql, scale)}, '-'), -${width})`;
  const isNegative = `substr(${sql}, 1, 1) = '-'`;
  const other = kind === 'min' ? 'max' : 'min';
  return {
    columns: [`${other}(iif(${isNegative}, ${padded}, null))`, `${kind}(iif(${isNegative}, null, ${padded}))`],
    value: ([negative, positive]) => {
      const below = negative === null || negative === undefined ? null : -BigInt(negative);
      const above = positive === null || positive === undefined ? null : BigInt(positive);
      const chosen = kind === 'min' ? (below ?? above) : (above ?? below);
      return chosen === null ? null : scaledText(chosen, scale);
    },
  };
}

export const asIs = (value: unknown) => value as Comparable;

/** A wire value in a form that compares as the column does. Means have more digits than their column; those of bigints are numbers. */
export function valueOf({ kind }: Pick<ColumnSettings, 'kind'>): (value: unknown) => Comparable {
  if (kind === 'decimal' || kind === 'bigint')
    return (value) => {
      if (typeof value === 'number') return value;
      const [whole = '', fraction = ''] = String(value).split('.');
      return BigInt(`${whole}${fraction.padEnd(30, '0')}`);
    };
  return kind === 'bool' ? Number : asIs;
}
