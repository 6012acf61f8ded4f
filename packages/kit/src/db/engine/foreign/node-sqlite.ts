import type { DatabaseSync } from 'node:sqlite';
import { reorder, toPositional } from '../../sql/statement-text.ts';
import { foreignTransactionRules, type ForeignTransactionOptions, type SqlParameter, type SyncSqlExecutor } from './sql-executor.ts';
import { readOptions } from '../../../options/read-options.ts';

/** The open transaction of a `node:sqlite` database. */
export function nodeSqliteTransaction(database: DatabaseSync, options: ForeignTransactionOptions = {}): SyncSqlExecutor {
  readOptions('nodeSqliteTransaction()', options, foreignTransactionRules);
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
