import type { Dialect } from '../../dialect.ts';
import { reorder, toPositional } from '../../sql/statement-text.ts';
import { TransactionRefused } from './transaction-refused.ts';
import { foreignTransactionRules, type ForeignTransactionOptions, type SqlExecutor, type SqlParameter } from './sql-executor.ts';
import { runAfterCommit } from './after-commit.ts';
import { readOptions, requireArguments } from '../../../options/read-options.ts';
import { objectWith } from '../../../options/value-rule.ts';

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
  readOptions('typeOrmTransaction()', options, foreignTransactionRules);
  requireArguments(
    'typeOrmTransaction()',
    { manager },
    { manager: objectWith('the entity manager that TypeORM passes to dataSource.transaction()') },
  );
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
  const runners = runnersOf(dataSource);
  const transaction = runners.transactionOf(queryRunner);
  return {
    dialect,
    ...options,
    get isTransaction() {
      // It is active until the COMMIT or ROLLBACK has been answered. SQLite has one query runner for all transactions.
      return queryRunner.isTransactionActive && runners.transactionOf(queryRunner) === transaction && undefined;
    },
    query: async <R>(text: string, parameters: readonly SqlParameter[]) => {
      const statement = dialect === 'postgres' ? { text, order: undefined } : toPositional(text);
      return (await manager.query(statement.text, [...reorder(parameters, statement.order)])) as R[];
    },
    afterCommit: (callback) => transaction.add(callback),
  };
}

/** The callbacks of one transaction. `depth` counts savepoints from where the first callback came; it may go below 0. */
class OpenTransaction {
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

interface TransactionEvent {
  readonly queryRunner: TypeOrmQueryRunner;
}

/**
 * The open transactions of a data source, which it reports to its subscribers. It also emits transaction events for savepoints; after the end of
 * the outermost one alone no transaction is active.
 */
class Runners {
  readonly #open = new WeakMap<TypeOrmQueryRunner, OpenTransaction>();

  /** The transaction that the runner has open; another object after it has ended. */
  transactionOf(queryRunner: TypeOrmQueryRunner): OpenTransaction {
    let transaction = this.#open.get(queryRunner);
    if (transaction === undefined) this.#open.set(queryRunner, (transaction = new OpenTransaction()));
    return transaction;
  }

  afterTransactionStart({ queryRunner }: TransactionEvent): void {
    this.#open.get(queryRunner)?.entered();
  }

  afterTransactionCommit({ queryRunner }: TransactionEvent): Promise<void> | void {
    const transaction = this.#open.get(queryRunner);
    if (queryRunner.isTransactionActive) return transaction?.released();
    this.#open.delete(queryRunner);
    return transaction?.run();
  }

  afterTransactionRollback({ queryRunner }: TransactionEvent): void {
    if (queryRunner.isTransactionActive) this.#open.get(queryRunner)?.rolledBack();
    else this.#open.delete(queryRunner);
  }
}

/** One subscriber per data source, and never removed: TypeORM goes through the list while it calls the subscribers. */
const subscribed = new WeakMap<TypeOrmDataSource, Runners>();

function runnersOf(dataSource: TypeOrmDataSource): Runners {
  let runners = subscribed.get(dataSource);
  if (runners === undefined) {
    runners = new Runners();
    subscribed.set(dataSource, runners);
    dataSource.subscribers.push(runners);
  }
  return runners;
}
