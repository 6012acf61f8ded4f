import { expect } from 'vitest';
import { describeCrashes } from '../../../../test/crash/describe-crashes.ts';
import { runJobCrashLoop } from '../../../../test/jobs/crash-loop.ts';

describeCrashes('workers killed at random points', 'every job ends, and what it committed was committed exactly once', async (place) => {
  const result = await runJobCrashLoop({ ...place, workers: place.dialect === 'sqlite' ? 2 : 3 });
  console.info(`jobs crash loop: ${JSON.stringify(result)}`);
  expect(result).toMatchObject({ stuck: 0, notExactlyOnce: 0, succeeded: result.started });
  expect(result.started).toBeGreaterThan(0);
});
