import { expect, test } from 'vitest';
import { sendLargeFile } from '../../../../test/uploads/send-large-file.ts';

const MIB = 1024 * 1024;

test('256 MiB go through the disk store in flat memory', async () => {
  const { state, size, peakBytes } = await sendLargeFile(256);
  expect({ state, size }).toEqual({ state: 'complete', size: 256 * MIB });
  console.info(`peak above the start: ${(peakBytes / MIB).toFixed(1)} MiB`);
  expect(peakBytes).toBeLessThan(64 * MIB);
});
