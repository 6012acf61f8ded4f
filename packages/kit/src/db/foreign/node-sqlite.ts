import type { DatabaseSync } from 'node:sqlite';
import { reorder, toPositional } from '../sqlite/statement-text.ts';
import type { ForeignTransactionOptions, SqlParameter, SyncSqlExecutor } from './sql-executor.ts';

/** The open transaction of a `node:sqlite` database. */
export function nodeSqliteTransaction(database: DatabaseSync, options: ForeignTransactionOptions = {}): SyncSqlExecutor {
  return {
    dialect: 'sqlite',
    sync: true,
    ...options,
    get isTransaction() {
      return database.isTransaction;
    },
    query: <R>(text: string, parameters: readonly SqlParameter[]) => {
      const positional = toPositional(text);
      return database.prepare(positional.text).all(...(reorder(parameters, positional.order) as SqlParameter[])) as R[];
    },
  };
}
