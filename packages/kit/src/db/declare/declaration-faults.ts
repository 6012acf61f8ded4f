import { Column } from './column.ts';
import { tellingColumns } from './personal-column.ts';
import { encryptionFaults } from './search-columns.ts';
import { columnNameFault, tableNameFault } from './names.ts';
import type { Columns } from './rows.ts';
import { type ColumnKind, suggestion } from './table-definition.ts';
import { fullTextDefinition, indexDefinition, type ModelIndex, type ModelOptions } from './table-from-columns.ts';
import { fullTextFaults } from './full-text.ts';

export function declarationFaults(name: string, columns: Columns, primaryKey: readonly string[], options: ModelOptions): string[] {
  const faults: string[] = [];
  const fault = tableNameFault(name);
  if (fault !== undefined) faults.push(fault);
  const known = Object.keys(columns);
  for (const key of known) {
    const problem = columnNameFault(key) ?? columnFault(columns[key]);
    if (problem !== undefined) faults.push(`column "${key}": ${problem}`);
  }
  if (primaryKey.length === 0) faults.push('it has no primary key: add one, usually id: t.uuidv7().pk()');
  for (const key of primaryKey) {
    if (columns[key] === undefined) faults.push(`the primary key names an unknown column "${key}"${suggestion(key, known)}`);
    else if (columns[key].settings.nullable) faults.push(`column "${key}" is part of the primary key and cannot be nullable`);
  }
  faults.push(...indexFaults(name, known, options.indexes ?? []));
  const kinds = new Map(known.map((key) => [key, (columns[key] as Partial<Column<unknown>> | undefined)?.settings?.kind]));
  faults.push(
    ...fullTextFaults(
      (options.fullText ?? []).map((each) => fullTextDefinition(name, each)),
      kinds as ReadonlyMap<string, ColumnKind>,
    ),
  );
  if (known.every((key) => columns[key] instanceof Column)) faults.push(...encryptionFaults(columns, primaryKey, options));
  if (known.every((key) => columns[key] instanceof Column)) faults.push(...retentionFaults(columns, options));
  for (const key of Object.keys(options.checks ?? {}))
    if (columnNameFault(key) !== undefined) faults.push(`check "${key}" needs a snake_case name`);
  return faults;
}

function indexFaults(table: string, known: readonly string[], indexes: readonly ModelIndex[]): string[] {
  const faults: string[] = [];
  const names = new Set<string>();
  for (const index of indexes) {
    const { name } = indexDefinition(table, index);
    const columns = index.columns.map((column) => column.replace(/^-/, ''));
    if (columns.length === 0) faults.push('an index has no columns');
    if (new Set(columns).size !== columns.length) faults.push(`index "${name}" names a column twice`);
    for (const column of columns)
      if (!known.includes(column)) faults.push(`index "${name}" names an unknown column "${column}"${suggestion(column, known)}`);
    if (names.has(name)) faults.push(`there are two indexes "${name}": give one a name`);
    names.add(name);
  }
  return faults;
}

function retentionFaults(columns: Columns, { retention }: ModelOptions): string[] {
  if (retention === undefined) return [];
  const { by, then } = retention;
  const kind = columns[by]?.settings.kind;
  if (kind === undefined) return [`retention counts from an unknown column "${by}"${suggestion(by, Object.keys(columns))}`];
  if (kind !== 'timestamp' && kind !== 'date') return [`retention counts from "${by}", which is a ${kind}: it needs a timestamp or a date`];
  if (then === 'delete') return [];
  const faults = Object.entries(columns).flatMap(([name, { settings }]) =>
    settings.personal !== undefined && !settings.nullable && settings.personal.replace === undefined
      ? [`retention anonymises "${name}", which is not nullable: say what it becomes, .personal({ erased: … })`]
      : [],
  );
  return faults.length > 0 || tellingColumns({ columns }).length > 0
    ? faults
    : ['retention anonymises rows, and no column shows which are: mark one with .personal(), whose replacement is the same in every row'];
}

const ELEMENT_KINDS = new Set(['uuid', 'text', 'int', 'bigint', 'decimal', 'float', 'bool', 'timestamp', 'date', 'enum']);

function columnFault(column: unknown): string | undefined {
  if (!(column instanceof Column)) return 'it is not a column: declare it with t.text(), t.int(), …';
  const { kind, precision, scale, values, of, max, sensitive, primaryKey } = column.settings;
  if (kind === 'decimal' && !isDecimalShape(precision, scale))
    return 'a decimal needs a precision of 1 to 100 and a scale between 0 and it';
  if (kind === 'enum' && (values === undefined || values.length === 0 || new Set(values).size !== values.length))
    return 'an enum needs distinct values';
  if (kind === 'array' && (of === undefined || !ELEMENT_KINDS.has(of.kind) || of.nullable))
    return 'arrays hold plain, non-null values: use t.json() for anything else';
  if (kind === 'text' && max !== undefined && !(Number.isInteger(max) && max > 0 && max <= 10_485_760))
    return 'the length of a text is 1 to 10,485,760';
  if (primaryKey && (kind === 'json' || kind === 'array' || kind === 'bytes')) return `a ${kind} column cannot be a primary key`;
  return sensitive && primaryKey ? 'a primary key cannot be sensitive' : undefined;
}

function isDecimalShape(precision: number | undefined, scale: number | undefined): boolean {
  if (precision === undefined || scale === undefined) return false;
  return Number.isInteger(precision) && Number.isInteger(scale) && precision >= 1 && precision <= 100 && scale >= 0 && scale <= precision;
}
