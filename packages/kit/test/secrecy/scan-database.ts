import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { DatabaseSync } from 'node:sqlite';
import type { DatabasePlace } from '../../src/testing/test-database.ts';
import { findKey, findWebhookSecret, type Finding, type KnownSecrets } from './find-secrets.ts';

/** A secret and the table and column (or file) that holds it. */
export interface Leak extends Finding {
  readonly where: string;
}

/** The one place for signing secrets: as given without encryption keys, else as `fernet:<token>`. */
const SIGNING_SECRETS = /^webhook_endpoints\.(secret|previous_secret|older_secrets)$/;

type Row = Readonly<Record<string, string | null>>;

/** Rows are joined by the database and searched this many at a time: cell by cell takes ten times as long. */
const PIECE_ROWS = 10_000;

/** Looks at everything a database holds, and on SQLite also at what the file keeps of rows that are gone. */
export async function scanDatabase({ dialect, url }: Pick<DatabasePlace, 'dialect' | 'url'>, known: KnownSecrets): Promise<Leak[]> {
  if (dialect === 'postgres') return scanPostgres(url, known);
  const file = url.slice('sqlite:'.length);
  if (!existsSync(file)) return []; // it was never opened
  const leaks = scanFile(file, known);
  if (leaks.length > 0) return leaks;
  for (const part of [file, `${file}-wal`]) {
    const found = findKey((await readFile(part).catch(() => Buffer.alloc(0))).toString('latin1'), known);
    if (found !== null) return [{ ...found, where: `${part.slice(part.lastIndexOf('/') + 1)}, in what is left of deleted rows` }];
  }
  return [];
}

/** Whether a table is worth a look at its cells, one by one. */
function mayHold(piece: string | null, known: KnownSecrets): boolean {
  return piece !== null && (findKey(piece, known) ?? findWebhookSecret(piece)) !== null;
}

function scanRows(table: string, rows: readonly Row[], known: KnownSecrets): Leak[] {
  return rows.flatMap((row) =>
    Object.entries(row).flatMap(([column, text]) => {
      const where = `${table}.${column}`;
      if (text === null) return [];
      const found = findKey(text, known) ?? findWebhookSecret(text, SIGNING_SECRETS.test(where) ? known.sealed : undefined);
      return found === null ? [] : [{ ...found, where }];
    }),
  );
}

async function scanPostgres(url: string, known: KnownSecrets): Promise<Leak[]> {
  const { default: pg } = await import('pg');
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const columns = await client.query<{ table: string; name: string; type: string }>(
      `select c.table_name as table, c.column_name as name, c.data_type as type from information_schema.columns c
       join information_schema.tables t using (table_schema, table_name)
       where c.table_schema = 'public' and t.table_type = 'BASE TABLE'
         and c.data_type not in ('uuid', 'integer', 'bigint', 'boolean', 'timestamp with time zone', 'date', 'numeric')`,
    );
    const leaks: Leak[] = [];
    for (const [table, ofTable] of Map.groupBy(columns.rows, (column) => column.table)) {
      const texts = ofTable.map(({ name, type }) => ({
        name,
        text: type === 'bytea' ? `encode(${quoted(name)}, 'escape')` : `${quoted(name)}::text`,
      }));
      const pieces = await client.query<{ text: string | null }>(
        piecesOf(table, `concat_ws(chr(10), ${texts.map(({ text }) => text).join(', ')})`, 'string_agg(line, chr(10))'),
      );
      if (!pieces.rows.some(({ text }) => mayHold(text, known))) continue;
      const cells = await client.query<Row>(
        `select ${texts.map(({ name, text }) => `${text} as ${quoted(name)}`).join(', ')} from ${quoted(table)}`,
      );
      leaks.push(...scanRows(table, cells.rows, known));
    }
    return leaks;
  } finally {
    await client.end();
  }
}

/** The text of a table, a line for each value, in pieces of so many rows. */
function piecesOf(table: string, line: string, joined: string): string {
  return `select ${joined} as text from (select ${line} as line, row_number() over () / ${PIECE_ROWS} as piece from ${quoted(table)}) as "lines"
          group by piece`;
}

function scanFile(file: string, known: KnownSecrets): Leak[] {
  const database = new DatabaseSync(file, { readOnly: true });
  try {
    return scanOpen(database, known);
  } finally {
    database.close();
  }
}

/** Everything an open SQLite database holds. */
export function scanOpen(database: DatabaseSync, known: KnownSecrets): Leak[] {
  const tables = database.prepare(`select name from sqlite_master where type = 'table'`).all();
  return tables.flatMap(({ name }) => {
    const table = String(name);
    const everything = database.prepare(`select * from ${quoted(table)}`);
    const columns = everything.columns().map((column) => quoted(column.name));
    // As bytes: a text would end at the first NUL of a blob.
    const pieces = database
      .prepare(piecesOf(table, `concat_ws(char(10), ${columns.join(', ')})`, 'cast(group_concat(line, char(10)) as blob)'))
      .all();
    if (!pieces.some(({ text }) => mayHold(textOf(text), known))) return [];
    // Reading an integer beyond 2^53 as a number throws.
    everything.setReadBigInts(true);
    const rows = everything.all().map((row) => Object.fromEntries(Object.entries(row).map(([column, value]) => [column, textOf(value)])));
    return scanRows(table, rows, known);
  });
}

function textOf(value: unknown): string | null {
  if (value instanceof Uint8Array) return Buffer.from(value).toString('latin1');
  return typeof value === 'string' ? value : null;
}

function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}
