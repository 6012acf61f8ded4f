import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { StatementResult } from '../engine.ts';
import { decoderOf, encodeSqlite, wireDecoderOf } from './codec.ts';
import { rowBuilder, type RowBuilder } from '../row-builder.ts';
import { translateFailure } from './translate-failure.ts';
import { loadNodeSqlite } from './load-node-sqlite.ts';

interface Prepared {
  readonly statement: StatementSync;
  /** `*` is expanded when a statement is prepared, so it must notice that another process changed a table. */
  readonly hasStar: boolean;
  readonly columnCount: number;
  /** Rows as code has them, and in their wire form. */
  readonly build: RowBuilder;
  readonly buildWire: RowBuilder;
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
}

/** One connection: prepared statements, declared-type decoding. Everything here is synchronous. */
export class SqliteConnection {
  readonly database: DatabaseSync;
  /** To prepare a statement takes 10 µs; a read by key with a prepared one takes 15 (db-overhead). */
  readonly #cache = new Map<string, Prepared>();
  /** What every transaction runs: prepared when first needed. */
  #begin: StatementSync | undefined;
  #commit: StatementSync | undefined;
  #logPages: StatementSync | undefined;
  readonly #schemaVersion: StatementSync;
  #knownSchema: unknown;

  constructor(file: string, options: SqliteConnectionOptions) {
    // A busy timeout would block the event loop (985 ms measured); waiting is done outside, asynchronously.
    this.database = new (loadNodeSqlite().DatabaseSync)(file, { readOnly: options.readOnly, timeout: 0 });
    try {
      if (!options.readOnly) {
        this.database.exec('pragma journal_mode = wal');
        this.checkpointAt(CHECKPOINT_PAGES);
      }
      this.database.exec(`pragma synchronous = ${options.durability}; pragma foreign_keys = on; pragma temp_store = memory`);
      this.#schemaVersion = this.database.prepare('pragma schema_version');
      this.#knownSchema = this.#readSchemaVersion();
    } catch (error) {
      this.database.close();
      throw error;
    }
  }

  run(text: string, parameters: readonly unknown[], as?: 'wire'): StatementResult {
    const values = parameters.map(encodeSqlite);
    let prepared: Prepared;
    let rows: unknown[];
    try {
      prepared = this.#prepare(text);
      if (prepared.hasStar && this.#noticeSchemaChange()) prepared = this.#prepare(text);
      if (prepared.columnCount === 0) return { rows: [], count: Number(prepared.statement.run(...values).changes) };
      rows = prepared.statement.all(...values);
    } catch (error) {
      throw translateFailure(error);
    }
    const build = as === 'wire' ? prepared.buildWire : prepared.build;
    for (let index = 0; index < rows.length; index++) rows[index] = build(rows[index] as unknown[]);
    return { rows, count: rows.length };
  }

  /** Rows one by one, on a statement of its own: a cached one could be restarted by the next caller. */
  *iterate(text: string, parameters: readonly unknown[], as?: 'wire'): Generator {
    const values = parameters.map(encodeSqlite);
    try {
      const prepared = compile(this.database, text);
      const build = as === 'wire' ? prepared.buildWire : prepared.build;
      for (const row of prepared.statement.iterate(...values)) yield build(row as unknown as unknown[]);
    } catch (error) {
      throw translateFailure(error);
    }
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
    const known = this.#cache.get(text);
    if (known !== undefined) {
      // The order of a Map is the order of use, so that ever new texts do not push out those in use.
      if (this.#cache.size > STATEMENTS_MAX / 2) {
        this.#cache.delete(text);
        this.#cache.set(text, known);
      }
      return known;
    }
    const prepared = compile(this.database, text);
    if (this.#cache.size >= STATEMENTS_MAX) {
      const oldest = this.#cache.keys().next();
      if (oldest.done !== true) this.#cache.delete(oldest.value);
    }
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
  if (columns.length === 0) return { statement, hasStar, columnCount: 0, build: (values) => values, buildWire: (values) => values };
  const readsBigints = columns.some((column) => /^(bigint|array_text_big)$/i.test(column.type ?? ''));
  if (readsBigints) statement.setReadBigInts(true);
  statement.setReturnArrays(true);
  const names = columns.map((column) => column.name);
  const builder = (decoder: typeof decoderOf): RowBuilder =>
    rowBuilder(
      names,
      columns.map((column) => decoder(column.type, readsBigints)),
    );
  // Made when first needed: few statements are read in both forms.
  let build: RowBuilder | undefined;
  let buildWire: RowBuilder | undefined;
  return {
    statement,
    hasStar,
    columnCount: columns.length,
    get build() {
      return (build ??= builder(decoderOf));
    },
    get buildWire() {
      return (buildWire ??= builder(wireDecoderOf));
    },
  };
}
