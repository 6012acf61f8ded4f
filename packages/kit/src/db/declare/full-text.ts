import type { Dialect } from '../dialect.ts';
import { columnNameFault, derivedName, quoteName as q, quoteText } from './names.ts';
import { type ColumnKind, type FullTextDefinition, suggestion, type TableDefinition } from './table-definition.ts';

/** What is wrong with declarations of full text, given the kinds of the table's columns. */
export function fullTextFaults(declared: readonly FullTextDefinition[], kinds: ReadonlyMap<string, ColumnKind>): string[] {
  const faults: string[] = [];
  const names = new Set<string>();
  for (const { name, columns } of declared) {
    const nameFault = columnNameFault(name);
    if (nameFault !== undefined) faults.push(`full text "${name}": ${nameFault}`);
    if (kinds.has(name) || names.has(name)) faults.push(`full text "${name}" has the name of something else: give it another name`);
    names.add(name);
    if (new Set(columns).size !== columns.length) faults.push(`full text "${name}" names a column twice`);
    for (const column of columns) {
      if (!kinds.has(column))
        faults.push(`full text "${name}" names an unknown column "${column}"${suggestion(column, [...kinds.keys()])}`);
      else if (kinds.get(column) !== 'text') faults.push(`full text "${name}" has "${column}", which is not text`);
    }
  }
  return faults;
}

/** The index of the generated column. */
export function fullTextIndexName({ name }: FullTextDefinition): string {
  return derivedName(name, 'index');
}

/**
 * More than that of one row is not searched on PostgreSQL: a tsvector holds 1 MB, and a longer text would fail the write. The worst text,
 * words of one character of four bytes, takes about 8 bytes for two characters.
 */
const CHARACTERS_MAX = 200_000;

/** Accents, as NFD takes them off their letters. */
const MARKS = String.raw`[\u0300-\u036f]+`;
/**
 * What is neither letter nor digit, so that "foo-bar.com" is three words on both databases: PostgreSQL's parser would take host names,
 * numbers with a sign and words with hyphens as a whole. By code point, because what a class such as [:alnum:] holds depends on the locale.
 */
const SEPARATORS = String.raw`[\u0001-\u002f\u003a-\u0040\u005b-\u0060\u007b-\u00a9\u00ab-\u00b1\u00b4\u00b6-\u00b8\u00bb\u00bf\u00d7\u00f7\u2000-\u206f\u20a0-\u20cf\u2116\u2117\u2190-\u2bff\u3000-\u3004\u3008-\u3020\u3030\uff01-\uff0f\uff1a-\uff20]+`;

function vectorSql({ columns, config }: FullTextDefinition): string {
  const joined = columns.map((column) => `coalesce(${q(column)}, '')`).join(` || ' ' || `);
  const letters = `normalize(regexp_replace(normalize(left(${joined}, ${CHARACTERS_MAX}), NFD), ${quoteText(MARKS)}, '', 'g'), NFC)`;
  return `to_tsvector(${quoteText(config)}::regconfig, regexp_replace(${letters}, ${quoteText(SEPARATORS)}, ' ', 'g'))`;
}

/** Everything that full text takes, for an empty table. */
export function createFullTextSql(table: TableDefinition, fullText: FullTextDefinition, dialect: Dialect): string[] {
  if (dialect === 'sqlite') return [...Object.values(sqliteTables(table, fullText)), ...Object.values(fullTextTriggers(table, fullText))];
  return [
    `alter table ${q(table.name)} add column ${q(fullText.name)} tsvector generated always as (${vectorSql(fullText)}) stored`,
    `create index ${q(fullTextIndexName(fullText))} on ${q(table.name)} using gin (${q(fullText.name)})`,
  ];
}

/** Puts the rows that are there already into the search. PostgreSQL does so by itself. */
export function fillFullTextSql(table: TableDefinition, fullText: FullTextDefinition, dialect: Dialect): string[] {
  if (dialect === 'postgres') return [];
  const { rows, keys, values } = sqliteNames(table, fullText);
  const join = table.primaryKey.map((column, index) => `t.${q(column)} = r.k${index}`).join(' and ');
  return [
    `insert into ${rows} (${keys.join(', ')}) select ${table.primaryKey.map(q).join(', ')} from ${q(table.name)} order by rowid`,
    `insert into ${q(fullText.name)} (rowid, ${values.join(', ')}) select r.id, ${fullText.columns.map((column) => `t.${q(column)}`).join(', ')} from ${rows} r join ${q(table.name)} t on ${join}`,
  ];
}

/** What was removed by hand is passed over: to drop and to create is how a damaged full text is mended. */
export function dropFullTextSql(table: TableDefinition, fullText: FullTextDefinition, dialect: Dialect): string[] {
  if (dialect === 'postgres') return [`alter table ${q(table.name)} drop column if exists ${q(fullText.name)}`];
  return [...dropFullTextTriggersSql(table, fullText), ...dropFullTextTablesSql(fullText)];
}

/** What is left on SQLite once the table is dropped, which takes its triggers along. */
export function dropFullTextTablesSql({ name }: FullTextDefinition): string[] {
  return [`drop table if exists ${q(name)}`, `drop table if exists ${q(rowsName(name))}`];
}

export function dropFullTextTriggersSql(table: TableDefinition, fullText: FullTextDefinition): string[] {
  return Object.keys(fullTextTriggers(table, fullText)).map((trigger) => `drop trigger if exists ${q(trigger)}`);
}

