import process from 'node:process';
import fc from 'fast-check';

// A commit either passes or fails: property tests of `npm test` draw the same cases every time.
// `npm run test:long` and FAST_CHECK_SEED=random look for new ones; a failure prints its seed.
const asked = process.env['FAST_CHECK_SEED'] ?? (process.env['KIT_TEST_LONG'] === '1' ? 'random' : '20261117');
if (asked !== 'random') fc.configureGlobal({ seed: Number(asked) });
