import type { TransactionOptions } from './engine.ts';

/**
 * For transactions that only the database sees until they commit. One that loses to another (a deadlock, a serialization failure) is run
 * again as a whole; the fourth failure is a 409 `write_conflict`. SQLite has one writer: there none loses.
 */
export const CONFLICT_RETRIES: TransactionOptions = Object.freeze({ retries: 3 });
