import { expect, test } from 'vitest';
import { sendLargeFile } from '../../../../test/uploads/send-large-file.ts';

const MIB = 1024 * 1024;

test.for([256, 1024])('%i MiB go through the disk store in flat memory', async (mebibytes) => {
  const { state, size, peakBytes } = await sendLargeFile(mebibytes);
  expect({ state, size }).toEqual({ state: 'complete', size: mebibytes * MIB });
  console.info(`peak above the start: ${(peakBytes / MIB).toFixed(1)} MiB`);
  expect(peakBytes).toBeLessThan(64 * MIB);
});
