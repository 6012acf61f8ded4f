import type pg from 'pg';
import { isConnectionFailure } from './connection-failure.ts';

const STATEMENT = { name: 'kit_doctor', text: 'select 1 as one' };
/** Poolers choose the server process of a transaction by rules of their own; PgBouncer takes the one that was free last. */
const ROUNDS = 3;

/**
 * True where a pooler runs the transactions of one connection on several server processes and does not tell them about its prepared statements.
 * One connection prepares a statement; another takes the server process it ran on, and the first runs its statement again.
 */
export async function losesStatements(connection: () => pg.Client): Promise<boolean> {
  const [first, second] = [connection(), connection()];
  for (const each of [first, second]) each.on('error', () => undefined);
  try {
    await Promise.all([first.connect(), second.connect()]);
    await first.query(STATEMENT);
    for (let round = 0; round < ROUNDS; round += 1) {
      await second.query('begin');
      await second.query('select 2 as two');
      await first.query(STATEMENT);
      await second.query('rollback');
    }
    return false;
  } catch (error) {
    const { code } = error as { readonly code?: unknown };
    if (code === '26000' || code === '42P05') return true;
    if (isConnectionFailure(error)) return false; // too few connections to try it with
    throw error;
  } finally {
    await Promise.allSettled([first.end(), second.end()]);
  }
}
