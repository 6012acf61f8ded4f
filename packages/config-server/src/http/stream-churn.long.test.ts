import { readdirSync } from 'node:fs';
import { connect } from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { eventually, startServer, TOKEN, type RunningServer } from '../../test/running-server.ts';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

const CONNECTS = 100_000;
const WARM_UP = 4000;
const AT_ONCE = 32;

/** Opens a stream, waits for its first event and hangs up without a word, which is how most streams end. */
function comeAndGo(running: RunningServer): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect(running.port, '127.0.0.1', () => {
      socket.write(`GET /billing/prod/stream HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${TOKEN}\r\n\r\n`);
    });
    let text = '';
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1');
      if (text.includes('event: generation')) socket.resetAndDestroy();
    });
    socket.on('close', () => resolve());
    socket.on('error', reject);
  });
}

async function churn(running: RunningServer, count: number): Promise<void> {
  let left = count;
  const worker = async (): Promise<void> => {
    while (left-- > 0) await comeAndGo(running);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  await eventually(() => running.server.streams.open === 0, 'every stream to be closed');
}

test('streams that come and go leave no stream, descriptor or memory behind', { timeout: 300_000 + CONNECTS * 20 }, async () => {
  const running = await startServer({ audit: () => undefined });
  await churn(running, WARM_UP);
  const descriptors = readdirSync('/proc/self/fd').length;
  const before = settledHeap();
  await churn(running, CONNECTS - WARM_UP);
  await eventually(() => readdirSync('/proc/self/fd').length <= descriptors + 2, 'descriptors to be closed');
  // Less than the smallest object a stream could leave behind.
  expect((settledHeap() - before) / (CONNECTS - WARM_UP)).toBeLessThan(100);
});

function settledHeap(): number {
  for (let round = 0; round < 4; round++) collectGarbage();
  return process.memoryUsage().heapUsed;
}
