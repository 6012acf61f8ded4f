import { expect, test, vi } from 'vitest';
import { describeDatabases } from '../testing/databases.ts';
import { BUSY_WAKE_INTERVAL_MS, nextWakeInterval, WAKE_INTERVAL_MS, wakeWorkers } from './wake-workers.ts';

test('the interval between notifications grows while work arrives fast, up to a bound, and is short again when it does not', () => {
  const intervals = [WAKE_INTERVAL_MS];
  for (const wakeUps of [1, 2, 4, 8, 9, 7, 1, 999]) intervals.push(nextWakeInterval(intervals.at(-1) ?? 0, wakeUps));
  expect(intervals).toEqual([4, 4, 8, 16, BUSY_WAKE_INTERVAL_MS, BUSY_WAKE_INTERVAL_MS, 4, 4, 8]);
});

describeDatabases('wakeWorkers', (database) => {
  test('listeners are told at once, and of a burst only twice: at its beginning and after its end', async () => {
    let heard = 0;
    const stop = await database.db.listen('kit_test_burst', () => (heard += 1));
    for (let n = 0; n < 1000; n++) wakeWorkers(database.db, 'kit_test_burst');
    await vi.waitFor(() => expect(heard).toBe(2), { timeout: 300_000 });
    wakeWorkers(database.db, 'kit_test_burst');
    await vi.waitFor(() => expect(heard).toBe(3), { timeout: 300_000 });
    await stop();
  });

  test('channels and databases do not wait for one another', async () => {
    const heard: string[] = [];
    const other = await database.open();
    const stop = [
      await database.db.listen('kit_test_a', () => heard.push('a')),
      await database.db.listen('kit_test_b', () => heard.push('b')),
      await other.listen('kit_test_c', () => heard.push('c')),
    ];
    wakeWorkers(database.db, 'kit_test_a');
    wakeWorkers(database.db, 'kit_test_b');
    wakeWorkers(other, 'kit_test_c');
    await vi.waitFor(() => expect(heard.toSorted()).toEqual(['a', 'b', 'c']), { timeout: 300_000 });
    for (const each of stop) await each();
  });

  test('payloads of one channel do not wait for one another', async () => {
    const heard: string[] = [];
    const stop = await database.db.listen('kit_test_payloads', (payload) => heard.push(payload));
    for (let n = 0; n < 100; n++) for (const payload of ['+a', '+b']) wakeWorkers(database.db, 'kit_test_payloads', payload);
    await vi.waitFor(() => expect(heard.toSorted()).toEqual(['+a', '+a', '+b', '+b']), { timeout: 300_000 });
    await stop();
  });

  test('a database that was closed meanwhile is no fault', async () => {
    const closed = await database.open();
    wakeWorkers(closed, 'kit_test_closed');
    wakeWorkers(closed, 'kit_test_closed');
    await closed.close();
    wakeWorkers(closed, 'kit_test_closed');
    await new Promise((resolve) => setTimeout(resolve, 20));
  });
});
