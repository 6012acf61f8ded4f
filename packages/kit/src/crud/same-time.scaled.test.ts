import { expect, test } from 'vitest';
import { startDesk } from '../../test/crud/desk.ts';
import { scaled } from '../../../../test/provision/scale.ts';
import { describeDatabases } from '../testing/databases.ts';

const UNKNOWN = '01890000-0000-7000-8000-000000000000';
const ROUNDS = scaled(60, 4_000);

/** The probability that a value of the first list is smaller than one of the second: 0.5 when they cannot be told apart. */
function smallerShare(first: readonly number[], second: readonly number[]): number {
  const all = [...first.map((value) => ({ value, own: true })), ...second.map((value) => ({ value, own: false }))].sort(
    (a, b) => a.value - b.value,
  );
  let [seen, wins] = [0, 0];
  for (const { own } of all) {
    if (own) seen += 1;
    else wins += seen;
  }
  return wins / (first.length * second.length);
}

describeDatabases('a row of another and a row that is not there', (database) => {
  test('take the same time: they cannot be told apart', { timeout: 600_000 }, async () => {
    await using desk = await startDesk({ database: database.db });
    const { id } = (await desk.call('bob', 'POST', 'tickets', { sku: 'one' })).body as { id: string };
    const timeOf = async (key: string) => {
      const began = performance.now();
      const { status } = await desk.call('ann', 'GET', `tickets/${key}`);
      expect(status).toBe(404);
      return performance.now() - began;
    };
    for (let round = 0; round < 200; round += 1) await timeOf(round % 2 === 0 ? id : UNKNOWN);
    const [hidden, missing]: [number[], number[]] = [[], []];
    for (let round = 0; round < ROUNDS; round += 1) {
      // In turns, and not always the same first, so that whatever else the machine does slows both alike.
      if (round % 2 === 0) hidden.push(await timeOf(id));
      missing.push(await timeOf(UNKNOWN));
      if (round % 2 === 1) hidden.push(await timeOf(id));
    }
    // The deviation of the share is about sqrt(1 / (6 n)): ten of them, so that chance alone never fails a run.
    const allowed = 10 * Math.sqrt(1 / (6 * ROUNDS));
    expect(Math.abs(smallerShare(hidden, missing) - 0.5)).toBeLessThan(Math.max(allowed, 0.05));
  });
});