function rowsName(name: string): string {
  return `${name}_rows`;
}

function sqliteNames({ primaryKey }: TableDefinition, { name, columns }: FullTextDefinition) {
  return {
    rows: q(rowsName(name)),
    // By position: renaming a column of the table changes nothing here.
    keys: primaryKey.map((_, index) => `k${index}`),
    values: columns.map((_, index) => `c${index}`),
  };
}

/**
 * The tables of SQLite, by name. The words are under a number of the side table and never under the rowid of the row, which VACUUM and a
 * rebuild of the table change. The FTS5 table keeps no copy of the text.
 */
export function sqliteTables(table: TableDefinition, fullText: FullTextDefinition): Record<string, string> {
  const { rows, keys, values } = sqliteNames(table, fullText);
  return {
    [rowsName(fullText.name)]:
      `create table ${rows} (id integer primary key, ${keys.map((key) => `${key} not null`).join(', ')}, unique (${keys.join(', ')}))`,
    [fullText.name]: `create virtual table ${q(fullText.name)} using fts5(${values.join(', ')}, content='', contentless_delete=1, tokenize='unicode61 remove_diacritics 2')`,
  };
}

/** The triggers of SQLite, by name: they keep the words of a row with every statement that changes it. */
export function fullTextTriggers(table: TableDefinition, fullText: FullTextDefinition): Record<string, string> {
  const { rows, keys, values } = sqliteNames(table, fullText);
  const { name, columns } = fullText;
  const words = q(name);
  const keysOf = (row: 'new' | 'old') => table.primaryKey.map((column) => `${row}.${q(column)}`);
  const isRow = (row: 'new' | 'old') =>
    keysOf(row)
      .map((key, index) => `k${index} = ${key}`)
      .join(' and ');
  const idOf = (row: 'new' | 'old') => `(select id from ${rows} where ${isRow(row)})`;
  const watched = [...new Set([...columns, ...table.primaryKey])];
  const differs = watched.map((column) => `old.${q(column)} is not new.${q(column)}`).join(' or ');
  const remove = (row: 'new' | 'old') => `delete from ${words} where rowid = ${idOf(row)}; delete from ${rows} where ${isRow(row)};`;
  const add = `insert into ${rows} (${keys.join(', ')}) values (${keysOf('new').join(', ')}); insert into ${words} (rowid, ${values.join(', ')}) values (${idOf('new')}, ${columns.map((column) => `new.${q(column)}`).join(', ')});`;
  const on = q(table.name);
  return {
    // INSERT OR REPLACE removes the old row without its trigger: whatever the key still has goes first.
    [`${name}_insert`]: `create trigger ${q(`${name}_insert`)} after insert on ${on} begin ${remove('new')} ${add} end`,
    [`${name}_update`]: `create trigger ${q(`${name}_update`)} after update of ${watched.map(q).join(', ')} on ${on} when ${differs} begin ${remove('old')} ${add} end`,
    [`${name}_delete`]: `create trigger ${q(`${name}_delete`)} after delete on ${on} begin ${remove('old')} end`,
  };
}

/** One word of a search. */
export interface FullTextWord {
  /** Without accents. */
  readonly plain: string;
  /** As it was written. */
  readonly written: string;
}

/** The words of a text, without anything that is neither letter nor digit: nothing in them means anything in a query. */
export function fullTextWords(text: string): FullTextWord[] {
  return text
    .normalize('NFC')
    .split(/[^\p{L}\p{N}\p{M}]+/u)
    .map((written) => ({ plain: withoutAccents(written), written }))
    .filter(({ plain }) => plain !== '');
}

function withoutAccents(word: string): string {
  return word
    .normalize('NFD')
    .replaceAll(/[\u0300-\u036f]+/g, '')
    .normalize('NFC');
}

export interface FullTextMatch {
  /** All of them must be there; see {@link fullTextWords}. */
  readonly words: readonly FullTextWord[];
  /** Whether a word matches longer ones that start with it. */
  readonly prefix: boolean;
}

/** A condition on the row `this` (see `whereSql`) and its one value. */
export function fullTextCondition(
  { primaryKey }: Pick<TableDefinition, 'primaryKey'>,
  { name, config }: FullTextDefinition,
  { words, prefix }: FullTextMatch,
  dialect: Dialect,
): { readonly text: string; readonly value: string } {
  if (dialect === 'postgres')
    return {
      text: `this.${name} @@ to_tsquery(${quoteText(config)}::regconfig, $1)`,
      value: words.map(({ plain }) => `'${plain}'${prefix ? ':*' : ''}`).join(' & '),
    };
  const keys = primaryKey.map((column) => `this.${column}`);
  const found = `select ${primaryKey.map((_, index) => `r.k${index}`).join(', ')} from ${q(name)} f join ${q(rowsName(name))} r on r.id = f.rowid where f.${q(name)} match $1`;
  return {
    text: `${keys.length === 1 ? keys.join('') : `(${keys.join(', ')})`} in (${found})`,
    value: words.map((word) => sqliteWord(word, prefix)).join(' AND '),
  };
}

/** FTS5 takes accents off Latin letters only: of others (й, ό) a word is indexed as it was written. */
function sqliteWord({ plain, written }: FullTextWord, prefix: boolean): string {
  const forms = [...new Set([written, plain])].map((form) => `"${form}"${prefix ? ' *' : ''}`);
  return forms.length === 1 ? forms.join('') : `(${forms.join(' OR ')})`;
}
