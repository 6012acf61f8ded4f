import { columnCheck, columnType, referenceSql } from '../sql/ddl.ts';
import { columnOf, type ColumnDefinition, type TableDefinition } from '../declare/table-definition.ts';
import type { Operation } from '../migrations/operation.ts';
import type { SchemaState } from '../migrations/schema-state.ts';
import { type LockMode, strongest } from './lock-mode.ts';

/**
 * none     the catalog changes, whatever the size of the table
 * scan     every row is read
 * index    every row is read, and an index is built
 * update   every row is written again, as a new version of it
 * rewrite  the table and its indexes are written again
 */
export type TableWork = 'none' | 'scan' | 'index' | 'update' | 'rewrite';

/** What one statement, or several in one transaction, do to a table. */
export interface TableImpact {
  readonly table: string;
  /** `writer`: the one lock of a SQLite file, for which only writers wait. */
  readonly lock: LockMode | 'writer';
  readonly work: TableWork;
}

export interface OperationImpact {
  /** `create index "orders_total_index"` */
  readonly text: string;
  /** Null: written by hand, and not known. */
  readonly tables: readonly TableImpact[] | null;
  /** The form that does not stop reads and writes while it reads or writes rows. */
  readonly safe: string | null;
  /** What processes of the version before can no longer do. */
  readonly runningCode: string | null;
}

const ONLINE = 'give it a migration of its own with { online: true }';
const STEPS =
  'add the column nullable, fill it with a back-fill, and require it in an online migration of the next release: kit migrate make writes the three';
const NEW_COLUMN = 'add a new column, write both, fill it with a back-fill, read it, and drop the old one: a release each';

/** The locks and the work of an operation on PostgreSQL, where `before` is what it finds. `online`: in the form of `online: true`. */
export function postgresImpact(operation: Operation, before: SchemaState, online = false): OperationImpact {
  const { tables, safe } = online ? { tables: onlineTables(operation), safe: null } : plainTables(operation, before);
  return { text: operationText(operation), tables, safe, runningCode: runningCodeOf(operation) };
}

interface Plain {
  readonly tables: readonly TableImpact[] | null;
  readonly safe: string | null;
}

function plainTables(operation: Operation, before: SchemaState): Plain {
  switch (operation.op) {
    case 'sql':
    case 'code':
      return { tables: null, safe: null };
    case 'create_table':
      return {
        tables: referenced(operation.definition, 'SHARE ROW EXCLUSIVE').filter(({ table }) => table !== operation.table),
        safe: null,
      };
    case 'drop_table':
      return {
        tables: [exclusive(operation.table, 'none'), ...referenced(before.get(operation.table), 'ACCESS EXCLUSIVE')],
        safe: null,
      };
    case 'add_column':
      return addColumnImpact(operation);
    case 'alter_column':
      return alterColumnImpact(operation, before);
    case 'create_index':
      return { tables: [{ table: operation.table, lock: 'SHARE', work: 'index' }], safe: ONLINE };
    case 'add_check':
      return { tables: [exclusive(operation.table, 'scan')], safe: ONLINE };
    case 'create_full_text':
      return {
        tables: [exclusive(operation.table, 'rewrite')],
        safe: 'run it at a quiet time: PostgreSQL has no other form of a generated column',
      };
    case 'drop_column':
      return { tables: [exclusive(operation.table, 'none'), ...referencedBy(before, operation.table, operation.column)], safe: null };
    default:
      return { tables: [exclusive(operation.table, 'none')], safe: null };
  }
}

function addColumnImpact({ table, column, definition, backfill }: Extract<Operation, { op: 'add_column' }>): Plain {
  const references = definition.references;
  const other: TableImpact[] = references === undefined ? [] : [{ table: references.table, lock: 'SHARE ROW EXCLUSIVE', work: 'none' }];
  if (backfill !== undefined) return { tables: [exclusive(table, 'update'), ...other], safe: STEPS };
  const { dbDefault } = definition;
  // A random value differs from row to row; any other default is stored once, in the catalog.
  if (dbDefault !== undefined && 'make' in dbDefault && dbDefault.make === 'uuid')
    return { tables: [exclusive(table, 'rewrite'), ...other], safe: STEPS };
  // A new reference is not checked where every row has NULL.
  const isChecked = columnCheck(column, definition, 'postgres') !== undefined || (references !== undefined && dbDefault !== undefined);
  if (!isChecked) return { tables: [exclusive(table, 'none'), ...other], safe: null };
  const canBeOnline = definition.nullable && dbDefault === undefined;
  return {
    tables: [exclusive(table, 'scan'), ...other],
    safe: canBeOnline ? ONLINE : 'add it nullable in an online migration, and the default or NOT NULL in another',
  };
}

function alterColumnImpact(
  { table, column, definition, backfill, using }: Extract<Operation, { op: 'alter_column' }>,
  before: SchemaState,
): Plain {
  const found = before.get(table);
  const old = found === undefined ? definition : columnOf(found, column);
  const works: TableWork[] = ['none'];
  let [lock, safe]: [LockMode, string | null] = ['ACCESS EXCLUSIVE', null];
  const add = (work: TableWork, form: string): void => {
    works.push(work);
    safe ??= form;
  };
  if (columnType(old, 'postgres') !== columnType(definition, 'postgres')) {
    if (using !== undefined || !isBinaryCompatible(old, definition)) add('rewrite', NEW_COLUMN);
  } else if (using !== undefined) add('update', NEW_COLUMN);
  if (backfill !== undefined) add('update', 'fill the column with a back-fill, and require it in an online migration');
  if (old.nullable && !definition.nullable) add('scan', ONLINE);
  const check = columnCheck(column, definition, 'postgres');
  if (check !== undefined && check !== columnCheck(column, old, 'postgres'))
    add('scan', 'drop the old check in one migration, and add the new one with addCheck and online: true');
  const reference = referenceSql(definition);
  const others: TableImpact[] = [];
  if (reference !== undefined && reference !== referenceSql(old)) {
    if (works.length === 1 && old.nullable === definition.nullable) lock = 'SHARE ROW EXCLUSIVE';
    add('scan', ONLINE);
    others.push({ table: definition.references?.table ?? table, lock: 'SHARE ROW EXCLUSIVE', work: 'none' });
  }
  return { tables: [{ table, lock, work: heaviest(works) }, ...others], safe };
}

