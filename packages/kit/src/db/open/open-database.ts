import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { type Clock, systemClock } from '../clock.ts';
import { type DatabaseObserver, DatabaseObservers, type PoolStatus } from '../engine/database-observer.ts';
import type { Database, Db } from '../engine/db.ts';
import type { Engine, ListenOptions, NotificationListener } from '../engine/engine.ts';
import { Handle, type HandleContext } from '../engine/handle.ts';
import { type DbLog, silentLog } from '../log.ts';
import { maskPassword } from './mask-password.ts';
import { ObservedRunner } from '../engine/observed-runner.ts';
import type { QueryObserver } from '../engine/query-observer.ts';
import { StatementShares } from '../engine/statement-shares.ts';
import { isAboutFile, UnusableFile } from '../engine/sqlite/unusable-file.ts';
import { INPUT_LIMITS } from '../../options/input-limits.ts';
import { type OptionRules, readOptions } from '../../options/read-options.ts';
import { aFunction, clock, filledText, flag, milliseconds, objectWith, oneOf, wholeNumber } from '../../options/value-rule.ts';
import { createPrivateFile } from '../engine/sqlite/private-file.ts';

export interface DatabaseOptions {
  /** The alias under which code finds it: `currentTransaction('reports')`. */
  readonly name?: string;
  /** PostgreSQL connections at most. */
  readonly poolMax?: number;
  /**
   * What a commit on SQLite survives. `normal` (default): a crash of the process; a power loss may take the last commits.
   * `full`: a power loss too, at the price of one sync to disk per commit.
   */
  readonly durability?: 'normal' | 'full';
  /** False: no named prepared statements, for poolers that cannot keep them. */
  readonly prepare?: boolean;
  /** How long a statement waits for the writer (SQLite) or a free connection (PostgreSQL) before it is refused. */
  readonly waitMsMax?: number;
  /** PostgreSQL: how long opening a connection may take; with several hosts, each. `connect_timeout` of the URL takes precedence. */
  readonly connectMsMax?: number;
  /**
   * PostgreSQL: how long a statement may be without an answer before the server is asked, over a new connection, whether it works on it. A
   * connection whose server is gone is closed. 0: the server is not asked.
   */
  readonly silenceMsMax?: number;
  /** PostgreSQL: an older connection is closed when it comes back, so that one opens where the address leads now. */
  readonly connectionAgeMsMax?: number;
  /**
   * PostgreSQL: after so long without traffic the system asks whether the other side is there, each second, 10 times. 0: never.
   * `keepalives_idle` and `keepalives=0` of the URL take precedence.
   */
  readonly keepAliveMs?: number;
  /** Percent of the connections that one caller's reads may have when they can take long. Default: 50; at least one connection. */
  readonly callerPercent?: number;
  /** Such reads of one caller that may wait for its share; one more is 503 `too_busy`. Default: 20. */
  readonly callerWaitingMax?: number;
  /** PostgreSQL: no statement of these connections runs longer, whoever sent it. Default: as the server, or the role, has it. Behind a pooler set it on the role. */
  readonly statementMsMax?: number;
  /** False: a SQLite file that does not exist is not created; the database is then empty and in memory. */
  readonly createFile?: boolean;
  /** The time. Default: the system clock. */
  readonly clock?: Clock;
  /** Called after each statement, with its text and duration. */
  readonly onQuery?: QueryObserver;
  /** Where warnings and errors are written. Default: nowhere. */
  readonly log?: DbLog;
}

const rules: OptionRules<DatabaseOptions> = {
  name: filledText,
  poolMax: wholeNumber(1),
  durability: oneOf('normal', 'full'),
  prepare: flag,
  waitMsMax: milliseconds(0),
  connectMsMax: milliseconds(1),
  silenceMsMax: milliseconds(0),
  connectionAgeMsMax: milliseconds(1),
  keepAliveMs: milliseconds(0),
  callerPercent: wholeNumber(1, 100),
  callerWaitingMax: wholeNumber(0),
  statementMsMax: milliseconds(1),
  createFile: flag,
  clock,
  onQuery: aFunction,
  log: objectWith('a log with warn and error, such as pino()', 'warn', 'error'),
};

