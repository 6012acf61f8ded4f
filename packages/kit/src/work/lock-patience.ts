import type { Db } from '../db/engine/db.ts';

const LOCK_TIMEOUT = '55P03';

/**
 * A row that another transaction has locked holds a statement up no longer than this; then the others are written without it. A table of one
 * row, for the `from` of a statement on PostgreSQL: the limit ends with the transaction of the statement.
 */
export const LOCK_PATIENCE = `(select set_config('lock_timeout', '250ms', true)) as patience`;

/** How often a row that another transaction has locked is tried again. */
export const LOCKED_MS = 1000;

/** The end of a subquery that chooses rows: those that another transaction has locked are left for the next run. SQLite has one writer at a time. */
export const skipLocked = ({ dialect }: { readonly dialect?: string }): string => (dialect === 'postgres' ? ' for update skip locked' : '');

/** For the rest of the transaction. */
export async function limitLockWait(tx: Db): Promise<void> {
  if (tx.dialect === 'postgres') await tx.query(`select * from ${LOCK_PATIENCE}`);
}

export function isLockTimeout(error: unknown): boolean {
  return (error as { readonly code?: unknown } | null)?.code === LOCK_TIMEOUT;
}
