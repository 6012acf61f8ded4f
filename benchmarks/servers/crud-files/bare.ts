// The same by hand, without a toolkit: `node:http`, a bare cursor of the driver with CSV written by hand, and multi-row INSERTs of lines that
// were parsed and checked by hand. The argument is the database.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { DatabaseSync } from 'node:sqlite';
import { uuidv7 } from 'kit/db';
import pg from 'pg';
import { serving } from '../../harness/server-process.ts';
import { COLUMNS, OWNER } from './rows.ts';

const [database = ''] = process.argv.slice(2);
const CHUNK = 500;
const names = COLUMNS.join(', ');

type Row = Record<string, string | number | Date | null>;
interface Store {
  chunks(): AsyncIterable<readonly Row[]>;
  insert(rows: readonly (readonly unknown[])[]): Promise<void>;
}

const INPUT = ['id', 'owner_id', 'sku', 'title', 'quantity', 'total', 'note'];
const placesOf = (count: number, place: (number: number) => string) =>
  Array.from({ length: count }, (_, row) => `(${INPUT.map((__, column) => place(row * INPUT.length + column + 1)).join(', ')})`).join(', ');

function postgresStore(url: string): Store {
  const pool = new pg.Pool({ connectionString: url, max: 4 });
  return {
    async *chunks() {
      const client = await pool.connect();
      try {
        await client.query('begin read only');
        await client.query(`declare c no scroll cursor for select ${names} from rows where owner_id = '${OWNER}' order by id desc`);
        for (;;) {
          const { rows } = await client.query<Row>(`fetch forward ${CHUNK} from c`);
          if (rows.length > 0) yield rows;
          if (rows.length < CHUNK) return;
        }
      } finally {
        await client.query('rollback');
        client.release();
      }
    },
    async insert(rows) {
      const client = await pool.connect();
      try {
        await client.query('begin');
        for (let from = 0; from < rows.length; from += CHUNK) {
          const part = rows.slice(from, from + CHUNK);
          await client.query(`insert into rows (${INPUT.join(', ')}) values ${placesOf(part.length, (each) => `$${each}`)}`, part.flat());
        }
        await client.query('commit');
      } finally {
        client.release();
      }
    },
  };
}

function sqliteStore(file: string): Store {
  const connection = new DatabaseSync(file);
  connection.exec('pragma journal_mode = wal; pragma synchronous = normal');
  const select = `select ${names} from rows where owner_id = '${OWNER}' order by id desc`;
  return {
    async *chunks() {
      let chunk: Row[] = [];
      for (const row of connection.prepare(select).iterate() as Iterable<Row>) {
        chunk.push(row);
        if (chunk.length < CHUNK) continue;
        yield chunk;
        chunk = [];
      }
      if (chunk.length > 0) yield chunk;
    },
    async insert(rows) {
      connection.exec('begin immediate');
      for (let from = 0; from < rows.length; from += CHUNK) {
        const part = rows.slice(from, from + CHUNK);
        const text = `insert into rows (${INPUT.join(', ')}) values ${placesOf(part.length, () => '?')}`;
        connection.prepare(text).run(...(part.flat() as (string | number | null)[]));
      }
      connection.exec('commit');
    },
  };
}

function cell(value: string | number | Date | null | undefined): string {
  if (value === null || value === undefined) return '';
  if (value instanceof Date) return value.toISOString();
  const text = String(value);
  const safe = typeof value === 'string' && /^[=+\-@'\t\r\n]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

const store = database.startsWith('postgres') ? postgresStore(database) : sqliteStore(database.slice('sqlite:'.length));

async function sendFile(response: ServerResponse): Promise<void> {
  response.writeHead(200, { 'content-type': 'text/csv; charset=utf-8' });
  response.write(`${COLUMNS.join(',')}\r\n`);
  for await (const chunk of store.chunks()) {
    let text = '';
    for (const row of chunk) text += `${COLUMNS.map((name) => cell(row[name])).join(',')}\r\n`;
    if (!response.write(text)) await once(response, 'drain');
  }
  response.end();
}

async function takeFile(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const values: unknown[][] = [];
  for await (const line of createInterface({ input: request })) {
    if (line === '') continue;
    const { sku, title, quantity, total, note = null } = JSON.parse(line) as Record<string, unknown>;
    if (typeof sku !== 'string' || sku.length > 40 || typeof title !== 'string' || title.length > 200) throw new Error('422');
    if (typeof quantity !== 'number' || !Number.isInteger(quantity) || quantity < 0) throw new Error('422');
    if (typeof total !== 'string' || !/^-?\d{1,10}(\.\d{1,2})?$/.test(total) || (note !== null && typeof note !== 'string'))
      throw new Error('422');
    values.push([uuidv7(), OWNER, sku, title, quantity, total, note]);
  }
  await store.insert(values);
  response.writeHead(201, { 'content-type': 'application/json' }).end(JSON.stringify({ created: values.length }));
}

const server = createServer((request, response) => {
  const work = request.method === 'POST' ? takeFile(request, response) : sendFile(response);
  work.catch((error: unknown) => response.writeHead(500).end(String(error)));
});
server.listen(0, '127.0.0.1', () => serving((server.address() as AddressInfo).port));
