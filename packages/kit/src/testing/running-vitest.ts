import type * as Vitest from 'vitest';
import { runsInVitest } from './config.ts';

// Outside of its runs its functions fail, so it is not loaded there.
const vitest = runsInVitest() ? await import('vitest').catch(() => undefined) : undefined;

/** Vitest is the project's own: only functions that define tests need it. */
export function runningVitest(caller: string): typeof Vitest {
  if (vitest === undefined) throw new Error(`${caller} needs vitest: npm install --save-dev vitest, and run the file with it.`);
  return vitest;
}
