import type { Db } from '../../db/engine/db.ts';
import type { Dialect } from '../../db/dialect.ts';
import { derivedName } from '../../db/declare/names.ts';
import { findTable, type FoundColumn, type FoundTable } from '../../db/migrations/found-schema.ts';
import type { ColumnDefinition, DatabaseDefault, IndexDefinition, TableDefinition } from '../../db/declare/table-definition.ts';
import { POSTGRES_KINDS } from '../../db/transfer/copied-column.ts';

/** A table of a database as a declaration, and what of it a declaration cannot express. */
export interface ReadTable {
  readonly definition: TableDefinition;
  readonly notes: readonly string[];
}

/** Thrown for a table that no resource can be made of. */
export class TableRefused extends Error {}

/** Reads columns, key, indexes and references of an existing table. */
export async function readTable(db: Db, name: string): Promise<ReadTable> {
  const found = await findTable(db, name);
  if (found === undefined) throw new TableRefused(`There is no table "${name}" in ${db.database.url}.`);
  if (found.primaryKey.length !== 1)
    throw new TableRefused(
      `The primary key of "${name}" is ${found.primaryKey.length === 0 ? 'missing' : `(${found.primaryKey.join(', ')})`}; a resource needs a key of one column.`,
    );
  const notes: string[] = [];
  const enums = await enumsOf(db);
  const columns: Record<string, ColumnDefinition> = {};
  for (const [column, facts] of found.columns) {
    const read = columnOf(column, facts, found, db.dialect, enums);
    if (read.note !== undefined) notes.push(`${name}.${column} ${read.note}`);
    if (read.definition !== undefined) columns[column] = read.definition;
  }
  if (columns[found.primaryKey[0] ?? ''] === undefined)
    throw new TableRefused(`The key of "${name}" has a type that no column kind stores. ${notes.join(' ')}`);
  const { indexes, notes: indexNotes } = indexesOf(name, found, await uniqueConstraints(db, name), columns);
  return { definition: { name, columns, primaryKey: found.primaryKey, indexes, checks: {} }, notes: [...notes, ...indexNotes] };
}

interface ReadColumn {
  readonly definition?: ColumnDefinition;
  readonly note?: string;
}

function columnOf(
  name: string,
  { type, nullable, defaultSql }: FoundColumn,
  found: FoundTable,
  dialect: Dialect,
  enums: ReadonlyMap<string, readonly string[]>,
): ReadColumn {
  const values = enums.get(type);
  const kind = values === undefined ? kindOf(type, dialect) : { kind: 'enum' as const, values };
  if (kind === undefined) {
    const needed = !nullable && defaultSql === null ? ' It has no default, so new rows need it: write it in your own code.' : '';
    return { note: `has the type ${type}, which no column kind stores; it is left out.${needed}` };
  }
  const reference = found.references.get(name);
  const dbDefault = defaultSql === null || found.primaryKey.includes(name) ? undefined : defaultOf(defaultSql, kind.kind);
  const definition: ColumnDefinition = {
    ...kind,
    // SQLite reports a key of one column as nullable.
    nullable: nullable && !found.primaryKey.includes(name),
    ...(dbDefault === undefined ? {} : { dbDefault }),
    ...(reference === undefined
      ? {}
      : {
          references: {
            table: reference.table,
            column: reference.column,
            onDelete: reference.onDelete === 'no action' ? 'restrict' : reference.onDelete,
          },
        }),
  };
  const unread = defaultSql !== null && dbDefault === undefined && !found.primaryKey.includes(name);
  return {
    definition,
    ...(unread ? { note: `has the default ${defaultSql}, which a declaration cannot express; callers send a value.` } : {}),
  };
}

type Kind = Pick<ColumnDefinition, 'kind' | 'max' | 'precision' | 'scale' | 'of'>;

/** Declared types of SQLite whose values the toolkit reads as they are; its own types carry what they store in their name. */
const SQLITE: Readonly<Record<string, Kind['kind']>> = {
  uuid_text: 'uuid',
  enum_text: 'text',
  timestamp_text: 'timestamp',
  date_text: 'date',
  json_text: 'json',
  integer: 'int',
  int: 'int',
  smallint: 'int',
  bigint: 'bigint',
  real: 'float',
  double: 'float',
  float: 'float',
  boolean: 'bool',
  text: 'text',
  clob: 'text',
  blob: 'bytes',
};

