import { columnSql, createIndexSql, createTableSql, tableStatements } from '../sql/ddl.ts';
import {
  createFullTextSql,
  dropFullTextSql,
  dropFullTextTablesSql,
  dropFullTextTriggersSql,
  fillFullTextSql,
  fullTextTriggers,
} from '../declare/full-text.ts';
import { derivedName, quoteName as q } from '../declare/names.ts';
import type { ColumnDefinition, TableDefinition } from '../declare/table-definition.ts';
import { columnOf } from '../declare/table-definition.ts';
import type { Operation } from './operation.ts';
import { textFor } from './postgres-steps.ts';
import { applyOperation, fullTextOf, type SchemaState, tableIn } from './schema-state.ts';

/** A table that is rebuilt: SQLite's ALTER TABLE cannot change columns. */
export interface Rebuild {
  readonly before: TableDefinition;
  readonly after: TableDefinition;
  /** For each column to fill, the expression over the old row. Columns not named get their default. */
  readonly copy: Readonly<Record<string, string>>;
}

export interface SqliteSteps {
  readonly statements: readonly string[];
  readonly rebuild?: Rebuild;
}

/** What one operation takes on SQLite: plain statements, or a rebuild of its table. */
export function sqliteSteps(operation: Exclude<Operation, { op: 'code' }>, before: SchemaState): SqliteSteps {
  switch (operation.op) {
    case 'create_table':
      return { statements: tableStatements(operation.definition, 'sqlite') };
    case 'drop_table':
      return {
        statements: [
          `drop table ${q(operation.table)}`,
          ...(tableIn(before, operation.table).fullText ?? []).flatMap((each) => dropFullTextTablesSql(each)),
        ],
      };
    case 'rename_table':
      return aroundTriggers(operation, before, operation.to, `alter table ${q(operation.table)} rename to ${q(operation.to)}`);
    case 'rename_column':
      return aroundTriggers(
        operation,
        before,
        operation.table,
        `alter table ${q(operation.table)} rename column ${q(operation.column)} to ${q(operation.to)}`,
      );
    case 'create_full_text': {
      const table = tableIn(before, operation.table);
      return {
        statements: [...createFullTextSql(table, operation.fullText, 'sqlite'), ...fillFullTextSql(table, operation.fullText, 'sqlite')],
      };
    }
    case 'drop_full_text': {
      const table = tableIn(before, operation.table);
      return { statements: dropFullTextSql(table, fullTextOf(table, operation.name), 'sqlite') };
    }
    case 'create_index':
      return { statements: [createIndexSql(tableIn(before, operation.table), operation.index, 'sqlite')] };
    case 'drop_index':
      return { statements: [`drop index ${q(operation.name)}`] };
    case 'sql':
      return { statements: operation.sqlite };
    case 'add_column':
      if (operation.backfill === undefined && canBeAdded(operation.definition)) {
        return {
          statements: [
            `alter table ${q(operation.table)} add column ${columnSql(operation.table, operation.column, operation.definition, 'sqlite')}`,
          ],
        };
      }
      return rebuildFor(operation, before);
    default:
      return rebuildFor(operation, before);
  }
}

/** Triggers of full text are written again under the new name: SQLite would rewrite them in its own way, and drift compares their text. */
function aroundTriggers(operation: Operation, state: SchemaState, to: string, statement: string): SqliteSteps {
  const before = tableIn(state, 'table' in operation ? operation.table : to);
  const after = tableIn(applyOperation(state, operation), to);
  return {
    statements: [
      ...(before.fullText ?? []).flatMap((each) => dropFullTextTriggersSql(before, each)),
      statement,
      ...(after.fullText ?? []).flatMap((each) => Object.values(fullTextTriggers(after, each))),
    ],
  };
}

/** Whether an operation drops a table on the way; foreign keys must be off then, or its children's rows would go with it. */
export function dropsTable(operation: Operation, before: SchemaState): boolean {
  if (operation.op === 'code' || operation.op === 'sql') return false;
  return operation.op === 'drop_table' || sqliteSteps(operation, before).rebuild !== undefined;
}

/** SQLite's rule for ADD COLUMN: no NULL in a NOT NULL column, only constant defaults, no default on a reference. */
function canBeAdded({ nullable, dbDefault, references }: ColumnDefinition): boolean {
  if (dbDefault === undefined) return nullable;
  return 'value' in dbDefault && references === undefined;
}

type RebuildOperation = Extract<Operation, { op: 'add_column' | 'alter_column' | 'drop_column' | 'add_check' | 'drop_check' }>;

function rebuildFor(operation: RebuildOperation, state: SchemaState): SqliteSteps {
  const before = tableIn(state, operation.table);
  const after = tableIn(applyOperation(state, operation), operation.table);
  const kept = Object.keys(after.columns).filter((name) => Object.hasOwn(before.columns, name));
  const copy: Record<string, string> = Object.fromEntries(kept.map((name) => [name, q(name)]));
  if (operation.op === 'add_column' && operation.backfill !== undefined) copy[operation.column] = textFor('sqlite', operation.backfill);
  if (operation.op === 'alter_column') copy[operation.column] = alteredValue(operation, columnOf(before, operation.column));
  return { statements: [], rebuild: { before, after, copy } };
}

function alteredValue({ column, definition, backfill, using }: Extract<Operation, { op: 'alter_column' }>, old: ColumnDefinition): string {
  const value = using === undefined ? q(column) : textFor('sqlite', using);
  // PostgreSQL rewrites kept text in the new spelling by itself; here the copy does.
  const converted = using === undefined && old.kind !== definition.kind ? castTo(definition, value) : value;
  return backfill === undefined ? converted : `coalesce(${converted}, ${textFor('sqlite', backfill)})`;
}

function castTo(definition: ColumnDefinition, value: string): string {
  if (definition.kind === 'int' || definition.kind === 'bigint' || definition.kind === 'bool') return `cast(${value} as integer)`;
  if (definition.kind === 'float') return `cast(${value} as real)`;
  return definition.kind === 'bytes' ? value : `cast(${value} as text)`;
}

/**
 * The statements of a rebuild, in order, with the foreign keys off around the transaction and `legacy_alter_table` on
 * around the last one: otherwise the rename would rewrite the references of other tables to the temporary name.
 */
export function rebuildStatements({ before, after, copy }: Rebuild): {
  readonly create: string;
  readonly fill: string;
  readonly drop: string;
  readonly rename: string;
  readonly indexes: readonly string[];
  /** Full text is rebuilt from the rows as they are now. */
  readonly fullText: readonly string[];
  readonly temporary: string;
} {
  const temporary = derivedName('kit_new', after.name);
  const names = Object.keys(copy);
  return {
    temporary,
    create: createTableSql(after, 'sqlite', temporary),
    fill: `insert into ${q(temporary)} (${names.map(q).join(', ')}) select ${names.map((name) => copy[name]).join(', ')} from ${q(after.name)} order by rowid`,
    drop: `drop table ${q(after.name)}`,
    rename: `alter table ${q(temporary)} rename to ${q(after.name)}`,
    indexes: after.indexes.map((index) => createIndexSql(after, index, 'sqlite')),
    fullText: [
      ...(before.fullText ?? []).flatMap((each) => dropFullTextTablesSql(each)),
      ...(after.fullText ?? []).flatMap((each) => createFullTextSql(after, each, 'sqlite').concat(fillFullTextSql(after, each, 'sqlite'))),
    ],
  };
}
