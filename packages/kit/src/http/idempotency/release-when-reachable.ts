import type { Database } from '../../db/engine/db.ts';
import { type Claim, LEASE_MS, releaseClaim } from './record-store.ts';

const PAUSE_MS_MIN = 100;
const PAUSE_MS_MAX = 1000;

/** Claims to free, oldest first, and when each ends by itself. */
const waiting = new WeakMap<Database, Map<Claim, number>>();

/**
 * Frees the key of a request that failed because the database was gone: it is tried until the database is back, at most for as long as the claim
 * would hold. A change that was committed after all has completed its record, which stays.
 */
export function releaseWhenReachable(db: Database, claim: Claim): void {
  const claims = waiting.get(db) ?? new Map<Claim, number>();
  claims.set(claim, performance.now() + LEASE_MS);
  if (claims.size > 1) return;
  waiting.set(db, claims);
  releaseIn(PAUSE_MS_MIN, db, claims);
}

function releaseIn(pauseMs: number, db: Database, claims: Map<Claim, number>): void {
  setTimeout(() => void release(pauseMs, db, claims), pauseMs).unref();
}

/** One after the other: a database that is back has other things to do. */
async function release(pauseMs: number, db: Database, claims: Map<Claim, number>): Promise<void> {
  for (const [claim, endsAt] of claims) {
    if (db.closed) return;
    try {
      if (performance.now() < endsAt) await releaseClaim(db, claim);
      claims.delete(claim);
    } catch {
      releaseIn(Math.min(2 * pauseMs, PAUSE_MS_MAX), db, claims);
      return;
    }
  }
}
