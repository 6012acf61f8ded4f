import { noSuchDatabase } from '../../db/open/named-database.ts';
import type { Clock } from '../../db/clock.ts';
import type { Database } from '../../db/engine/db.ts';
import type { DatabaseOptions } from '../../db/open/database-options.ts';
import { LazyDatabase } from '../../db/open/lazy-database.ts';
import { openDatabase } from '../../db/open/open-database.ts';
import { useDataKeys } from '../../db/rows/reveal.ts';
import type { DataKeys } from '../../db/sealing/data-keys.ts';
import type { Fault } from '../../options/fault.ts';
import type { Log } from '../../http/log.ts';
import type { AppOptions } from '../declare/options.ts';

type Source = string | Database;

interface DatabasesOptions extends Pick<DatabaseOptions, 'prepare'> {
  readonly replicas?: ReadonlySet<string>;
  /** Reads the keys of encrypted columns; undefined where no model has any. */
  readonly readKeys?: (() => Promise<DataKeys>) | undefined;
}

/** The app's databases. Opened once; the app closes those that it opened, not those that were passed in open. */
export class Databases {
  readonly #sources: ReadonlyMap<string, Source>;
  readonly #options: Pick<DatabaseOptions, 'prepare'>;
  /** Aliases that are only read, while they can be reached. */
  readonly #replicas: ReadonlySet<string>;
  readonly #readKeys: DatabasesOptions['readKeys'];
  #dataKeys: DataKeys | undefined;
  readonly #open = new Map<string, Database>();
  /** By name; made again after one was opened or closed. */
  #all: Readonly<Record<string, Database>> | undefined;

  constructor(sources: ReadonlyMap<string, Source>, { prepare = true, replicas = new Set(), readKeys }: DatabasesOptions = {}) {
    this.#sources = new Map(
      [...sources].map(([name, source]) => [
        name,
        replicas.has(name) && typeof source === 'string' ? lazily(name, source, prepare) : source,
      ]),
    );
    this.#options = { prepare };
    this.#replicas = replicas;
    this.#readKeys = readKeys;
    for (const [name, source] of this.#sources) if (typeof source !== 'string') this.#open.set(name, source);
  }

  async open(clock: Clock, log: Log, createFile = true): Promise<void> {
    const dataKeys = (this.#dataKeys ??= await this.#readKeys?.());
    const keys = dataKeys === undefined ? {} : { dataKeys };
    for (const [name, source] of this.#sources) {
      if (dataKeys !== undefined && typeof source !== 'string') useDataKeys(source, dataKeys);
      if (source instanceof LazyDatabase) {
        const opened = source.open({ clock, log, createFile });
        // The app starts without it.
        if (this.#replicas.has(name))
          opened.catch((error: unknown) =>
            log.warn({ err: error, database: name }, 'a replica cannot be reached: reads go to the primary'),
          );
        else await opened;
      }
      if (typeof source !== 'string' || this.#open.has(name)) continue;
      this.#open.set(name, await openDatabase(source, { ...this.#options, ...keys, name, clock, log, createFile }));
      this.#all = undefined;
    }
  }

  get(name: string): Database {
    const found = this.#open.get(name);
    if (found !== undefined) return found;
    if (this.#sources.has(name)) throw new Error(`The database "${name}" is not open yet: await app.ready() first.`);
    throw new Error(noSuchDatabase(name, [...this.#sources.keys()]));
  }

  get all(): Readonly<Record<string, Database>> {
    return (this.#all ??= Object.freeze(Object.fromEntries(this.#open)));
  }

  /** Closes all of them, even when one fails. */
  async close(log: Log): Promise<void> {
    for (const [name, source] of this.#sources) {
      const database = this.#open.get(name);
      if (database === undefined || !(typeof source === 'string' || source instanceof LazyDatabase)) continue;
      this.#open.delete(name);
      this.#all = undefined;
      await database.close().catch((error: unknown) => log.error({ err: error, database: name }, 'a database could not be closed'));
    }
  }
}

function lazily(name: string, url: string, prepare: boolean): Source {
  // A wrong address is reported as such.
  return /^(sqlite:.|postgres(ql)?:\/\/)/.test(url) ? new LazyDatabase(url, { name, prepare }) : url;
}

/** What `database` in the options, or DATABASE_URL, means. */
export function databaseSources(given: AppOptions['database'], url: string | undefined, faults: Fault[]): ReadonlyMap<string, Source> {
  const source = given ?? url;
  if (source === undefined) {
    faults.push({
      id: 'E011',
      message: 'The app has no database.',
      hint: 'Set DATABASE_URL or createApp({ database: "sqlite:./data/app.db" }).',
    });
    return new Map();
  }
  if (typeof source === 'string' || isDatabase(source)) {
    if (typeof source === 'string') checkUrl(source, given === undefined ? 'DATABASE_URL' : 'createApp: database', faults);
    return new Map([['default', source]]);
  }
  if (!Object.hasOwn(source, 'default')) {
    faults.push({ id: 'E011', message: 'None of the databases is called "default".', hint: 'Handlers get it as db; name one "default".' });
  }
  for (const [alias, each] of Object.entries(source)) {
    if (typeof each === 'string') checkUrl(each, `createApp: database "${alias}"`, faults);
    if (typeof each === 'string' || each.using === alias) continue;
    faults.push({
      id: 'E011',
      message: `The database passed as "${alias}" was opened as "${each.using}".`,
      hint: `openDatabase(url, { name: "${alias}" }), so that events, jobs and logs call it by the same name.`,
    });
  }
  return new Map(Object.entries(source));
}

/** The URL itself is not shown: it may hold a password. */
export function checkUrl(url: string, where: string, faults: Fault[]): void {
  if (/^(sqlite:.|postgres(ql)?:\/\/)/.test(url)) return;
  faults.push({
    id: 'E011',
    message: `${where} is not the address of a database.`,
    hint: 'Write sqlite:./data/app.db or postgres://user:password@host:5432/name.',
  });
}

function isDatabase(value: object): value is Database {
  return typeof (value as Partial<Database>).transaction === 'function';
}
