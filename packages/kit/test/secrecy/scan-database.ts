import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { DatabaseSync } from 'node:sqlite';
import pg from 'pg';
import type { DatabasePlace } from '../../src/testing/test-database.ts';
import { findKey, findWebhookSecret, type Finding, type KnownSecrets } from './find-secrets.ts';

/** A secret and the table and column (or file) that holds it. */
export interface Leak extends Finding {
  readonly where: string;
}

/** The one place for signing secrets: as given without encryption keys, else as `fernet:<token>`. */
const SIGNING_SECRETS = /^webhook_endpoints\.(secret|previous_secret|older_secrets)$/;

type Row = Readonly<Record<string, string | null>>;

interface TextReader {
  tables(): Promise<readonly string[]>;
  /** The rows that hold a text long enough for a secret, as text. */
  rows(table: string): Promise<readonly Row[]>;
}

/** Looks at everything a database holds, and on SQLite also at what the file keeps of rows that are gone. */
export async function scanDatabase({ dialect, url }: Pick<DatabasePlace, 'dialect' | 'url'>, known: KnownSecrets): Promise<Leak[]> {
  if (dialect === 'postgres') return withPostgres(url, (reader) => scanTables(reader, known));
  const file = url.slice('sqlite:'.length);
  if (!existsSync(file)) return []; // nobody opened it
  const leaks = scanFile(file, known);
  if (leaks.length > 0) return leaks;
  for (const part of [file, `${file}-wal`]) {
    const found = findKey((await readFile(part).catch(() => Buffer.alloc(0))).toString('latin1'), known);
    if (found !== null) return [{ ...found, where: `${part.slice(part.lastIndexOf('/') + 1)}, in what is left of deleted rows` }];
  }
  return [];
}

async function scanTables(reader: TextReader, known: KnownSecrets): Promise<Leak[]> {
  const leaks: Leak[] = [];
  for (const table of await reader.tables()) leaks.push(...scanRows(table, await reader.rows(table), known));
  return leaks;
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

async function withPostgres<R>(url: string, work: (reader: TextReader) => Promise<R>): Promise<R> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const columnsOf = new Map<string, { name: string; type: string }[]>();
  try {
    return await work({
      async tables() {
        const { rows } = await client.query<{ table: string; name: string; type: string }>(
          `select c.table_name as table, c.column_name as name, c.data_type as type from information_schema.columns c
           join information_schema.tables t using (table_schema, table_name)
           where c.table_schema = 'public' and t.table_type = 'BASE TABLE'
             and c.data_type not in ('uuid', 'integer', 'bigint', 'boolean', 'timestamp with time zone', 'date', 'numeric')`,
        );
        for (const { table, ...column } of rows) columnsOf.set(table, [...(columnsOf.get(table) ?? []), column]);
        return [...columnsOf.keys()];
      },
      async rows(table) {
        const columns = (columnsOf.get(table) ?? []).map(({ name, type }) => ({
          name,
          text: type === 'bytea' ? `encode(${quoted(name)}, 'escape')` : `${quoted(name)}::text`,
        }));
        const { rows } = await client.query<Record<string, string | null>>(
          `select ${columns.map(({ name, text }) => `${text} as ${quoted(name)}`).join(', ')} from ${quoted(table)}
           where concat_ws(' ', ${columns.map(({ text }) => text).join(', ')}) ~ '[0-9A-Za-z+/=_-]{25}'`,
        );
        return rows;
      },
    });
  } finally {
    await client.end();
  }
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
    const everything = database.prepare(`select * from ${quoted(String(name))}`);
    // Reading a whole number beyond 2^53 as a number throws.
    everything.setReadBigInts(true);
    const rows = everything.all().map((row) => Object.fromEntries(Object.entries(row).map(([column, value]) => [column, textOf(value)])));
    return scanRows(String(name), rows, known);
  });
}

function textOf(value: unknown): string | null {
  if (value instanceof Uint8Array) return Buffer.from(value).toString('latin1');
  return typeof value === 'string' ? value : null;
}

function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}
