import { createReadStream, existsSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import type { Client } from 'pg';
import type { DatabasePlace } from '../../src/testing/test-database.ts';
import { findKey, findWebhookSecret, type Finding, type KnownSecrets } from './find-secrets.ts';

/** A secret and the table and column (or file) that holds it. */
export interface Leak extends Finding {
  readonly where: string;
}

/** The one place for signing secrets: as given without encryption keys, else as `fernet:<token>`. */
const SIGNING_SECRETS = /^webhook_endpoints\.(secret|previous_secret|older_secrets)$/;

type Row = Readonly<Record<string, string | null>>;

/**
 * Columns are joined by the database and rows searched this many at a time: cell by cell takes ten times as long, and rows that the database
 * joins, too, are sorted on the disk: of ten tables of a million rows that took more than 15 minutes.
 */
const PIECE_ROWS = 10_000;

/** Looks at everything a database holds, and on SQLite also at what the file keeps of rows that are gone. */
export async function scanDatabase({ dialect, url }: Pick<DatabasePlace, 'dialect' | 'url'>, known: KnownSecrets): Promise<Leak[]> {
  if (dialect === 'postgres') return scanPostgres(url, known);
  const file = url.slice('sqlite:'.length);
  if (!existsSync(file)) return []; // it was never opened
  const leaks = scanFile(file, known);
  if (leaks.length > 0) return leaks;
  for (const part of [file, `${file}-wal`]) {
    const found = await findKeyIn(part, known);
    if (found !== null) return [{ ...found, where: `${part.slice(part.lastIndexOf('/') + 1)}, in what is left of deleted rows` }];
  }
  return [];
}

/** A file of a large test is longer than a string can be. */
const FILE_PIECE_BYTES = 64 * 1024 * 1024;
/** Longer than what `findKey` looks for: what two pieces share is found in one of them. */
const OVERLAP_BYTES = 4096;

/** The first key in a file, read in pieces. */
export async function findKeyIn(file: string, known: KnownSecrets, pieceBytes = FILE_PIECE_BYTES): Promise<Finding | null> {
  if (!existsSync(file)) return null;
  let end = '';
  for await (const bytes of createReadStream(file, { highWaterMark: pieceBytes }) as AsyncIterable<Buffer>) {
    const piece = end + bytes.toString('latin1');
    const found = findKey(piece, known);
    if (found !== null) return found;
    end = piece.slice(-OVERLAP_BYTES);
  }
  return null;
}

/** Whether a table is worth a look at its cells, one by one. */
function mayHold(piece: string, known: KnownSecrets): boolean {
  return (findKey(piece, known) ?? findWebhookSecret(piece)) !== null;
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
    // The catalog itself: its views of the standard take twenty times as long, and every database of every test is searched.
    const columns = await client.query<{ table: string; name: string; type: string }>(
      `select c.relname as table, a.attname as name, t.typname as type
       from pg_class c join pg_attribute a on a.attrelid = c.oid join pg_type t on t.oid = a.atttypid
       where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and a.attnum > 0 and not a.attisdropped
         and t.typname not in ('uuid', 'int4', 'int8', 'bool', 'timestamptz', 'date', 'numeric')`,
    );
    const tables = Map.groupBy(columns.rows, (column) => column.table);
    const leaks: Leak[] = [];
    for (const table of await filledOf(client, [...tables.keys()])) {
      const ofTable = tables.get(table) ?? [];
      const texts = ofTable.map(({ name, type }) => ({
        name,
        text: type === 'bytea' ? `encode(${quoted(name)}, 'escape')` : `${quoted(name)}::text`,
      }));
      if (!(await mayHoldSecrets(client, table, `concat_ws(chr(10), ${texts.map(({ text }) => text).join(', ')})`, known))) continue;
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

/** Those of the tables that have a row: most have none, and they are asked all at once. */
async function filledOf(client: Client, tables: readonly string[]): Promise<string[]> {
  if (tables.length === 0) return [];
  const each = tables.map((table) => `select ${client.escapeLiteral(table)} as name where exists (select from ${quoted(table)})`);
  return (await client.query<{ name: string }>(each.join(' union all '))).rows.map(({ name }) => name);
}

async function mayHoldSecrets(client: Client, table: string, line: string, known: KnownSecrets): Promise<boolean> {
  await client.query('begin');
  try {
    await client.query(`declare lines no scroll cursor for select ${line} as line from ${quoted(table)}`);
    for (;;) {
      const { rows } = await client.query<{ line: string }>(`fetch ${PIECE_ROWS} from lines`);
      if (mayHold(rows.map((row) => row.line).join('\n'), known)) return true;
      if (rows.length < PIECE_ROWS) return false;
    }
  } finally {
    await client.query('rollback');
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
    const table = String(name);
    const everything = database.prepare(`select * from ${quoted(table)}`);
    const columns = everything.columns().map((column) => quoted(column.name));
    // As bytes: a text would end at the first NUL of a blob.
    const lines = database.prepare(`select cast(concat_ws(char(10), ${columns.join(', ')}) as blob) as line from ${quoted(table)}`);
    if (!piecesOf(lines.iterate() as Iterable<{ line: Uint8Array }>).some((piece) => mayHold(piece, known))) return [];
    // Reading an integer beyond 2^53 as a number throws.
    everything.setReadBigInts(true);
    const rows = everything.all().map((row) => Object.fromEntries(Object.entries(row).map(([column, value]) => [column, textOf(value)])));
    return scanRows(table, rows, known);
  });
}

function* piecesOf(lines: Iterable<{ readonly line: Uint8Array }>): Generator<string, void, undefined> {
  let piece: Uint8Array[] = [];
  for (const { line } of lines) {
    if (piece.push(line, NEW_LINE) < 2 * PIECE_ROWS) continue;
    yield Buffer.concat(piece).toString('latin1');
    piece = [];
  }
  yield Buffer.concat(piece).toString('latin1');
}

const NEW_LINE = Buffer.from('\n');

function textOf(value: unknown): string | null {
  if (value instanceof Uint8Array) return Buffer.from(value).toString('latin1');
  return typeof value === 'string' ? value : null;
}

function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}
