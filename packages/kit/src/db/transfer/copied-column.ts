import { type ColumnEncoder, columnEncoder } from '../declare/column-codec.ts';
import type { ColumnDefinition } from '../declare/table-definition.ts';

/** A column of a table that is copied. */
export interface CopiedColumn {
  readonly name: string;
  readonly definition: ColumnDefinition;
  /** From a value as SQLite or PostgreSQL returns it to a parameter for PostgreSQL. Throws where the value does not fit. */
  readonly encode: ColumnEncoder;
}

/** Types of PostgreSQL as `format_type` prints them. Tables that a module creates with SQL of its own have types that no column of a model has. */
export const POSTGRES_KINDS: Readonly<Record<string, ColumnDefinition['kind']>> = {
  uuid: 'uuid',
  text: 'text',
  'character varying': 'text',
  smallint: 'int',
  integer: 'int',
  bigint: 'bigint',
  real: 'float',
  'double precision': 'float',
  boolean: 'bool',
  date: 'date',
  json: 'json',
  jsonb: 'json',
  bytea: 'bytes',
};

/** What a column of this PostgreSQL type stores; undefined for types that the copy does not know. */
export function definitionOf(type: string, nullable: boolean): ColumnDefinition | undefined {
  if (type.endsWith('[]')) {
    const of = definitionOf(type.slice(0, -2), false);
    return of === undefined ? undefined : { kind: 'array', of, nullable };
  }
  const kind = POSTGRES_KINDS[type];
  if (kind !== undefined) return { kind, nullable };
  if (/^timestamp(\(\d\))? with(out)? time zone$/.test(type)) return { kind: 'timestamp', nullable };
  const varying = /^character varying\((\d+)\)$/.exec(type);
  if (varying !== null) return { kind: 'text', max: Number(varying[1]), nullable };
  const numeric = /^numeric\((\d+),(\d+)\)$/.exec(type);
  return numeric === null ? undefined : { kind: 'decimal', precision: Number(numeric[1]), scale: Number(numeric[2]), nullable };
}

export function copiedColumn(name: string, definition: ColumnDefinition): CopiedColumn {
  const encode = columnEncoder(name, definition);
  return { name, definition, encode: (value) => encode(inKind(value, definition)) };
}

/** SQLite returns columns that were declared with other types than those of models as it stores them: `1` for true, text for a timestamp. */
function inKind(value: unknown, { kind }: ColumnDefinition): unknown {
  if (value === null || value === undefined) return null;
  switch (kind) {
    case 'bool':
      return value === 0 || value === 0n ? false : value === 1 || value === 1n ? true : value;
    case 'timestamp':
      return typeof value === 'string' || value instanceof Date ? dateOf(value) : value;
    case 'bigint':
      return typeof value === 'number' && Number.isSafeInteger(value) ? BigInt(value) : value;
    case 'int':
    case 'float':
      return typeof value === 'bigint' ? Number(value) : value;
    case 'decimal':
      return typeof value === 'number' || typeof value === 'bigint' ? String(value) : value;
    default:
      return value;
  }
}

/** Text where it is not a timestamp: the encoder reports it with the name of the column. */
function dateOf(value: string | Date): Date | string {
  const date = new Date(value);
  return Number.isNaN(date.getTime()) ? String(value) : date;
}