const WAIT_MS_MAX = 10_000;
const POOL_MAX = 10;
/** Also of a server that is woken up by the connection. */
const CONNECT_MS_MAX = 4000;
const SILENCE_MS_MAX = 2000;
const CONNECTION_AGE_MS_MAX = 600_000;
const KEEP_ALIVE_MS = 10_000;
const STUCK_MS = 60_000;
const PAYLOAD_BYTES_MAX = 7999;
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
  readOptions('openDatabase()', options, rules);
  const engine = await openEngine(url, options);
  return new OpenedDatabase(url, engine, options);
}

/** The file of `sqlite:…`; null for a database in memory or on a server. */
export function sqliteFile(url: string): string | null {
  if (!url.startsWith('sqlite:')) return null;
  const path = url.slice('sqlite:'.length).replace(/^\/\/(?=\/)/, '');
  return path === '' || path === ':memory:' ? null : resolve(path);
}

/** Only the driver that the URL needs is loaded. */
async function openEngine(url: string, options: DatabaseOptions): Promise<Engine> {
  const waitMsMax = options.waitMsMax ?? WAIT_MS_MAX;
  if (url.startsWith('sqlite:')) {
    if (url === 'sqlite:')
      throw new Error('A SQLite URL needs a file: sqlite:./data/app.db, or sqlite::memory: for an in-memory database.');
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
  if (!/^postgres(ql)?:\/\//.test(url)) {
    throw new Error(`A database URL starts with sqlite: or postgres://, this one with "${url.slice(0, url.indexOf(':') + 1)}".`);
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

/** The handle outside any transaction, which also owns the connections. */
class OpenedDatabase extends Handle {
  readonly url: string;
  readonly #shares: StatementShares | undefined;
  #closed: Promise<void> | undefined;

  constructor(url: string, engine: Engine, options: DatabaseOptions) {
    const using = options.name ?? 'default';
    const observers = new DatabaseObservers(engine.dialect);
    if (options.onQuery !== undefined) observers.add({ onQuery: options.onQuery });
    const shares =
      engine.longStatementsMax === undefined
        ? undefined
        : new StatementShares({
            connections: engine.longStatementsMax,
            percent: options.callerPercent ?? INPUT_LIMITS.callerPercent,
            waitingMax: options.callerWaitingMax ?? INPUT_LIMITS.callerWaiting,
            waitMsMax: options.waitMsMax ?? WAIT_MS_MAX,
            streams: () => engine.streams ?? 0,
          });
    const runner = new ObservedRunner(engine, using, observers, shares);
    const context: HandleContext = {
      engine,
      using,
      clock: options.clock ?? systemClock,
      log: options.log ?? silentLog,
      database: () => this,
    };
    super(context, runner);
    this.#shares = shares;
    this.url = maskPassword(url);
  }

  listen(channel: string, listener: NotificationListener, options: ListenOptions = {}): Promise<() => Promise<void>> {
    readOptions('listen()', options, { onDisconnect: aFunction, onReconnect: aFunction });
    return this.context.engine.listen(channel, listener, options);
  }

  async notify(db: Db, channel: string, payload = ''): Promise<void> {
    if (Buffer.byteLength(payload) > PAYLOAD_BYTES_MAX)
      throw new RangeError('A notification carries at most 7,999 bytes: send a key, not the data.');
    await this.context.engine.notify(db, channel, payload);
  }

  get pool(): PoolStatus {
    const { pool } = this.context.engine;
    return this.#shares === undefined ? pool : { ...pool, waitingForShare: this.#shares.waiting };
  }

  observe(observer: DatabaseObserver): () => void {
    return this.runner.observers.add(observer);
  }

  get closed(): boolean {
    return this.#closed !== undefined;
  }

  close(): Promise<void> {
    // An application and its test may both end the same handle: the second waits for the first.
    this.#closed ??= this.context.engine.close();
    return this.#closed;
  }
}
