import type { Dialect } from '../dialect.ts';
import { reorder, toPositional } from '../sqlite/statement-text.ts';
import { TransactionRefused } from './transaction-refused.ts';
import type { ForeignTransactionOptions, SqlExecutor, SqlParameter } from './sql-executor.ts';
import { runAfterCommit } from './after-commit.ts';

interface TypeOrmQueryRunner {
  readonly isTransactionActive: boolean;
}

interface TypeOrmDataSource {
  readonly options: { readonly type: string };
  readonly subscribers: object[];
}

/** What is used of the entity manager that TypeORM passes to `dataSource.transaction(…)`. */
export interface TypeOrmEntityManager {
  readonly queryRunner?: TypeOrmQueryRunner | undefined;
  readonly dataSource?: TypeOrmDataSource;
  /** Its name before TypeORM 1. */
  readonly connection?: TypeOrmDataSource;
  query(text: string, parameters?: unknown[]): Promise<unknown>;
}

const DIALECTS: Readonly<Record<string, Dialect>> = {
  postgres: 'postgres',
  'better-sqlite3': 'sqlite',
  sqljs: 'sqlite',
  sqlite: 'sqlite',
  expo: 'sqlite',
  capacitor: 'sqlite',
};

/** The transaction of TypeORM's `dataSource.transaction(async (manager) => …)`, or of the manager of a query runner. */
export function typeOrmTransaction(manager: TypeOrmEntityManager, options: ForeignTransactionOptions = {}): SqlExecutor {
  const { queryRunner } = manager;
  const dataSource = manager.dataSource ?? manager.connection;
  const dialect = DIALECTS[dataSource?.options.type ?? ''];
  if (dataSource === undefined || dialect === undefined) {
    throw new TransactionRefused(
      'database_unsupported',
      `TypeORM's database is ${JSON.stringify(dataSource?.options.type)}; the toolkit writes to PostgreSQL or SQLite.`,
    );
  }
  if (queryRunner === undefined) {
    throw new TransactionRefused(
      'no_transaction',
      'This entity manager takes any connection of the pool: use the one of dataSource.transaction(async (manager) => …).',
    );
  }
  return {
    dialect,
    ...options,
    get isTransaction() {
      return queryRunner.isTransactionActive;
    },
    query: async <R>(text: string, parameters: readonly SqlParameter[]) => {
      const statement = dialect === 'postgres' ? { text, order: undefined } : toPositional(text);
      return (await manager.query(statement.text, [...reorder(parameters, statement.order)])) as R[];
    },
    afterCommit: (callback) => pendingOf(dataSource, queryRunner).add(callback),
  };
}

/** The callbacks of one query runner. `depth` counts savepoints from where the first callback came; it may go below 0. */
class PendingCallbacks {
  #callbacks: { readonly run: () => unknown; readonly depth: number }[] = [];
  #depth = 0;

  add(run: () => unknown): void {
    this.#callbacks.push({ run, depth: this.#depth });
  }

  entered(): void {
    this.#depth++;
  }

  released(): void {
    this.#depth--;
    this.#callbacks = this.#callbacks.map(({ run, depth }) => ({ run, depth: Math.min(depth, this.#depth) }));
  }

  rolledBack(): void {
    this.#depth--;
    this.#callbacks = this.#callbacks.filter(({ depth }) => depth <= this.#depth);
  }

  run(): Promise<void> {
    return runAfterCommit(this.#callbacks.map(({ run }) => run));
  }
}

type PendingByRunner = WeakMap<TypeOrmQueryRunner, PendingCallbacks>;

interface TransactionEvent {
  readonly queryRunner: TypeOrmQueryRunner;
}

/** One subscriber per data source, and never removed: TypeORM goes through the list while it tells the subscribers. */
const subscribed = new WeakMap<TypeOrmDataSource, PendingByRunner>();

function pendingOf(dataSource: TypeOrmDataSource, queryRunner: TypeOrmQueryRunner): PendingCallbacks {
  let byRunner = subscribed.get(dataSource);
  if (byRunner === undefined) {
    byRunner = new WeakMap();
    subscribed.set(dataSource, byRunner);
    dataSource.subscribers.push(subscriberOf(byRunner));
  }
  let pending = byRunner.get(queryRunner);
  if (pending === undefined) byRunner.set(queryRunner, (pending = new PendingCallbacks()));
  return pending;
}

/** TypeORM tells of savepoints as of transactions; only after the end of the outermost one is none active. */
function subscriberOf(byRunner: PendingByRunner): object {
  return {
    afterTransactionStart: ({ queryRunner }: TransactionEvent) => byRunner.get(queryRunner)?.entered(),
    afterTransactionCommit: ({ queryRunner }: TransactionEvent) => {
      const pending = byRunner.get(queryRunner);
      if (queryRunner.isTransactionActive) return pending?.released();
      byRunner.delete(queryRunner);
      return pending?.run();
    },
    afterTransactionRollback: ({ queryRunner }: TransactionEvent) => {
      if (queryRunner.isTransactionActive) byRunner.get(queryRunner)?.rolledBack();
      else byRunner.delete(queryRunner);
    },
  };
}
