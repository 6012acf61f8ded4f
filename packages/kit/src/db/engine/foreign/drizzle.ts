import { reorder, toPositional } from '../../sql/statement-text.ts';
import {
  foreignTransactionRules,
  type ForeignTransactionOptions,
  type SqlExecutor,
  type SqlParameter,
  type SyncSqlExecutor,
} from './sql-executor.ts';
import { readOptions, requireArguments } from '../../../options/read-options.ts';
import { watchTransaction } from './pg.ts';
import { objectWith } from '../../../options/value-rule.ts';

/** Drizzle's `sql`: passed in, so that the kit needs no copy of Drizzle. */
export type DrizzleSqlTag<Q> = (strings: TemplateStringsArray, ...values: SqlParameter[]) => Q;

/** What is used of a transaction of `drizzle-orm/node-postgres`, `postgres-js` and the other PostgreSQL drivers. */
export interface DrizzlePostgresTransaction<Q> {
  execute(query: Q): PromiseLike<unknown>;
  rollback(): never;
}

/** What is used of a transaction on SQLite; `Rows` is an array where the driver is synchronous. */
export interface DrizzleSqliteTransaction<Q, Rows> {
  all(query: Q): Rows;
  rollback(): never;
}

/**
 * The transaction that Drizzle passes to `db.transaction(…)`. On better-sqlite3 it is synchronous: use `publishSync` and `startJobSync` there.
 * With an async callback better-sqlite3 refuses the transaction and rolls it back.
 */
export function drizzleTransaction<Q>(
  tx: DrizzleSqliteTransaction<Q, unknown[]>,
  sql: DrizzleSqlTag<Q>,
  options?: ForeignTransactionOptions,
): SyncSqlExecutor;
export function drizzleTransaction<Q>(
  tx: DrizzlePostgresTransaction<Q> | DrizzleSqliteTransaction<Q, PromiseLike<unknown[]>>,
  sql: DrizzleSqlTag<Q>,
  options?: ForeignTransactionOptions,
): SqlExecutor;
export function drizzleTransaction<Q>(
  tx: DrizzlePostgresTransaction<Q> | DrizzleSqliteTransaction<Q, unknown[] | PromiseLike<unknown[]>>,
  sql: DrizzleSqlTag<Q>,
  options: ForeignTransactionOptions = {},
): SqlExecutor {
  readOptions('drizzleTransaction()', options, foreignTransactionRules);
  requireArguments('drizzleTransaction()', { tx }, { tx: objectWith('the transaction that Drizzle passes to db.transaction()') });
  const isOpen = stateOf(tx);
  const statement = (text: string, parameters: readonly SqlParameter[]): Q => {
    const positional = toPositional(text);
    const strings = positional.text.split('?');
    return sql(Object.assign(strings, { raw: strings }), ...(reorder(parameters, positional.order) as SqlParameter[]));
  };
  if ('all' in tx) {
    // What Drizzle itself decides by; its type is `sync` or `async`.
    const sync = (tx as { readonly resultKind?: string }).resultKind === 'sync';
    if (sync) {
      const query = <R>(text: string, parameters: readonly SqlParameter[]) => tx.all(statement(text, parameters)) as R[];
      return withState({ dialect: 'sqlite', ...options, sync, query }, isOpen);
    }
    const query = async <R>(text: string, parameters: readonly SqlParameter[]) =>
      (await tx.all(statement(text, parameters))).map((row) => named(text, row)) as R[];
    return withState({ dialect: 'sqlite', ...options, query }, isOpen);
  }
  const query = async <R>(text: string, parameters: readonly SqlParameter[]) => {
    const result = await tx.execute(statement(text, parameters));
    // postgres.js returns the rows themselves, node-postgres a result.
    return (Array.isArray(result) ? result : (result as { rows: unknown[] }).rows) as R[];
  };
  return withState({ dialect: 'postgres', ...options, query }, isOpen);
}

function withState<E extends object>(executor: E, isOpen: () => boolean | undefined): E {
  return Object.defineProperty(executor, 'isTransaction', { get: isOpen, enumerable: true });
}

/** What Drizzle itself does not say, its driver may: Drizzle's transaction looks the same before and after its end. */
function stateOf(tx: { readonly rollback?: unknown }): () => boolean | undefined {
  // Only transactions can be rolled back.
  if (typeof tx.rollback !== 'function') return () => false;
  const client = (tx as { readonly session?: { readonly client?: unknown } }).session?.client;
  if (typeof client !== 'object' || client === null) return () => undefined;
  const { inTransaction } = client as { readonly inTransaction?: unknown };
  if (typeof inTransaction === 'boolean') return () => (client as { readonly inTransaction: boolean }).inTransaction;
  const hasEnded = watchTransaction(client);
  return () => (hasEnded() ? false : undefined);
}

/** The rows of `sqlite-proxy` are arrays; our statements name their columns. */
function named(text: string, row: unknown): unknown {
  if (!Array.isArray(row)) return row;
  const columns = /(?:^select|returning) (?:[a-z_()*]+ as )?([a-z_, ]+?)(?: from |$)/.exec(text)?.[1] ?? '';
  return Object.fromEntries(columns.split(', ').map((column, index) => [column, row[index] as unknown]));
}
