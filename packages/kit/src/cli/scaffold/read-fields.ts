import type { ColumnDefinition } from '../../db/declare/table-definition.ts';
import { columnNameFault } from '../../db/declare/names.ts';

/** Kinds that a field of the command line can have, without arguments. */
const PLAIN = new Set(['uuid', 'int', 'bigint', 'float', 'bool', 'timestamp', 'date', 'json', 'text']);

export const FIELD_HELP = `name:kind, with a "?" at the end for an optional field. Kinds: text, text(200), int, bigint, decimal(10,2), float, bool, date,
timestamp, json, uuid, enum(open,done), ref(projects). Default: name:text(200)`;

/** Thrown for a field that cannot be read; the message says what to write. */
export class FieldRefused extends Error {}

/** Every field of the command line as a column, in their order: `title:text(200)`, `due:date?`, `project_id:ref(projects)`. */
export function readFields(fields: readonly string[]): Record<string, ColumnDefinition> {
  const columns: Record<string, ColumnDefinition> = {};
  for (const field of fields) {
    const [, name = '', kind = '', args, optional] = /^([a-z_][a-z0-9_]*):([a-z]+)(?:\(([^()]*)\))?(\?)?$/.exec(field) ?? [];
    if (name === '') throw new FieldRefused(`"${field}" is not a field. Write ${FIELD_HELP}.`);
    const fault = columnNameFault(name);
    if (fault !== undefined) throw new FieldRefused(`"${name}": ${fault}.`);
    if (Object.hasOwn(columns, name)) throw new FieldRefused(`The field "${name}" is given twice.`);
    columns[name] = { ...kindOf(field, kind, args), nullable: optional === '?' };
  }
  return columns;
}

function kindOf(field: string, kind: string, args: string | undefined): Omit<ColumnDefinition, 'nullable'> {
  const numbers = (args ?? '').split(',').map(Number);
  const words = (args ?? '').split(',').map((word) => word.trim());
  const [first = 0, second = 0] = numbers;
  if (kind === 'text' && args !== undefined && Number.isInteger(first) && first > 0) return { kind, max: first };
  if (kind === 'decimal' && numbers.length === 2 && numbers.every(Number.isInteger) && first > 0 && second <= first)
    return { kind, precision: first, scale: second };
  if (kind === 'enum' && args !== undefined && words.every((word) => word !== '')) return { kind, values: words };
  if (kind === 'ref' && /^[a-z_][a-z0-9_]*$/.test(args ?? ''))
    return { kind: 'uuid', references: { table: args ?? '', column: 'id', onDelete: 'restrict' } };
  if (PLAIN.has(kind) && args === undefined) return { kind: kind as ColumnDefinition['kind'] };
  throw new FieldRefused(`"${field}" has an unknown kind. Write ${FIELD_HELP}.`);
}
