import { CONFLICT_RETRIES } from './conflict-retries.ts';
import type { Db } from './db.ts';

/** Takes finished work back. */
class Undone extends Error {}

/** Does the work in a transaction that is rolled back: what it returns is what it would do. What was to happen after the commit does not. */
export async function undone<R>(db: Db, work: (tx: Db) => Promise<R>): Promise<R> {
  let result: { readonly value: R } | undefined;
  try {
    await db.transaction(async (tx) => {
      result = { value: await work(tx) };
      throw new Undone();
    }, CONFLICT_RETRIES);
  } catch (error) {
    if (!(error instanceof Undone)) throw error;
  }
  return (result as { readonly value: R }).value;
}
