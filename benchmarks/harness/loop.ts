/**
 * Rate of an in-process operation: calls until the time is up, synchronous ones in batches, so that looking at the clock does not count.
 * `concurrency` calls are kept in flight, which is what hides a database round trip the way a busy server does.
 */
export async function ratePerSecond(operation: () => unknown, seconds: number, concurrency = 1): Promise<number> {
  const end = performance.now() + seconds * 1000;
  const start = performance.now();
  let done = 0;
  const worker = async (): Promise<void> => {
    while (performance.now() < end) {
      for (let i = 0; i < 16; i++) {
        const result = operation();
        done++;
        if (!(result instanceof Promise)) continue;
        await result;
        break;
      }
    }
  };
  await Promise.all(Array.from({ length: concurrency }, worker));
  return (done / (performance.now() - start)) * 1000;
}

/** CPU microseconds of this process per operation: on a noisy machine steadier than any rate. */
export async function cpuPerOperation(operation: () => unknown, times: number): Promise<number> {
  const before = process.cpuUsage();
  for (let i = 0; i < times; i++) {
    const result = operation();
    if (result instanceof Promise) await result;
  }
  const used = process.cpuUsage(before);
  return (used.user + used.system) / times;
}