function kindOf(type: string, dialect: Dialect): Kind | undefined {
  const sized = /^(?:character varying|varchar|character|char|nvarchar)\((\d+)\)$/.exec(type);
  if (sized !== null) return { kind: 'text', max: Number(sized[1]) };
  const decimal = /^(?:numeric|decimal_text)\((\d+),(\d+)\)$/.exec(type);
  if (decimal !== null) return { kind: 'decimal', precision: Number(decimal[1]), scale: Number(decimal[2]) };
  if (dialect === 'postgres') {
    if (/^timestamp(?:\(\d\))? with time zone$/.test(type)) return { kind: 'timestamp' };
    const element = type.endsWith('[]') ? kindOf(type.slice(0, -2), dialect) : undefined;
    if (element !== undefined) return { kind: 'array', of: { ...element, nullable: false } };
  }
  const kind = (dialect === 'postgres' ? POSTGRES_KINDS : SQLITE)[type];
  return kind === undefined ? undefined : { kind };
}

/** Plain values, the current time and a random UUID; undefined for every other expression. */
function defaultOf(sql: string, kind: Kind['kind']): DatabaseDefault | undefined {
  const text = sql.replace(/::[\w\s"]+(?:\(\d+(?:,\d+)?\))?$/, '').trim();
  const bare = text.replace(/^\((.*)\)$/, '$1');
  if (kind === 'timestamp' && /^(?:now\(\)|current_timestamp|strftime\('%Y-%m-%dT%H:%M:%fZ', 'now'\))$/i.test(bare)) return { make: 'now' };
  if (kind === 'uuid') return /^gen_random_uuid\(\)$/i.test(bare) || bare.includes('randomblob') ? { make: 'uuid' } : undefined;
  const quoted = /^'((?:[^']|'')*)'$/.exec(bare);
  if (quoted !== null && !['int', 'float', 'bool'].includes(kind)) return { value: (quoted[1] ?? '').replaceAll("''", "'") };
  if (kind === 'bool' && /^(?:true|false|0|1)$/i.test(bare)) return { value: /^(?:true|1)$/i.test(bare) };
  if ((kind === 'int' || kind === 'float') && /^-?\d+(?:\.\d+)?$/.test(bare)) return { value: Number(bare) };
  return kind === 'bigint' && /^-?\d+$/.test(bare) ? { value: bare } : undefined;
}

function indexesOf(
  table: string,
  found: FoundTable,
  constraints: readonly (readonly string[])[],
  columns: Readonly<Record<string, ColumnDefinition>>,
): { readonly indexes: readonly IndexDefinition[]; readonly notes: readonly string[] } {
  const notes: string[] = [];
  const indexes: IndexDefinition[] = constraints
    .filter((each) => each.every((column) => Object.hasOwn(columns, column)))
    .map((each) => ({ name: derivedName(table, ...each, 'unique'), columns: each, unique: true }));
  for (const [name, index] of found.indexes) {
    const isPlain = index.columns.every((column) => Object.hasOwn(columns, column.replace(/^-/, '')));
    if (isPlain && !index.partial) indexes.push({ name, columns: index.columns, unique: index.unique });
    else
      notes.push(
        `The index ${name} of ${table} is ${index.partial ? 'partial' : 'on an expression'}: add it to the model with its condition.`,
      );
  }
  return { indexes, notes };
}

/** UNIQUE constraints of SQLite, which are not among the indexes that somebody created. */
async function uniqueConstraints(db: Db, table: string): Promise<string[][]> {
  if (db.dialect !== 'sqlite') return [];
  const parts = await db.query<{ index: string; column: string }>(
    `select list.name as "index", info.name as "column" from pragma_index_list($1) list, pragma_index_info(list.name) info
     where list.origin = 'u' order by list.name, info.seqno`,
    [table],
  );
  const byIndex = Map.groupBy(parts, ({ index }) => index);
  return [...byIndex.values()].map((each) => each.map(({ column }) => column));
}

/** The types of PostgreSQL that CREATE TYPE … AS ENUM made, with their values. */
async function enumsOf(db: Db): Promise<ReadonlyMap<string, readonly string[]>> {
  if (db.dialect !== 'postgres') return new Map();
  const rows = await db.query<{ type: string; label: string }>(
    'select format_type(t.oid, null) as type, e.enumlabel as label from pg_enum e join pg_type t on t.oid = e.enumtypid order by t.oid, e.enumsortorder',
  );
  const byType = Map.groupBy(rows, ({ type }) => type);
  return new Map([...byType].map(([type, labels]) => [type, labels.map(({ label }) => label)]));
}
