import { expect } from 'vitest';
import { describeCrashes } from '../../../../test/crash/describe-crashes.ts';
import { runCrashLoop } from '../../../../test/webhooks/crash-loop.ts';

describeCrashes(
  'workers and publishers killed at random points',
  'every committed event arrives, no rolled-back one does, and nothing is stuck',
  async (place) => {
    const processes = place.dialect === 'sqlite' ? { workers: 2, publishers: 1 } : { workers: 3, publishers: 2 };
    const result = await runCrashLoop({ ...place, ...processes });
    console.info(`webhooks crash loop: ${JSON.stringify(result)}`);
    expect(result).toMatchObject({ lost: 0, unpromised: 0, stuck: 0 });
    expect(result.published).toBeGreaterThan(0);
    // Every duplicate is a request whose worker was killed, or lost its claim and said so, before its result was stored.
    expect(result.duplicates).toBe(result.interrupted + result.unstored);
    expect(result.unstored).toBeLessThanOrEqual(result.lost_claims);
  },
);
