import { TransactionRefused } from './transaction-refused.ts';
import { foreignTransactionRules, type ForeignTransactionOptions, type SqlExecutor } from './sql-executor.ts';
import { readOptions, requireArguments } from '../../../options/read-options.ts';
import { objectWith } from '../../../options/value-rule.ts';

/** What is used of a `pg` client. */
export interface PgClient {
  query(text: string, values: unknown[]): Promise<{ rows: unknown[] }>;
  /** `T` in a transaction, `I` outside, `E` in a failed one. */
  getTransactionStatus?(): string | null;
}

/** The open transaction of a bare `pg` client. A pool is refused: each of its queries may use another connection. */
export function pgTransaction(client: PgClient, options: ForeignTransactionOptions = {}): SqlExecutor {
  readOptions('pgTransaction()', options, foreignTransactionRules);
  requireArguments('pgTransaction()', { client }, { client: objectWith('the client of pool.connect() that ran BEGIN') });
  if ('totalCount' in client)
    throw new TransactionRefused('no_transaction', 'A pool has no transaction: pass the client of pool.connect() that ran BEGIN.');
  const hasEnded = watchTransaction(client);
  return {
    dialect: 'postgres',
    ...options,
    get isTransaction() {
      if (hasEnded()) return false;
      // A statement that is under way may be the COMMIT.
      return isIdle(client) ? true : undefined;
    },
    query: async <R>(text: string, parameters: readonly unknown[]) => (await client.query(text, [...parameters])).rows as R[],
  };
}

/** What is used of pg's own parts, where they are there. */
interface PgInternals {
  readonly connection?: PgConnection;
  readonly _activeQuery?: unknown;
  readonly _queryQueue?: readonly unknown[];
  readonly _sentQueryQueue?: readonly unknown[];
}

interface PgConnection {
  on?(event: 'readyForQuery', listener: (message: { readonly status?: string }) => void): void;
}

/** Transactions that have ended on a connection since it was first seen. */
const endedOn = new WeakMap<PgConnection, { count: number }>();

function endedTransactions(connection: PgConnection | undefined): { readonly count: number } {
  if (typeof connection?.on !== 'function') return { count: 0 };
  const known = endedOn.get(connection);
  if (known !== undefined) return known;
  const ended = { count: 0 };
  endedOn.set(connection, ended);
  connection.on('readyForQuery', ({ status }) => {
    if (status === 'I') ended.count++;
  });
  return ended;
}

/** Whether the transaction that is open now has ended since. The client itself may be in the transaction of another request by then. */
export function watchTransaction(client: object): () => boolean {
  const ended = endedTransactions((client as PgInternals).connection);
  const before = ended.count;
  return () => ended.count > before || (client as Partial<PgClient>).getTransactionStatus?.() === 'I';
}

/** Nothing is under way or queued on the connection, and its state is known. */
function isIdle(client: object): boolean {
  const { _activeQuery: active, _queryQueue: queue, _sentQueryQueue: sent = [] } = client as PgInternals;
  const isKnown = (client as Partial<PgClient>).getTransactionStatus?.() != null && Array.isArray(queue);
  return isKnown && (active === null || active === undefined) && queue.length === 0 && sent.length === 0;
}
