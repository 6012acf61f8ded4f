import { expect, test } from 'vitest';
import { sendLargeFile } from '../../../../test/uploads/send-large-file.ts';

const MIB = 1024 * 1024;

// large-file.slow.test.ts sends a quarter of it in every run.
test.runIf(process.env['KIT_TEST_LONG'] === '1')('1 GiB goes through the disk store in memory as flat as a quarter of it', async () => {
  const { state, size, peakBytes } = await sendLargeFile(1024);
  expect({ state, size }).toEqual({ state: 'complete', size: 1024 * MIB });
  console.info(`peak above the start: ${(peakBytes / MIB).toFixed(1)} MiB`);
  expect(peakBytes).toBeLessThan(64 * MIB);
});
