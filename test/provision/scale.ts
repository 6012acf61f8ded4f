import process from 'node:process';
import { test } from 'vitest';

const isLong = process.env['KIT_TEST_LONG'] === '1';

/**
 * How much a long test (`*.long.test.ts`: soaks, storms, timing, crash loops) does. `npm test` runs the short version, which
 * shows that the guarantee holds at all; `npm run test:long` runs the full one.
 */
export function scaled(short: number, full: number): number {
  return isLong ? full : short;
}

/** A test that takes 10 s or more and has no short version: `npm run test:long` runs it. Its file is listed in vitest.config.ts. */
export const longTest = isLong ? test : test.skip;
