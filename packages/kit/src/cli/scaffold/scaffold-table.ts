import { pascal, singular } from '../../db/declare/component-name.ts';
import { derivedName } from '../../db/declare/names.ts';
import type { ColumnDefinition, IndexDefinition, TableDefinition } from '../../db/declare/table-definition.ts';

/** A table that another one refers to, and where its model is. */
export interface Parent {
  /** The column that refers to it. */
  readonly column: string;
  /** The relation: `project` of `project_id`. */
  readonly relation: string;
  readonly table: ScaffoldTable;
}

/** Everything that the files of one resource are printed from. */
export interface ScaffoldTable {
  readonly definition: TableDefinition;
  readonly owner: string | undefined;
  readonly tenant: string | undefined;
  /** The columns of `timestamps()` and `versioned()`. */
  readonly stamped: boolean;
  readonly versioned: boolean;
  readonly parents: readonly Parent[];
  /** What a person must look at. */
  readonly notes: readonly string[];
}

/** The names in the files of a table. */
export interface Names {
  readonly table: string;
  /** `order_items` → `orderItems` */
  readonly model: string;
  readonly singular: string;
  readonly controller: string;
  readonly resource: string;
  readonly module: string;
  readonly migration: string;
  readonly path: string;
}

export function namesOf(table: string): Names {
  const one = pascal(singular(table));
  const camel = (name: string) => name.charAt(0).toLowerCase() + name.slice(1);
  return {
    table,
    model: camel(pascal(table)),
    singular: singular(table).replaceAll('_', ' '),
    controller: `${one}Controller`,
    resource: `${camel(one)}Resource`,
    module: `${camel(one)}Module`,
    migration: `0001_create_${table}`,
    path: `/${table.replaceAll('_', '-')}`,
  };
}

const NOW = { make: 'now' } as const;
const STAMPS: Readonly<Record<string, ColumnDefinition>> = {
  created_at: { kind: 'timestamp', nullable: false, dbDefault: NOW },
  updated_at: { kind: 'timestamp', nullable: false, dbDefault: NOW },
  version: { kind: 'int', nullable: false, dbDefault: { value: 1 } },
};

export interface NewTableOptions {
  readonly table: string;
  readonly fields: Readonly<Record<string, ColumnDefinition>>;
  readonly owner: string | undefined;
  readonly tenant: string | undefined;
  readonly parents: readonly Parent[];
}

/** A new table: a key, the columns that say whose a row is, the fields, times and a version; lists and filters have indexes. */
export function newTable({ table, fields, owner, tenant, parents }: NewTableOptions): ScaffoldTable {
  const scope = [tenant, owner].filter((column) => column !== undefined);
  const columns: Record<string, ColumnDefinition> = {
    id: { kind: 'uuid', nullable: false },
    ...Object.fromEntries(scope.map((column) => [column, fields[column] ?? { kind: 'uuid', nullable: false }])),
    ...fields,
    ...STAMPS,
  };
  const filtered = Object.entries(fields).filter(([name, column]) => isFilter(column) && !scope.includes(name));
  const indexes = [[...scope, '-id'], ...filtered.map(([name]) => scope.concat(name))].filter((index) => index.join() !== '-id');
  return {
    definition: { name: table, columns, primaryKey: ['id'], indexes: indexes.map((index) => plainIndex(table, index)), checks: {} },
    owner,
    tenant,
    stamped: true,
    versioned: true,
    parents,
    notes: [],
  };
}

function plainIndex(table: string, columns: readonly string[]): IndexDefinition {
  return { name: derivedName(table, ...columns.map((column) => column.replace(/^-/, '')), 'index'), columns, unique: false };
}

/** Lists are filtered by these: few values, or rows of one parent. */
export function isFilter({ kind, references }: ColumnDefinition): boolean {
  return kind === 'bool' || kind === 'enum' || references !== undefined;
}

/** Columns that the toolkit or the database fills in. */
export function isFilledIn({ definition, owner, tenant, stamped, versioned }: ScaffoldTable, name: string): boolean {
  const isKey = definition.primaryKey.includes(name) && definition.columns[name]?.kind === 'uuid';
  const isStamp = (stamped && (name === 'created_at' || name === 'updated_at')) || (versioned && name === 'version');
  return isKey || isStamp || name === owner || name === tenant;
}
