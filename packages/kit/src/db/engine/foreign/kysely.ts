import { randomUUID } from 'node:crypto';
import type { Dialect } from '../../dialect.ts';
import { reorder, toPositional } from '../../sql/statement-text.ts';
import { TransactionRefused } from './transaction-refused.ts';
import {
  dialectTransactionRules,
  transactionEnded,
  type ForeignTransactionOptions,
  type SqlExecutor,
  type SqlParameter,
} from './sql-executor.ts';
import { readOptions, requireArguments } from '../../../options/read-options.ts';
import { objectWith } from '../../../options/value-rule.ts';

/** What is used of a Kysely transaction. */
export interface KyselyTransaction {
  readonly isTransaction: boolean;
  getExecutor(): { readonly adapter: object };
  // oxlint-disable-next-line typescript/no-explicit-any -- a compiled query of whichever copy of Kysely the application has
  executeQuery(query: any): Promise<{ readonly rows: unknown[] }>;
}

export interface KyselyTransactionOptions extends ForeignTransactionOptions {
  /** Needed only where the dialect builds on neither of Kysely's own adapters. */
  readonly dialect?: Dialect;
}

/** The transaction that Kysely passes to `db.transaction().execute(…)`, or a controlled one. */
export function kyselyTransaction(trx: KyselyTransaction, options: KyselyTransactionOptions = {}): SqlExecutor {
  readOptions('kyselyTransaction()', options, dialectTransactionRules);
  requireArguments(
    'kyselyTransaction()',
    { trx },
    { trx: objectWith('the transaction that Kysely passes to db.transaction().execute()', 'getExecutor') },
  );
  const dialect = options.dialect ?? dialectOf(trx);
  return {
    ...options,
    dialect,
    get isTransaction() {
      // Kysely refuses what comes after the end, but not what comes while the COMMIT or ROLLBACK is under way.
      return trx.isTransaction && undefined;
    },
    query: async <R>(text: string, parameters: readonly SqlParameter[]) => {
      const statement = dialect === 'postgres' ? { text, order: undefined } : toPositional(text);
      try {
        return (await trx.executeQuery(compiled(statement.text, [...reorder(parameters, statement.order)]))).rows as R[];
      } catch (error) {
        throw isEnded(error) ? transactionEnded(error) : error;
      }
    },
  };
}

/** What Kysely's `CompiledQuery.raw` returns. Its package is not needed for that. */
function compiled(sql: string, parameters: readonly unknown[]): object {
  return { sql, parameters, query: { kind: 'RawNode', sqlFragments: [sql], parameters: [] }, queryId: { queryId: randomUUID() } };
}

/** Kysely's own refusal has no code. */
function isEnded(error: unknown): boolean {
  return error instanceof Error && /^Transaction is already (?:committed|rolled back|aborted)/.test(error.message);
}

/** By name, because the application may have another copy of Kysely than the kit. */
function dialectOf(trx: KyselyTransaction): Dialect {
  for (
    let adapter: object | null = trx.getExecutor().adapter;
    adapter !== null;
    adapter = Object.getPrototypeOf(adapter) as object | null
  ) {
    if (adapter.constructor.name === 'PostgresAdapter') return 'postgres';
    if (adapter.constructor.name === 'SqliteAdapter') return 'sqlite';
  }
  throw new TransactionRefused(
    'database_unsupported',
    'This Kysely dialect is neither PostgreSQL nor SQLite as far as can be seen: if it is, say which with { dialect }.',
  );
}
