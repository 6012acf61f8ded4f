import { TransactionRefused } from './transaction-refused.ts';
import type { ForeignTransactionOptions, SqlExecutor } from './sql-executor.ts';

/** What is used of a `pg` client. */
export interface PgClient {
  query(text: string, values: unknown[]): Promise<{ rows: unknown[] }>;
  /** `T` in a transaction, `I` outside, `E` in a failed one. */
  getTransactionStatus?(): string | null;
}

/** The open transaction of a bare `pg` client. A pool is refused: each of its queries may use another connection. */
export function pgTransaction(client: PgClient, options: ForeignTransactionOptions = {}): SqlExecutor {
  if ('totalCount' in client)
    throw new TransactionRefused('no_transaction', 'A pool has no transaction: pass the client of pool.connect() that ran BEGIN.');
  return {
    dialect: 'postgres',
    ...options,
    get isTransaction() {
      return (client.getTransactionStatus?.() ?? 'T') !== 'I';
    },
    query: async <R>(text: string, parameters: readonly unknown[]) => (await client.query(text, [...parameters])).rows as R[],
  };
}
