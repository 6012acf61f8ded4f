import { vi } from 'vitest';
import type { Db } from '../../src/db/engine/db.ts';

/** Resolves once another connection waits for a row. SQLite has one writer: a later write waits by itself. */
export async function untilSomebodyWaits(tx: Db): Promise<void> {
  if (tx.dialect === 'sqlite') return;
  await vi.waitFor(
    async () => {
      // Without it a transaction sees the activity as it was when it looked first.
      await tx.query('select pg_stat_clear_snapshot()');
      const waiting = await tx.query(
        `select 1 as one from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
      );
      if (waiting.length === 0) throw new Error('No connection waits for a lock.');
    },
    { timeout: 60_000 },
  );
}
