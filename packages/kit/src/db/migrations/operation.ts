import type { AnyColumn } from '../declare/column.ts';
import { columnDefinition } from '../declare/column.ts';
import type { Db } from '../engine/db.ts';
import { declarationFaults } from '../declare/declaration-faults.ts';
import { derivedName } from '../declare/names.ts';
import type { Columns } from '../declare/rows.ts';
import { withSearchColumns } from '../declare/search-columns.ts';
import type { SqlText } from '../sql/sql-text.ts';
import type { ColumnDefinition, FullTextDefinition, IndexDefinition, TableDefinition } from '../declare/table-definition.ts';
import {
  fullTextDefinition,
  fullTextRules,
  indexDefinition,
  indexRules,
  modelRules,
  type ModelFullText,
  type ModelIndex,
  type ModelOptions,
  primaryKeyOf,
  tableDefinition,
} from '../declare/table-from-columns.ts';
import { objectOf, readOptions, requireArguments } from '../../options/read-options.ts';
import { either, filledText, listOf, required, text, type ValueRule, anObject, isMembers, rule } from '../../options/value-rule.ts';

/** One step of a migration: plain data (but for `code`), so that it can be frozen, compared and summed up. */
export type Operation =
  | { readonly op: 'create_table'; readonly table: string; readonly definition: TableDefinition }
  | { readonly op: 'drop_table'; readonly table: string }
  | { readonly op: 'rename_table'; readonly table: string; readonly to: string }
  | {
      readonly op: 'add_column';
      readonly table: string;
      readonly column: string;
      readonly definition: ColumnDefinition;
      readonly backfill?: SqlText;
    }
  | {
      readonly op: 'alter_column';
      readonly table: string;
      readonly column: string;
      readonly definition: ColumnDefinition;
      readonly backfill?: SqlText;
      readonly using?: SqlText;
    }
  | { readonly op: 'drop_column'; readonly table: string; readonly column: string }
  | { readonly op: 'rename_column'; readonly table: string; readonly column: string; readonly to: string }
  | { readonly op: 'create_index'; readonly table: string; readonly index: IndexDefinition }
  | { readonly op: 'drop_index'; readonly table: string; readonly name: string }
  | { readonly op: 'add_check'; readonly table: string; readonly name: string; readonly sql: string }
  | { readonly op: 'drop_check'; readonly table: string; readonly name: string }
  | { readonly op: 'create_full_text'; readonly table: string; readonly fullText: FullTextDefinition }
  | { readonly op: 'drop_full_text'; readonly table: string; readonly name: string }
  | { readonly op: 'sql'; readonly sqlite: readonly string[]; readonly postgres: readonly string[] }
  | { readonly op: 'code'; readonly label: string; readonly run: (tx: Db) => Promise<void> };

const perDialect = objectOf<Exclude<SqlText, string>>({ sqlite: required(filledText), postgres: required(filledText) });
const sqlText: ValueRule = (value, place, name) =>
  typeof value === 'string' ? filledText(value, place, name) : perDialect(value, place, name);
const statements = either('a statement or a list of statements', text, listOf(text));

const aColumn = rule('a column, such as t.text()', (value) => isMembers(value) && isMembers(value['settings']));

/** A new table. Columns are declared as in `model()`, but references by name: `t.ref('users')`. */
export function createTable(name: string, given: Columns, options: ModelOptions = {}): Operation {
  readOptions(`createTable("${name}")`, options, modelRules);
  requireArguments('createTable()', { name, columns: given }, { name: filledText, columns: anObject });
  const primaryKey = primaryKeyOf(given, options);
  const faults = declarationFaults(name, given, primaryKey, options);
  if (faults.length > 0) throw new Error(`createTable("${name}"): ${faults.join('; ')}.`);
  const columns = withSearchColumns(given);
  for (const [key, column] of Object.entries(columns)) refuseLiveModel(name, key, column);
  return { op: 'create_table', table: name, definition: tableDefinition(name, columns, { ...options, primaryKey }) };
}

/** Drops a table and its rows. */
export function dropTable(name: string): Operation {
  return { op: 'drop_table', table: name };
}

/** Renames a table; rows stay. */
export function renameTable(name: string, to: string): Operation {
  return { op: 'rename_table', table: name, to };
}

