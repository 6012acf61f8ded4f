import type { ColumnDefinition, TableDefinition } from '../declare/table-definition.ts';
import type { Operation } from './operation.ts';
import type { SchemaState } from './schema-state.ts';
import { sortedMembers } from '../values/canonical-json.ts';

/** The operations that turn `from` into `to`: what a next migration has to say. */
export function diffSchemas(from: SchemaState, to: readonly TableDefinition[]): Operation[] {
  const wanted = new Set(to.map((table) => table.name));
  const created = inReferenceOrder(to.filter((table) => !from.has(table.name)));
  const dropped = inReferenceOrder([...from.values()].filter((table) => !wanted.has(table.name))).toReversed();
  return [
    ...created.map((definition): Operation => ({ op: 'create_table', table: definition.name, definition })),
    ...to.flatMap((table) => {
      const old = from.get(table.name);
      return old === undefined ? [] : diffTables(old, table);
    }),
    ...dropped.map((table): Operation => ({ op: 'drop_table', table: table.name })),
  ];
}

function diffTables(old: TableDefinition, wanted: TableDefinition): Operation[] {
  const table = wanted.name;
  if (old.primaryKey.join() !== wanted.primaryKey.join()) {
    throw new Error(
      `The primary key of "${table}" changes from (${old.primaryKey.join(', ')}) to (${wanted.primaryKey.join(', ')}): write that migration by hand, with sql().`,
    );
  }
  const [oldIndexes, newIndexes] = [byName(old), byName(wanted)];
  const dropsIndex = old.indexes.filter((index) => !same(index, newIndexes.get(index.name)));
  const addsIndex = wanted.indexes.filter((index) => !same(index, oldIndexes.get(index.name)));
  const dropsText = (old.fullText ?? []).filter((each) => !same(each, textByName(wanted).get(each.name)));
  const addsText = (wanted.fullText ?? []).filter((each) => !same(each, textByName(old).get(each.name)));
  const oldChecks = Object.entries(old.checks).filter(([name, sql]) => wanted.checks[name] !== sql);
  const newChecks = Object.entries(wanted.checks).filter(([name, sql]) => old.checks[name] !== sql);
  return [
    ...dropsText.map(({ name }): Operation => ({ op: 'drop_full_text', table, name })),
    ...dropsIndex.map(({ name }): Operation => ({ op: 'drop_index', table, name })),
    ...oldChecks.map(([name]): Operation => ({ op: 'drop_check', table, name })),
    ...diffColumns(old, wanted),
    ...newChecks.map(([name, sql]): Operation => ({ op: 'add_check', table, name, sql })),
    ...addsIndex.map((index): Operation => ({ op: 'create_index', table, index })),
    ...addsText.map((fullText): Operation => ({ op: 'create_full_text', table, fullText })),
  ];
}

function diffColumns(old: TableDefinition, wanted: TableDefinition): Operation[] {
  const table = wanted.name;
  const operations: Operation[] = [];
  for (const [column, definition] of Object.entries(wanted.columns)) {
    const before = Object.hasOwn(old.columns, column) ? old.columns[column] : undefined;
    if (before === undefined) {
      const backfill = definition.nullable || definition.dbDefault !== undefined ? {} : { backfill: neutralValue(definition) };
      operations.push({ op: 'add_column', table, column, definition, ...backfill });
    } else if (!same(before, definition)) {
      const backfill = before.nullable && !definition.nullable ? { backfill: neutralValue(definition) } : {};
      operations.push({ op: 'alter_column', table, column, definition, ...backfill });
    }
  }
  for (const column of Object.keys(old.columns))
    if (!Object.hasOwn(wanted.columns, column)) operations.push({ op: 'drop_column', table, column });
  return operations;
}

/** A value for existing rows; the author of the migration must review it. */
function neutralValue({ kind, values }: ColumnDefinition): string | { sqlite: string; postgres: string } {
  switch (kind) {
    case 'int':
    case 'bigint':
    case 'float':
      return '0';
    case 'decimal':
      return { sqlite: `'0'`, postgres: '0' };
    case 'bool':
      return 'false';
    case 'enum':
      return `'${values?.[0]?.replaceAll("'", "''") ?? ''}'`;
    case 'timestamp':
      return { sqlite: `strftime('%Y-%m-%dT%H:%M:%fZ', 'now')`, postgres: 'now()' };
    case 'date':
      return { sqlite: `date('now')`, postgres: 'current_date' };
    case 'json':
      return `'{}'`;
    case 'array':
      return { sqlite: `'[]'`, postgres: `'{}'` };
    case 'bytes':
      return { sqlite: `x''`, postgres: `''` };
    case 'uuid':
      return `'00000000-0000-0000-0000-000000000000'`;
    default:
      return `''`;
  }
}

/** Tables that others refer to come first. A ring keeps the order given. */
function inReferenceOrder(tables: readonly TableDefinition[]): TableDefinition[] {
  const byTable = new Map(tables.map((table) => [table.name, table]));
  const ordered = new Set<TableDefinition>();
  const visiting = new Set<TableDefinition>();
  const visit = (table: TableDefinition): void => {
    if (ordered.has(table) || visiting.has(table)) return;
    visiting.add(table);
    for (const { references } of Object.values(table.columns)) {
      const target = references === undefined ? undefined : byTable.get(references.table);
      if (target !== undefined) visit(target);
    }
    ordered.add(table);
  };
  for (const table of tables) visit(table);
  return [...ordered];
}

function byName(table: TableDefinition): Map<string, TableDefinition['indexes'][number]> {
  return new Map(table.indexes.map((index) => [index.name, index]));
}

function textByName({ fullText = [] }: TableDefinition): Map<string, NonNullable<TableDefinition['fullText']>[number]> {
  return new Map(fullText.map((each) => [each.name, each]));
}

function same(a: unknown, b: unknown): boolean {
  return JSON.stringify(a, sortedMembers) === JSON.stringify(b, sortedMembers);
}
