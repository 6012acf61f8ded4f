import { expect, test } from 'vitest';
import { openDatabase, migrate } from '../../../db/index.ts';
import { fakeClock } from '../../../testing/fake-clock.ts';
import { createUser } from '../users/manage-users.ts';
import { initial } from '../migrations/0001_initial.ts';
import { verifiedUser } from '../sessions/sessions.ts';

// A hash at this cost takes long against everything else in a login, also on a busy machine.
const passwordCost = { logN: 14, r: 8, p: 2 };
const ROUNDS = 15;

test('a login takes as long for an unknown user as for a wrong password', async () => {
  const db = await openDatabase('sqlite::memory:');
  try {
    await migrate(db, [{ name: 'accounts', migrations: [initial] }]);
    await createUser(db, { username: 'ada', password: 'correct horse battery' }, { clock: fakeClock(), passwordCost, audit: null });
    await createUser(db, { username: 'machine' }, { clock: fakeClock(), passwordCost, audit: null });
    const times: Record<string, number[]> = { ada: [], machine: [], nobody: [] };
    // Interleaved, so that a slow moment of the machine hits all of them.
    for (let round = 0; round < ROUNDS; round += 1) {
      for (const [login, list] of Object.entries(times)) {
        const cpu = process.cpuUsage();
        await expect(verifiedUser(db, login, 'wrong wrong wrong', { passwordCost })).rejects.toMatchObject({ code: 'invalid_credentials' });
        const { user, system } = process.cpuUsage(cpu);
        list.push(user + system);
      }
    }
    const [known = 0, machine = 0, unknown = 0] = Object.values(times).map(median);
    // Without the decoy hash the ratio is below 0.05.
    for (const other of [machine, unknown]) {
      expect(other / known).toBeGreaterThan(0.5);
      expect(other / known).toBeLessThan(2);
    }
  } finally {
    await db.close();
  }
});

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}
