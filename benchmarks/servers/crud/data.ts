// The rows every contender starts with, and a database of its own for each.
import { copyFileSync } from 'node:fs';
import { openDatabase, tableStatements, type Database } from 'kit/db';
import pg from 'pg';
import { customers, orderItems, orders, ownerId, STATUSES } from './shop.ts';

export interface DataSize {
  readonly owners: number;
  readonly ordersPerOwner: number;
  /** Of the newest orders of each owner: those on the first pages. */
  readonly itemsPerOrder: number;
}

/** Orders of each owner that have items. */
const ORDERS_WITH_ITEMS = 200;

const BATCH = 1000;
const start = Date.UTC(2026, 0, 1);

/** `kind` tells tables apart; ids rise with time, as UUIDv7 do. */
export function rowId(kind: number, index: number): string {
  const time = (start + index).toString(16).padStart(12, '0');
  return `${time.slice(0, 8)}-${time.slice(8)}-7000-8${kind}00-${index.toString(16).padStart(12, '0')}`;
}

/** The nth order of an owner. */
export function orderId({ owners }: DataSize, owner: number, index: number): string {
  return rowId(1, index * owners + owner);
}

export async function fill(db: Database, size: DataSize): Promise<void> {
  for (const { table } of [customers, orders, orderItems]) for (const text of tableStatements(table, db.dialect)) await db.query(text);
  const { owners, ordersPerOwner, itemsPerOrder } = size;
  const customerRows = Array.from({ length: owners * 10 }, (_, index) => [rowId(0, index), ownerId(index % owners), `Customer ${index}`]);
  await insertAll(db, 'customers', ['id', 'owner_id', 'name'], customerRows);
  const total = owners * ordersPerOwner;
  const orderNames = ['id', 'owner_id', 'customer_id', 'item', 'status', 'quantity', 'total', 'note', 'created_at', 'updated_at'];
  const itemNames = ['id', 'owner_id', 'order_id', 'sku', 'amount'];
  for (let from = 0; from < total; from += BATCH) {
    const indexes = Array.from({ length: Math.min(BATCH, total - from) }, (_, index) => from + index);
    await insertAll(
      db,
      'orders',
      orderNames,
      indexes.map((index) => {
        const at = new Date(start + index * 1000);
        const customer = rowId(0, (index % owners) + owners * (index % 10));
        // Two of three orders are open: a page of 50 open ones reads 50 to 100 entries of the index.
        const status = STATUSES[Math.floor(index / owners) % 3 === 2 ? 1 : 0];
        return [
          rowId(1, index),
          ownerId(index % owners),
          customer,
          `Item ${index % 500}`,
          status,
          1 + (index % 90),
          `${index % 900}.50`,
          null,
          at,
          at,
        ];
      }),
    );
    const withItems = indexes.filter((index) => index >= total - owners * ORDERS_WITH_ITEMS);
    const items = withItems.flatMap((index) =>
      Array.from({ length: itemsPerOrder }, (_, place) => [
        rowId(2, index * itemsPerOrder + place),
        ownerId(index % owners),
        rowId(1, index),
        `sku-${place}`,
        place + 1,
      ]),
    );
    if (items.length > 0) await insertAll(db, 'order_items', itemNames, items);
  }
  await db.query('analyze');
}

/** SQLite takes 32,766 values in one statement. */
const VALUES_MAX = 10_000;

async function insertAll(db: Database, table: string, names: readonly string[], rows: readonly (readonly unknown[])[]): Promise<void> {
  const perStatement = Math.floor(VALUES_MAX / names.length);
  await db.transaction(async (tx) => {
    for (let from = 0; from < rows.length; from += perStatement) {
      const part = rows.slice(from, from + perStatement);
      const places = part.map((_, row) => `(${names.map((__, column) => `$${row * names.length + column + 1}`).join(', ')})`).join(', ');
      await tx.query(`insert into ${table} (${names.join(', ')}) values ${places}`, part.flat());
    }
  });
}

/** Fills one database and hands out copies, so that what one contender writes is not another's burden. */
export interface Databases {
  copy(name: string): Promise<string>;
}

export async function sqliteDatabases(folder: string, size: DataSize): Promise<Databases> {
  const file = `${folder}/template.db`;
  const db = await openDatabase(`sqlite:${file}`);
  await fill(db, size);
  await db.query('pragma wal_checkpoint(truncate)');
  await db.close();
  return {
    async copy(name) {
      copyFileSync(file, `${folder}/${name}.db`);
      return `sqlite:${folder}/${name}.db`;
    },
  };
}

export async function postgresDatabases(url: string, size: DataSize): Promise<Databases> {
  const admin = new pg.Pool({ connectionString: url, max: 1 });
  await admin.query('create database crud_template');
  const template = databaseUrl(url, 'crud_template');
  const db = await openDatabase(template);
  await fill(db, size);
  await db.query('vacuum analyze');
  await db.close();
  await admin.end();
  return {
    async copy(name) {
      const client = new pg.Client({ connectionString: url });
      await client.connect();
      await client.query(`create database crud_${name} template crud_template`);
      await client.end();
      return databaseUrl(url, `crud_${name}`);
    },
  };
}

function databaseUrl(url: string, name: string): string {
  const changed = new URL(url);
  changed.pathname = `/${name}`;
  return changed.href;
}