/** PostgreSQL takes the stored values as they are. */
function isBinaryCompatible(old: ColumnDefinition, next: ColumnDefinition): boolean {
  if (old.kind === 'enum' && next.kind === 'text') return next.max === undefined;
  if (old.kind !== next.kind) return old.kind === 'text' && old.max === undefined && next.kind === 'enum';
  if (old.kind === 'text') return next.max === undefined || (old.max !== undefined && next.max >= old.max);
  return old.kind === 'decimal' && old.scale === next.scale && (next.precision ?? 0) >= (old.precision ?? 0);
}

/** Each is a transaction of its own. */
function onlineTables(operation: Operation): readonly TableImpact[] | null {
  switch (operation.op) {
    case 'create_index':
      return [{ table: operation.table, lock: 'SHARE UPDATE EXCLUSIVE', work: 'index' }];
    case 'drop_index':
      return [{ table: operation.table, lock: 'SHARE UPDATE EXCLUSIVE', work: 'none' }];
    case 'add_check':
    case 'add_column':
    case 'alter_column': {
      const references = operation.op === 'add_check' ? undefined : operation.definition.references;
      const isChecked = operation.op !== 'add_column' || references !== undefined || operation.definition.kind === 'enum';
      return [
        exclusive(operation.table, 'none'),
        ...(references === undefined ? [] : [{ table: references.table, lock: 'SHARE ROW EXCLUSIVE', work: 'none' } as const]),
        ...(isChecked ? [{ table: operation.table, lock: 'SHARE UPDATE EXCLUSIVE', work: 'scan' } as const] : []),
      ];
    }
    default:
      return null;
  }
}

function runningCodeOf(operation: Operation): string | null {
  switch (operation.op) {
    case 'drop_table':
    case 'rename_table':
      return `every statement on "${operation.table}" fails`;
    case 'drop_column':
    case 'rename_column':
      return `every read and write of "${operation.table}" fails if its model still has "${operation.column}"`;
    case 'add_column':
      return operation.definition.nullable || operation.definition.dbDefault !== undefined
        ? null
        : `every insert into "${operation.table}" fails: it leaves "${operation.column}" out`;
    case 'alter_column':
      return operation.definition.nullable || operation.definition.dbDefault !== undefined
        ? null
        : `inserts into "${operation.table}" that leave "${operation.column}" out fail`;
    case 'create_index':
      return operation.index.unique ? `writes to "${operation.table}" that repeat a value fail` : null;
    case 'add_check':
      return `writes to "${operation.table}" that contradict the check fail`;
    default:
      return null;
  }
}

export function operationText(operation: Operation): string {
  switch (operation.op) {
    case 'sql':
      return 'sql';
    case 'code':
      return `code "${operation.label}"`;
    case 'create_index':
      return `create index "${operation.index.name}"`;
    case 'create_full_text':
      return `create full text "${operation.fullText.name}"`;
    case 'drop_index':
    case 'drop_full_text':
    case 'add_check':
    case 'drop_check':
      return `${operation.op.replaceAll('_', ' ')} "${operation.name}"`;
    case 'add_column':
    case 'alter_column':
    case 'drop_column':
    case 'rename_column':
      return `${operation.op.replaceAll('_', ' ')} "${operation.table}.${operation.column}"`;
    default:
      return `${operation.op.replaceAll('_', ' ')} "${operation.table}"`;
  }
}

const WORKS: readonly TableWork[] = ['none', 'scan', 'index', 'update', 'rewrite'];

function heaviest(works: readonly TableWork[]): TableWork {
  return works.reduce((a, b) => (WORKS.indexOf(a) >= WORKS.indexOf(b) ? a : b), 'none');
}

function exclusive(table: string, work: TableWork): TableImpact {
  return { table, lock: 'ACCESS EXCLUSIVE', work };
}

function referenced(table: TableDefinition | undefined, lock: LockMode): TableImpact[] {
  const names = new Set(
    Object.values(table?.columns ?? {}).flatMap(({ references }) => (references === undefined ? [] : [references.table])),
  );
  return [...names].map((name) => ({ table: name, lock, work: 'none' }));
}

/** Dropping a column drops its foreign key. */
function referencedBy(before: SchemaState, table: string, column: string): TableImpact[] {
  const references = before.get(table)?.columns[column]?.references;
  return references === undefined || references.table === table ? [] : [exclusive(references.table, 'none')];
}

/** One line for each table: the strongest lock, and the heaviest work under it. */
export function byTable(tables: readonly TableImpact[]): TableImpact[] {
  const found = new Map<string, TableImpact>();
  for (const each of tables) {
    const other = found.get(each.table);
    found.set(
      each.table,
      other === undefined ? each : { table: each.table, lock: strongest(other.lock, each.lock), work: heaviest([other.work, each.work]) },
    );
  }
  return [...found.values()];
}
