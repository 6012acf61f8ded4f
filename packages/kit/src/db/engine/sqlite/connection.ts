import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { StatementResult } from '../engine.ts';
import { dbErrors } from '../../errors.ts';
import { encodeSqlite, type SqliteValue } from './codec.ts';
import { RowDecoder } from './row-decoder.ts';
import { CONTINUES } from './continues-sql.ts';
import { translateFailure } from './translate-failure.ts';
import { loadNodeSqlite } from './load-node-sqlite.ts';
import { BoundedMap } from '../../values/bounded-map.ts';

interface Prepared {
  readonly statement: StatementSync;
  /** `*` is expanded when a statement is prepared, so it must notice that another process changed a table. */
  readonly hasStar: boolean;
  /** Undefined for statements without a result. */
  readonly decoder: RowDecoder | undefined;
}

/** Rows as SQLite has them. */
export interface RawRows {
  readonly decoder: RowDecoder;
  readonly rows: unknown[];
}

/** Statements kept prepared per connection; applications have tens to a few hundred shapes. */
const STATEMENTS_MAX = 500;

/**
 * Pages in the log before they are copied to the file, which waits for the disk: 16 MB. Writes to random places of an index, such as those
 * of idempotency keys, then share copies (a write with a key took 103 µs with SQLite's 1,000 pages, 84 µs with these).
 */
export const CHECKPOINT_PAGES = 4000;

/** Releases of SQLite before 3.51 have no checkpoint that only counts, and would copy instead. */
export function countsLogPages(version: string | undefined = process.versions['sqlite']): boolean {
  const [major = 0, minor = 0] = (version ?? '').split('.').map(Number);
  return major > 3 || (major === 3 && minor >= 51);
}

export interface SqliteConnectionOptions {
  readonly readOnly: boolean;
  readonly durability: 'normal' | 'full';
  /** Whether the statement that runs has to end; see `continuesSql`. Default: when the time given to `run` is over. */
  readonly isStopped?: () => boolean;
}

export class StatementStopped extends Error {
  override readonly name = 'StatementStopped';
  constructor() {
    super('The statement was stopped.');
  }
}

/** One connection: prepared statements, declared-type decoding. Everything here is synchronous. */
export class SqliteConnection {
  readonly database: DatabaseSync;
  /** To prepare a statement takes 10 µs; a read by key with a prepared one takes 15 (db-overhead). */
  readonly #cache = new BoundedMap<string, Prepared>(STATEMENTS_MAX, 'forget the oldest');
  /** What every transaction runs: prepared when first needed. */
  #begin: StatementSync | undefined;
  #commit: StatementSync | undefined;
  #logPages: StatementSync | undefined;
  readonly #schemaVersion: StatementSync;
  #knownSchema: unknown;
  /** When the statement that runs has to end: see `continuesSql`. */
  #endsAt = Infinity;

