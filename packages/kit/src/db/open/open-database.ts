import type { Database } from '../engine/db.ts';
import { readOptions } from '../../options/read-options.ts';
import { type DatabaseOptions, databaseRules } from './database-options.ts';
import { openEngine } from './open-engine.ts';
import { DataKeys, readDataKeys } from '../sealing/data-keys.ts';
import { OpenedDatabase } from './opened-database.ts';

/**
 * Opens `sqlite:./data/app.db`, `sqlite::memory:` or `postgres://…`. Rejects when the database cannot be reached.
 *
 * @example
 * ```ts
 * const db = await openDatabase('postgres://localhost/shop', { poolMax: 20 });
 * await db.transaction(async (tx) => insert(tx, orders, order));
 * ```
 */
export async function openDatabase(url: string, options: DatabaseOptions = {}): Promise<Database> {
  if (typeof url !== 'string') throw new TypeError('openDatabase(): the first argument is the URL, such as "sqlite:./data/app.db".');
  readOptions('openDatabase()', options, databaseRules);
  const { dataKeys, ...more } = options;
  const keys = dataKeys === undefined || dataKeys instanceof DataKeys ? dataKeys : await readDataKeys(dataKeys);
  const engine = await openEngine(url, more);
  return new OpenedDatabase(url, engine, more, keys);
}