export interface AddColumnOptions {
  /** The value of existing rows, as an SQL expression over the row. Without it they get the default, or NULL. */
  readonly backfill?: SqlText;
}

/** Adds a column: `addColumn('orders', 'note', t.text(200).nullable())`. */
export function addColumn(table: string, name: string, column: AnyColumn, options: AddColumnOptions = {}): Operation[] {
  readOptions(`addColumn("${table}", "${name}")`, options, { backfill: sqlText });
  requireArguments('addColumn()', { table, name, column }, { table: filledText, name: filledText, column: aColumn });
  const added: Operation = { op: 'add_column', table, column: name, definition: frozen(table, name, column), ...options };
  return column.settings.unique ? [added, createIndex(table, { columns: [name], unique: true })] : [added];
}

export interface AlterColumnOptions {
  /** What NULLs become when the column no longer allows them, as an SQL expression. */
  readonly backfill?: SqlText;
  /** How old values become new ones when the kind changes, as an SQL expression. */
  readonly using?: SqlText;
}

/** The column's whole new definition. Uniqueness is an index: createIndex, dropIndex. */
export function alterColumn(table: string, name: string, column: AnyColumn, options: AlterColumnOptions = {}): Operation {
  readOptions(`alterColumn("${table}", "${name}")`, options, { backfill: sqlText, using: sqlText });
  requireArguments('alterColumn()', { table, name, column }, { table: filledText, name: filledText, column: aColumn });
  return { op: 'alter_column', table, column: name, definition: frozen(table, name, column), ...options };
}

/** Drops a column and its values. */
export function dropColumn(table: string, name: string): Operation {
  return { op: 'drop_column', table, column: name };
}

/** Renames a column; values stay. */
export function renameColumn(table: string, name: string, to: string): Operation {
  return { op: 'rename_column', table, column: name, to };
}

/** Creates an index: `createIndex('orders', { columns: ['owner_id', '-created_at'] })`. */
export function createIndex(table: string, index: ModelIndex): Operation {
  readOptions(`createIndex("${table}")`, index, indexRules);
  return { op: 'create_index', table, index: indexDefinition(table, index) };
}

/** Drops an index. */
export function dropIndex(table: string, name: string): Operation {
  return { op: 'drop_index', table, name };
}

/** Makes words of text columns searchable. On PostgreSQL the table is rewritten once, and is locked meanwhile. */
export function createFullText(table: string, fullText: ModelFullText): Operation {
  readOptions(`createFullText("${table}")`, fullText, fullTextRules);
  return { op: 'create_full_text', table, fullText: fullTextDefinition(table, fullText) };
}

/** Drops a full-text index. */
export function dropFullText(table: string, name: string): Operation {
  return { op: 'drop_full_text', table, name };
}

/** Adds a condition that every row satisfies: `addCheck('orders', 'positive', 'total > 0')`. */
export function addCheck(table: string, name: string, sql: string): Operation {
  return { op: 'add_check', table, name: derivedName(table, name, 'check'), sql };
}

/** Drops a check by its short name. */
export function dropCheck(table: string, name: string): Operation {
  return { op: 'drop_check', table, name: derivedName(table, name, 'check') };
}

/** Anything else, one statement per text. Tables made here are not watched for drift. */
export function sql(texts: { readonly sqlite: string | readonly string[]; readonly postgres: string | readonly string[] }): Operation {
  readOptions('sql()', texts, { sqlite: required(statements), postgres: required(statements) });
  return { op: 'sql', sqlite: [texts.sqlite].flat(), postgres: [texts.postgres].flat() };
}

/** Moves data in code. `label` stands for it in the checksum: change it never, and the code only before release. */
export function code(label: string, run: (tx: Db) => Promise<void>): Operation {
  return { op: 'code', label, run };
}

function frozen(table: string, name: string, column: AnyColumn): ColumnDefinition {
  refuseLiveModel(table, name, column);
  return columnDefinition(column.settings);
}

/** A migration says what was true when it was written; a model says what is true today. */
function refuseLiveModel(table: string, name: string, column: AnyColumn): void {
  if (typeof column.settings.reference?.target !== 'function') return;
  throw new Error(`"${table}.${name}": a migration refers to tables by name, t.ref('users'), never to a model, which changes later.`);
}
