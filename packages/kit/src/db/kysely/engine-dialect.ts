import {
  type CompiledQuery,
  type DatabaseConnection,
  type DatabaseIntrospector,
  type Dialect as KyselyDialect,
  type DialectAdapter,
  type Driver,
  type Kysely,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  type QueryCompiler,
  type QueryResult,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
  type TransactionSettings,
} from 'kysely';
import type { Engine, EngineTransaction } from '../engine/engine.ts';
import type { ObservedRunner } from '../engine/observed-runner.ts';

/** Kysely's view of an engine, or of one transaction on it. */
export class EngineConnection implements DatabaseConnection {
  readonly #autocommit: ObservedRunner;
  #runner: ObservedRunner;
  transaction: EngineTransaction | undefined;

  constructor(runner: ObservedRunner) {
    this.#autocommit = runner;
    this.#runner = runner;
  }

  enter(transaction: EngineTransaction): void {
    this.transaction = transaction;
    this.#runner = this.#autocommit.over(transaction);
  }

  leave(): void {
    this.transaction = undefined;
    this.#runner = this.#autocommit;
  }

  async executeQuery<R>({ sql, parameters }: CompiledQuery): Promise<QueryResult<R>> {
    const { rows, count } = await this.#runner.run(sql, parameters);
    return { rows: rows as R[], numAffectedRows: BigInt(count) };
  }

  async *streamQuery<R>({ sql, parameters }: CompiledQuery, chunkSize?: number): AsyncIterableIterator<QueryResult<R>> {
    for await (const { rows } of this.#runner.stream(sql, parameters, chunkSize ?? 100)) yield { rows: rows as R[] };
  }
}

/** Lets code that only knows Kysely open its own transactions; the handle's own go through the engine directly. */
class EngineDriver implements Driver {
  readonly #engine: Engine;
  readonly #runner: ObservedRunner;

  constructor(engine: Engine, runner: ObservedRunner) {
    this.#engine = engine;
    this.#runner = runner;
  }

  async init(): Promise<void> {}

  async acquireConnection(): Promise<DatabaseConnection> {
    return new EngineConnection(this.#runner);
  }

  async beginTransaction(connection: EngineConnection, settings: TransactionSettings): Promise<void> {
    const { isolationLevel, accessMode } = settings;
    if (isolationLevel === 'read uncommitted' || isolationLevel === 'snapshot')
      throw new Error(`Isolation level "${isolationLevel}" is not supported.`);
    const isolation = isolationLevel === undefined ? {} : { isolation: isolationLevel };
    connection.enter(await this.#engine.begin({ ...isolation, readOnly: accessMode === 'read only' }));
  }

  async commitTransaction(connection: EngineConnection): Promise<void> {
    await connection.transaction?.commit();
    connection.leave();
  }

  async rollbackTransaction(connection: EngineConnection): Promise<void> {
    await connection.transaction?.rollback();
    connection.leave();
  }

  async savepoint(connection: EngineConnection, name: string): Promise<void> {
    await connection.transaction?.savepoint(name);
  }

  async rollbackToSavepoint(connection: EngineConnection, name: string): Promise<void> {
    await connection.transaction?.rollbackToSavepoint(name);
  }

  async releaseSavepoint(connection: EngineConnection, name: string): Promise<void> {
    await connection.transaction?.releaseSavepoint(name);
  }

  async releaseConnection(connection: EngineConnection): Promise<void> {
    await connection.transaction?.rollback();
    connection.leave();
  }

  async destroy(): Promise<void> {}
}

export class EngineDialect implements KyselyDialect {
  readonly #engine: Engine;
  readonly #runner: ObservedRunner;

  constructor(engine: Engine, runner: ObservedRunner) {
    this.#engine = engine;
    this.#runner = runner;
  }

  createDriver(): Driver {
    return new EngineDriver(this.#engine, this.#runner);
  }

  createQueryCompiler(): QueryCompiler {
    return this.#engine.dialect === 'sqlite' ? new SqliteQueryCompiler() : new PostgresQueryCompiler();
  }

  createAdapter(): DialectAdapter {
    return this.#engine.dialect === 'sqlite' ? new ConcurrentSqliteAdapter() : new PostgresAdapter();
  }

  // oxlint-disable-next-line typescript/no-explicit-any -- Kysely's own signature
  createIntrospector(db: Kysely<any>): DatabaseIntrospector {
    return this.#engine.dialect === 'sqlite' ? new SqliteIntrospector(db) : new PostgresIntrospector(db);
  }
}

/** Queueing writers is the engine's business; Kysely would serialise reads as well. */
class ConcurrentSqliteAdapter extends SqliteAdapter {
  override get supportsMultipleConnections(): boolean {
    return true;
  }
}
