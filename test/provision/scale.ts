import process from 'node:process';

/**
 * How much a scaled test (`*.scaled.test.ts`: soaks, crash loops, generated cases) does. `npm test` runs the short version, which
 * shows that the guarantee holds at all; `npm run test:long` runs the full one.
 */
export function scaled(short: number, full: number): number {
  return process.env['KIT_TEST_LONG'] === '1' ? full : short;
}
