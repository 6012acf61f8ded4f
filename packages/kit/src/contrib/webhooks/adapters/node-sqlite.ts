import type { DatabaseSync } from 'node:sqlite';
import type { SqlExecutor } from '../sql-executor.ts';

/** The open transaction of a `node:sqlite` database, for `publish`. */
export function nodeSqliteTransaction(database: DatabaseSync, options: { readonly using?: string } = {}): SqlExecutor {
  return {
    dialect: 'sqlite',
    isTransaction: database.isTransaction,
    ...options,
    query: async <R>(text: string, parameters: readonly (string | number | null)[]) => {
      const named = Object.fromEntries(parameters.map((value, index) => [`$${index + 1}`, value]));
      const statement = database.prepare(text);
      statement.setAllowUnknownNamedParameters(true);
      return statement.all(named) as R[];
    },
  };
}
