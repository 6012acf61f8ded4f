import { expect, test } from 'vitest';
import { people, preparePeopleAndKeys } from '../../../test/people.ts';
import { describeDatabases } from '../../testing/databases.ts';
import { fakeClock } from '../../testing/fake-clock.ts';
import { createApiKey } from './create.ts';
import { formatKey, newPrefix, newSecret } from './key.ts';
import { revokeApiKey } from './revoke.ts';
import { useApiKeys } from './use-api-keys.ts';
import { verifyApiKey } from './verify.ts';

/** Per kind, one after another: several at once would hide a difference in each other's noise. */
const SAMPLES = 150;

describeDatabases(
  'timing',
  (database) => {
    test('unknown prefix, wrong secret, revoked and expired cannot be told apart by the time they take', async () => {
      const clock = fakeClock('2030-01-01T00:00:00.000Z');
      const keys = await useApiKeys(database.db, { users: people, clock });
      const make = (expiresAt: Date | null = null) => createApiKey(database.db, { user: 'no-ada', name: 'x', scopes: ['a:b'], expiresAt });
      const [good, revoked, expired] = [await make(), await make(), await make(new Date(clock.now().getTime() + 1000))];
      await revokeApiKey(database.db, revoked.apiKey);
      clock.advance(1000);
      // Joined texts are put together when first read: every key must be in one piece before the time starts.
      const flat = (raw: string) => Buffer.from(raw).toString();
      const kinds = {
        unknown: () => flat(formatKey('kit', { prefix: newPrefix(), secret: newSecret() })),
        wrong_secret: () => flat(formatKey('kit', { prefix: good.apiKey.prefix, secret: newSecret() })),
        revoked: () => flat(revoked.raw),
        expired: () => flat(expired.raw),
      };
      const names = Object.keys(kinds) as (keyof typeof kinds)[];
      const times: Record<string, number[]> = Object.fromEntries(names.map((name) => [name, []]));
      const attempts = names.flatMap((name) => Array.from({ length: SAMPLES }, () => name)).sort(() => Math.random() - 0.5);
      for (const name of attempts) {
        const raw = kinds[name]();
        const start = process.hrtime.bigint();
        expect(await verifyApiKey(database.db, raw)).toBeNull();
        times[name]?.push(Number(process.hrtime.bigint() - start));
      }
      await keys.stop();
      const deltas = names.flatMap((a, index) =>
        names.slice(index + 1).map((b) => ({ pair: `${a} / ${b}`, delta: dominance(times[a] ?? [], times[b] ?? []) })),
      );
      // Of two equal distributions the value scatters around 0 by 0.07; without the common answer time SQLite gives 0.8.
      for (const { pair, delta } of deltas) expect({ pair, told_apart: Math.abs(delta) > 0.35 }).toEqual({ pair, told_apart: false });
    });
  },
  { prepare: preparePeopleAndKeys, template: 'people_and_keys' },
);

/** Cliff's delta: how much more often a value of `a` exceeds one of `b` than the other way round. Outliers count as one, however far out. */
function dominance(a: readonly number[], b: readonly number[]): number {
  let sum = 0;
  for (const x of a) for (const y of b) sum += Math.sign(x - y);
  return sum / (a.length * b.length);
}
