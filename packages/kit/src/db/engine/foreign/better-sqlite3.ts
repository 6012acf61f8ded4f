import { reorder, toPositional } from '../../sql/statement-text.ts';
import { foreignTransactionRules, type ForeignTransactionOptions, type SqlParameter, type SyncSqlExecutor } from './sql-executor.ts';
import { readOptions } from '../../../options/read-options.ts';

/** What is used of a `better-sqlite3` database. */
export interface BetterSqlite3Database {
  readonly inTransaction: boolean;
  prepare(text: string): { all(...parameters: unknown[]): unknown[] };
}

/** The open transaction of a `better-sqlite3` database, for `publishSync` and `startJobSync` inside `database.transaction(() => …)`, either after `begin`. */
export function betterSqlite3Transaction(database: BetterSqlite3Database, options: ForeignTransactionOptions = {}): SyncSqlExecutor {
  readOptions('betterSqlite3Transaction()', options, foreignTransactionRules);
  return {
    dialect: 'sqlite',
    sync: true,
    ...options,
    get isTransaction() {
      return database.inTransaction;
    },
    query: <R>(text: string, parameters: readonly SqlParameter[]) => {
      const positional = toPositional(text);
      return database.prepare(positional.text).all(...reorder(parameters, positional.order)) as R[];
    },
  };
}
