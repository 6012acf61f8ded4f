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

/** What is used of the client that Prisma passes to `prisma.$transaction(async (tx) => …)`. */
export interface PrismaTransaction {
  $queryRawUnsafe(query: string, ...values: unknown[]): PromiseLike<unknown>;
}

export interface PrismaTransactionOptions extends ForeignTransactionOptions {
  /** Needed only where the client does not say its provider. */
  readonly dialect?: Dialect;
}

/** Prisma's code for a transaction that is closed, expired or unknown. */
const TRANSACTION_API_ERROR = 'P2028';

const DIALECTS: Readonly<Record<string, Dialect>> = { postgresql: 'postgres', postgres: 'postgres', sqlite: 'sqlite' };

/** The interactive transaction of Prisma. */
export function prismaTransaction(tx: PrismaTransaction, options: PrismaTransactionOptions = {}): SqlExecutor {
  readOptions('prismaTransaction()', options, dialectTransactionRules);
  requireArguments('prismaTransaction()', { tx }, { tx: objectWith('the transaction that Prisma passes to $transaction()') });
  const { _activeProvider: provider = '' } = tx as { readonly _activeProvider?: string };
  const dialect = options.dialect ?? DIALECTS[provider];
  if (dialect === undefined) {
    throw new TransactionRefused(
      'database_unsupported',
      `Prisma's provider is ${JSON.stringify(provider)}; the toolkit writes to PostgreSQL or SQLite. If it is one, say which with { dialect }.`,
    );
  }
  return {
    ...options,
    dialect,
    // The client itself can be connected, its transactions cannot. Whether one has ended Prisma says only when it is used.
    isTransaction: typeof (tx as { readonly $connect?: unknown }).$connect === 'function' ? false : undefined,
    query: async <R>(text: string, parameters: readonly SqlParameter[]) => {
      const statement = dialect === 'postgres' ? { text, order: undefined } : toPositional(text);
      try {
        return (await tx.$queryRawUnsafe(statement.text, ...reorder(parameters, statement.order))) as R[];
      } catch (error) {
        throw (error as { readonly code?: unknown } | null)?.code === TRANSACTION_API_ERROR ? transactionEnded(error) : error;
      }
    },
  };
}
