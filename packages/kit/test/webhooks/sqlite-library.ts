import type { ForeignTransactionOptions, SqlExecutor } from '../../src/db/engine/foreign/sql-executor.ts';
import type { BusinessTransaction, ForeignLibrary } from './foreign-library.ts';

/** A driver whose transactions are begun and ended by hand. */
export function sqliteLibrary(
  database: { exec(text: string): unknown; close(): unknown },
  executor: (options?: ForeignTransactionOptions) => SqlExecutor,
): ForeignLibrary {
  const within = async <T>(start: string, end: string, undo: string, work: () => Promise<T>): Promise<T> => {
    database.exec(start);
    try {
      const result = await work();
      database.exec(end);
      return result;
    } catch (error) {
      database.exec(undo);
      throw error;
    }
  };
  const business: BusinessTransaction = {
    executor,
    nested: (work) => within('savepoint s', 'release s', 'rollback to s; release s', () => work(business)),
  };
  return {
    transact: (order, work) =>
      within('begin immediate', 'commit', 'rollback', () => {
        database.exec(`insert into orders values (${order}, '12.00')`);
        return work(business);
      }),
    outside: () => executor(),
    close: () => database.close(),
  };
}
