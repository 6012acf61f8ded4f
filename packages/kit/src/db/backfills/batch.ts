import type { Database, Db } from '../engine/db.ts';
import { engineOf } from '../engine/handle.ts';
import { keysetOf } from '../sql/keyset/keyset.ts';
import { statementsOf } from '../sql/model-statements.ts';
import { compileWhere } from '../sql/where/compile-where.ts';
import type { Backfill } from './backfill.ts';
import { type BackfillKey, lockState, recordBatch } from './backfill-state.ts';
import { rateAfter } from './progress.ts';

/**
 * rows      a batch was done
 * finished  there are no more rows
 * paused    an operator paused it
 * elsewhere another runner has a batch under way
 * locked    others kept rows or the database locked too long; nothing was changed
 */
export type BatchOutcome =
  | { readonly kind: 'rows'; readonly rows: number; readonly waitedMs: number }
  | { readonly kind: 'finished' | 'paused' | 'elsewhere' | 'locked' };

const LOCK_TIMEOUT = '55P03';

/** One batch and its progress, in one transaction. */
export async function runBatch(database: Database, key: BackfillKey, backfill: Backfill): Promise<BatchOutcome> {
  const askedAt = performance.now();
  try {
    return await database.transaction(async (tx) => {
      const startedAt = performance.now();
      const state = await lockState(tx, key);
      if (state === null) return { kind: 'elsewhere' };
      if (state.state === 'paused') return { kind: 'paused' };
      if (state.state === 'finished') return { kind: 'finished' };
      if (tx.dialect === 'postgres') await tx.query(`set local lock_timeout = ${Math.round(backfill.lockWaitMsMax)}`);
      const keyset = keysetOf(backfill.model, backfill.model.primaryKey, 'r');
      const rows = await rowsAfter(tx, backfill, state.position);
      if (rows.length > 0) await backfill.run(tx, rows as never[]);
      const last = rows.at(-1);
      const rowsPerSecond = rateAfter(state.rowsPerSecond, rows.length, performance.now() - startedAt);
      await recordBatch(tx, key, {
        position: last === undefined ? null : JSON.stringify(keyset.positionOf(last)),
        rows: rows.length,
        rowsPerSecond,
      });
      return last === undefined ? { kind: 'finished' } : { kind: 'rows', rows: rows.length, waitedMs: startedAt - askedAt };
    });
  } catch (error) {
    if (isLockedOut(database, error)) return { kind: 'locked' };
    throw error;
  }
}

/** On PostgreSQL nobody changes the rows until the batch is committed. */
async function rowsAfter(tx: Db, { model, where, batch }: Backfill, position: string | null): Promise<object[]> {
  const statements = statementsOf(model);
  const keyset = keysetOf(model, model.primaryKey, 'r');
  const values: unknown[] = [];
  const conditions = [compileWhere(model, where).append(tx.dialect, 'r', values)];
  if (position !== null)
    conditions.push(keyset.append(tx.dialect, { position: JSON.parse(position) as unknown[], backwards: false }, values));
  const lock = tx.dialect === 'postgres' ? ' for no key update' : '';
  return tx.query(
    `select ${statements.list} from ${statements.table} r where ${conditions.join(' and ')} order by ${keyset.orderSql(tx.dialect)} limit $${values.push(batch)}${lock}`,
    values,
  );
}

/** Lock timeouts and deadlocks of PostgreSQL, and a SQLite file whose writer took too long. */
export function isLockedOut(database: Database, error: unknown): boolean {
  for (let each = error; each !== undefined && each !== null; each = (each as { cause?: unknown }).cause) {
    const { code } = each as { code?: unknown };
    if (code === LOCK_TIMEOUT || code === 'database_busy' || engineOf(database).isRetryable(each)) return true;
  }
  return false;
}
