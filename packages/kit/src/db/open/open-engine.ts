import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Dialect } from '../dialect.ts';
import type { Engine } from '../engine/engine.ts';
import { createPrivateFile } from '../engine/sqlite/private-file.ts';
import { isAboutFile, UnusableFile } from '../engine/sqlite/unusable-file.ts';
import { silentLog } from '../log.ts';
import { type DatabaseOptions, WAIT_MS_MAX } from './database-options.ts';

const POOL_MAX = 10;
/** Also of a server that is woken up by the connection. */
const CONNECT_MS_MAX = 4000;
const SILENCE_MS_MAX = 2000;
const CONNECTION_AGE_MS_MAX = 600_000;
const KEEP_ALIVE_MS = 10_000;
const STUCK_MS = 60_000;

/** The file of `sqlite:…`; null for a database in memory or on a server. */
export function sqliteFile(url: string): string | null {
  if (!url.startsWith('sqlite:')) return null;
  const path = url.slice('sqlite:'.length).replace(/^\/\/(?=\/)/, '');
  return path === '' || path === ':memory:' ? null : resolve(path);
}

/** Throws for an address of neither. */
export function dialectOf(url: string): Dialect {
  if (url === 'sqlite:') throw new Error('A SQLite URL needs a file: sqlite:./data/app.db, or sqlite::memory: for an in-memory database.');
  if (url.startsWith('sqlite:')) return 'sqlite';
  if (/^postgres(ql)?:\/\//.test(url)) return 'postgres';
  throw new Error(`A database URL starts with sqlite: or postgres://, this one with "${url.slice(0, url.indexOf(':') + 1)}".`);
}

/** Only the driver that the URL needs is loaded. */
export async function openEngine(url: string, options: DatabaseOptions): Promise<Engine> {
  const waitMsMax = options.waitMsMax ?? WAIT_MS_MAX;
  if (dialectOf(url) === 'sqlite') {
    const stored = sqliteFile(url);
    const file = stored === null || (options.createFile === false && !existsSync(stored)) ? ':memory:' : stored;
    try {
      if (file !== ':memory:') await createPrivateFile(file);
      const { SqliteEngine } = await import('../engine/sqlite/engine.ts');
      return await SqliteEngine.open(file, {
        durability: options.durability ?? 'normal',
        busyDeadlineMs: waitMsMax,
        log: options.log ?? silentLog,
      });
    } catch (error) {
      throw isAboutFile(error) ? new UnusableFile(file, error) : error;
    }
  }
  const { PostgresEngine } = await import('../engine/postgres/engine.ts');
  const engine = new PostgresEngine(url, {
    poolMax: options.poolMax ?? POOL_MAX,
    prepare: options.prepare ?? true,
    acquireDeadlineMs: waitMsMax,
    connectMsMax: options.connectMsMax ?? CONNECT_MS_MAX,
    silenceMsMax: options.silenceMsMax ?? SILENCE_MS_MAX,
    connectionAgeMsMax: options.connectionAgeMsMax ?? CONNECTION_AGE_MS_MAX,
    keepAliveMs: options.keepAliveMs ?? KEEP_ALIVE_MS,
    stuckMs: STUCK_MS,
    statementMsMax: options.statementMsMax,
    log: options.log ?? silentLog,
  });
  try {
    await engine.run('select 1', []);
  } catch (error) {
    await engine.close();
    throw error;
  }
  return engine;
}
