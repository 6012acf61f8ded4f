import type { BackfillState } from './backfill-state.ts';

/** A runner writes at least every ten seconds, while it waits, too. */
const STALE_MS = 60_000;
/** Of the rate, how much one batch counts. */
const WEIGHT = 0.2;

/** Rows per second of the last batches. */
export function rateAfter(rate: number, rows: number, tookMs: number): number {
  const now = rows / (Math.max(tookMs, 1) / 1000);
  return rate === 0 ? now : rate + WEIGHT * (now - rate);
}

/**
 * waiting  its runner stands still: `waitsFor` says why
 * stopped  its runner ended before it was finished: the next one goes on
 */
export type ShownState = 'not started' | 'running' | 'waiting' | 'stopped' | 'paused' | 'failed' | 'finished';

export interface BackfillProgress {
  readonly state: ShownState;
  readonly rowsDone: number;
  readonly rowsTotal: number;
  /** From 0 to 1. */
  readonly share: number;
  /** Null while it does not run. */
  readonly rowsPerSecond: number | null;
  /** Null when unknown. */
  readonly secondsLeft: number | null;
  readonly waitsFor: string | null;
}

/** What an operator reads, of the stored state; `undefined`: it was never started. */
export function progressOf(stored: BackfillState | undefined, now: Date): BackfillProgress {
  if (stored === undefined)
    return { state: 'not started', rowsDone: 0, rowsTotal: 0, share: 0, rowsPerSecond: null, secondsLeft: null, waitsFor: null };
  const { rowsDone, rowsPerSecond, waitsFor } = stored;
  const state = shownState(stored, now);
  // Rows that were added since it began are done, too.
  const rowsTotal = state === 'finished' ? rowsDone : Math.max(stored.rowsTotal, rowsDone);
  const runs = state === 'running' && rowsPerSecond > 0;
  return {
    state,
    rowsDone,
    rowsTotal,
    share: state === 'finished' ? 1 : rowsTotal === 0 ? 0 : rowsDone / rowsTotal,
    rowsPerSecond: runs ? rowsPerSecond : null,
    secondsLeft: runs ? (rowsTotal - rowsDone) / rowsPerSecond : null,
    waitsFor: state === 'waiting' ? waitsFor : null,
  };
}

function shownState({ state, waitsFor, updatedAt }: BackfillState, now: Date): ShownState {
  if (state !== 'running') return state;
  if (now.getTime() - updatedAt.getTime() > STALE_MS) return 'stopped';
  return waitsFor === null ? 'running' : 'waiting';
}
