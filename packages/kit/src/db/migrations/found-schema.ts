import type { Db } from '../engine/db.ts';
import type { OnDelete } from '../declare/table-definition.ts';

export interface FoundColumn {
  /** The declared type as the database prints it, in lower case. */
  readonly type: string;
  readonly nullable: boolean;
  readonly hasDefault: boolean;
  /** The expression, as the database prints it. */
  readonly defaultSql: string | null;
}

export interface FoundIndex {
  readonly unique: boolean;
  readonly partial: boolean;
  /** A leading minus means descending. */
  readonly columns: readonly string[];
  /** Descending columns that have NULLs first; undefined where the database has only one order. */
  readonly nullsFirst: readonly string[] | undefined;
}

/** A table as the database has it. */
export interface FoundTable {
  readonly columns: ReadonlyMap<string, FoundColumn>;
  readonly primaryKey: readonly string[];
  readonly indexes: ReadonlyMap<string, FoundIndex>;
  readonly references: ReadonlyMap<string, { readonly table: string; readonly column: string; readonly onDelete: OnDelete | 'no action' }>;
  readonly checks: ReadonlySet<string>;
}

/** Reads a table's definition out of the database, or undefined when there is none. */
export function findTable(db: Db, table: string): Promise<FoundTable | undefined> {
  return db.dialect === 'sqlite' ? findSqliteTable(db, table) : findPostgresTable(db, table);
}

async function findSqliteTable(db: Db, table: string): Promise<FoundTable | undefined> {
  const [made] = await db.query<{ sql: string }>(`select sql from sqlite_master where type = 'table' and name = $1`, [table]);
  if (made === undefined) return undefined;
  const columns = await db.query<{ name: string; type: string; notnull: number; dflt_value: string | null; pk: number }>(
    'select name, type, "notnull", dflt_value, pk from pragma_table_info($1)',
    [table],
  );
  const parts = await db.query<IndexPart>(
    `select list.name, list."unique", list.partial, info.name as "column", info."desc", null as nulls_first from pragma_index_list($1) list, pragma_index_xinfo(list.name) info
     where list.origin = 'c' and info.key = 1 order by list.name, info.seqno`,
    [table],
  );
  const references = await db.query<{ from: string; table: string; to: string; on_delete: string }>(
    'select "from", "table", "to", on_delete from pragma_foreign_key_list($1)',
    [table],
  );
  return {
    columns: new Map(
      columns.map((each) => [
        each.name,
        {
          type: each.type.toLowerCase(),
          nullable: each.notnull === 0,
          hasDefault: each.dflt_value !== null,
          defaultSql: each.dflt_value,
        },
      ]),
    ),
    primaryKey: columns
      .filter((each) => each.pk > 0)
      .sort((a, b) => a.pk - b.pk)
      .map((each) => each.name),
    indexes: collectIndexes(parts),
    references: new Map(
      references.map((each) => [each.from, { table: each.table, column: each.to, onDelete: each.on_delete.toLowerCase() as OnDelete }]),
    ),
    checks: new Set([...made.sql.matchAll(/constraint "([^"]+)" check/g)].map((match) => match[1] ?? '')),
  };
}

async function findPostgresTable(db: Db, table: string): Promise<FoundTable | undefined> {
  const columns = await db.query<{ name: string; type: string; nullable: boolean; has_default: boolean; default_sql: string | null }>(
    // A domain is its base type with checks of its own.
    `select a.attname as name, not a.attnotnull as nullable, a.atthasdef as has_default, pg_get_expr(d.adbin, d.adrelid) as default_sql,
       case when t.typtype = 'd' then format_type(t.typbasetype, t.typtypmod) else format_type(a.atttypid, a.atttypmod) end as type
     from pg_attribute a join pg_type t on t.oid = a.atttypid left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
     where a.attrelid = to_regclass(quote_ident($1)) and a.attnum > 0 and not a.attisdropped order by a.attnum`,
    [table],
  );
  if (columns.length === 0) return undefined;
  // A column's own name, as pg_get_indexdef would quote a keyword such as "timestamp"; only expressions have none.
  const parts = await db.query<IndexPart & { readonly primary: boolean }>(
    `select c.relname as name, i.indisunique as unique, i.indpred is not null as partial, i.indisprimary as primary,
            coalesce(a.attname::text, pg_get_indexdef(i.indexrelid, k.n::int, true)) as column, i.indoption[k.n - 1] & 1 = 1 as desc,
            i.indoption[k.n - 1] & 3 = 3 as nulls_first
     from pg_index i join pg_class c on c.oid = i.indexrelid cross join generate_series(1, i.indnkeyatts) as k(n)
     left join pg_attribute a on a.attrelid = i.indrelid and a.attnum = i.indkey[k.n - 1] and a.attnum > 0
     where i.indrelid = to_regclass(quote_ident($1)) order by c.relname, k.n`,
    [table],
  );
  const constraints = await db.query<{
    name: string;
    kind: string;
    from: string | null;
    table: string | null;
    to: string | null;
    on_delete: string;
  }>(
    `select con.conname as name, con.contype::text as kind, source.attname as "from", target.relname as "table", pointed.attname as "to", con.confdeltype::text as on_delete
     from pg_constraint con
     left join pg_attribute source on source.attrelid = con.conrelid and source.attnum = con.conkey[1]
     left join pg_class target on target.oid = con.confrelid
     left join pg_attribute pointed on pointed.attrelid = con.confrelid and pointed.attnum = con.confkey[1]
     where con.conrelid = to_regclass(quote_ident($1)) and con.contype in ('f', 'c')
       or con.contypid in (select a.atttypid from pg_attribute a where a.attrelid = to_regclass(quote_ident($1)) and not a.attisdropped)`,
    [table],
  );
  const actions: Readonly<Record<string, OnDelete | 'no action'>> = { c: 'cascade', r: 'restrict', n: 'set null' };
  return {
    columns: new Map(
      columns.map((each) => [
        each.name,
        { type: each.type, nullable: each.nullable, hasDefault: each.has_default, defaultSql: each.default_sql },
      ]),
    ),
    primaryKey: parts.filter((part) => part.primary).map((part) => part.column),
    indexes: collectIndexes(parts.filter((part) => !part.primary)),
    references: new Map(
      constraints
        .filter((each) => each.kind === 'f')
        .map((each) => [
          each.from ?? '',
          { table: each.table ?? '', column: each.to ?? '', onDelete: actions[each.on_delete] ?? 'no action' },
        ]),
    ),
    checks: new Set(constraints.filter((each) => each.kind === 'c').map((each) => each.name)),
  };
}

/** SQLite says 1 where PostgreSQL says true. */
interface IndexPart {
  readonly name: string;
  readonly unique: boolean | number;
  readonly partial: boolean | number;
  readonly column: string;
  readonly desc: boolean | number;
  readonly nulls_first: boolean | null;
}

function collectIndexes(parts: readonly IndexPart[]): Map<string, FoundIndex> {
  const indexes = new Map<string, FoundIndex>();
  for (const { name, unique, partial, column, desc, nulls_first: nullsFirst } of parts) {
    const known = indexes.get(name);
    indexes.set(name, {
      unique: Boolean(unique),
      partial: Boolean(partial),
      columns: [...(known?.columns ?? []), desc ? `-${column}` : column],
      nullsFirst: nullsFirst === null ? undefined : [...(known?.nullsFirst ?? []), ...(nullsFirst ? [column] : [])],
    });
  }
  return indexes;
}