  constructor(file: string, options: SqliteConnectionOptions) {
    // A busy timeout would block the event loop (985 ms measured); waiting is done outside, asynchronously.
    this.database = new (loadNodeSqlite().DatabaseSync)(file, { readOnly: options.readOnly, timeout: 0 });
    try {
      if (!options.readOnly) {
        this.database.exec('pragma journal_mode = wal');
        this.checkpointAt(CHECKPOINT_PAGES);
      }
      this.database.exec(`pragma synchronous = ${options.durability}; pragma foreign_keys = on; pragma temp_store = memory`);
      const { isStopped = () => performance.now() > this.#endsAt } = options;
      this.database.function(CONTINUES, { directOnly: true }, (_row: unknown) => {
        if (isStopped()) throw new StatementStopped();
        return 1;
      });
      this.#schemaVersion = this.database.prepare('pragma schema_version');
      this.#knownSchema = this.#readSchemaVersion();
    } catch (error) {
      this.database.close();
      throw error;
    }
  }

  /** A statement that looks at the time, with `continuesSql`, fails after so long. */
  run(text: string, parameters: readonly unknown[], as?: 'wire', deadlineMs?: number): StatementResult {
    const values = parameters.map(encodeSqlite);
    let result: RawRows | number;
    try {
      if (deadlineMs !== undefined) this.#endsAt = performance.now() + deadlineMs;
      result = this.read(text, values);
    } catch (error) {
      if (error instanceof StatementStopped)
        throw dbErrors.statement_timeout({ cause: error, message: `the statement did not end within ${deadlineMs} ms` });
      throw translateFailure(error);
    } finally {
      this.#endsAt = Infinity;
    }
    if (typeof result === 'number') return { rows: [], count: result };
    const rows = result.decoder.decode(result.rows, as);
    return { rows, count: rows.length };
  }

  /** The rows, not decoded, or the number of changed ones. Errors are those of SQLite. */
  read(text: string, values: readonly SqliteValue[]): RawRows | number {
    let prepared = this.#prepare(text);
    if (prepared.hasStar && this.#noticeSchemaChange()) prepared = this.#prepare(text);
    const { statement, decoder } = prepared;
    return decoder === undefined ? Number(statement.run(...values).changes) : { decoder, rows: statement.all(...values) };
  }

  *iterate(text: string, parameters: readonly unknown[], as?: 'wire'): Generator {
    const values = parameters.map(encodeSqlite);
    try {
      const { decoder, rows } = this.open(text, values);
      const build = decoder?.builderFor(as);
      for (const row of rows) yield build === undefined ? row : build(row);
    } catch (error) {
      throw translateFailure(error);
    }
  }

  /** Rows one by one, not decoded, on a statement of its own: a cached one could be restarted by the next caller. Errors are those of SQLite. */
  open(text: string, values: readonly SqliteValue[]): { readonly decoder: RowDecoder | undefined; readonly rows: Iterable<unknown[]> } {
    const { statement, decoder } = compile(this.database, text);
    return { decoder, rows: statement.iterate(...values) as unknown as Iterable<unknown[]> };
  }

  exec(text: string): void {
    try {
      this.database.exec(text);
    } catch (error) {
      throw translateFailure(error);
    }
  }

  /** Begins a transaction that may write. */
  begin(): void {
    try {
      (this.#begin ??= this.database.prepare('begin immediate')).run();
    } catch (error) {
      throw translateFailure(error);
    }
  }

  commit(): void {
    try {
      (this.#commit ??= this.database.prepare('commit')).run();
    } catch (error) {
      throw translateFailure(error);
    }
  }

  /** A commit that finds this many pages in the log copies them to the file. */
  checkpointAt(pages: number): void {
    this.database.exec(`pragma wal_autocheckpoint = ${pages}`);
  }

  /** Not within a transaction. Needs `countsLogPages`. */
  logPages(): number {
    return Number((this.#logPages ??= this.database.prepare('pragma wal_checkpoint(noop)')).get()?.['log']);
  }

  /** The tables have changed. SQLite itself looks only when a statement first steps, after its columns were asked for. */
  forgetStatements(): void {
    this.#cache.clear();
    this.database.prepare('select name from sqlite_master limit 1').all();
    this.#knownSchema = this.#readSchemaVersion();
  }

  close(): void {
    this.#cache.clear();
    this.#begin = undefined;
    this.#commit = undefined;
    this.#logPages = undefined;
    if (this.database.isOpen) this.database.close();
  }

  #prepare(text: string): Prepared {
    // Ever new texts do not push out those in use.
    const known = this.#cache.use(text);
    if (known !== undefined) return known;
    const prepared = compile(this.database, text);
    this.#cache.set(text, prepared);
    return prepared;
  }

  #readSchemaVersion(): unknown {
    return Object.values(this.#schemaVersion.get() ?? {})[0];
  }

  #noticeSchemaChange(): boolean {
    if (this.#readSchemaVersion() === this.#knownSchema) return false;
    this.forgetStatements();
    return true;
  }
}

function compile(database: DatabaseSync, text: string): Prepared {
  const statement = database.prepare(text);
  const columns = statement.columns();
  const hasStar = text.includes('*');
  if (columns.length === 0) return { statement, hasStar, decoder: undefined };
  const readsBigints = columns.some((column) => /^(bigint|array_text_big)$/i.test(column.type ?? ''));
  if (readsBigints) statement.setReadBigInts(true);
  statement.setReturnArrays(true);
  const [names, types] = [columns.map(({ name }) => name), columns.map(({ type }) => type)];
  return { statement, hasStar, decoder: new RowDecoder({ names, types, readsBigints }) };
}
