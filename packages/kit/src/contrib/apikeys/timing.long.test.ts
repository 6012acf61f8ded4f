import { expect, test } from 'vitest';
import { people, preparePeopleAndKeys } from '../../../test/people.ts';
import { describeDatabases } from '../../testing/databases.ts';
import { fakeClock } from '../../testing/fake-clock.ts';
import { createApiKey } from './manage/create.ts';
import { formatKey, newPrefix, newSecret } from './key/key.ts';
import { revokeApiKey } from './manage/revoke.ts';
import { useApiKeys } from './request/use-api-keys.ts';
import { verifyApiKey } from './verify/verify.ts';

/** Per kind, one after another: several at once would hide a difference in each other's noise. */
const SAMPLES = 200;

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
      // Joined texts are put together when first read, and making a key takes longer than reading one: all are there before the time starts.
      const flat = (raw: string) => Buffer.from(raw).toString();
      const kinds = {
        unknown: () => flat(formatKey('kit', { prefix: newPrefix(), secret: newSecret() })),
        wrong_secret: () => flat(formatKey('kit', { prefix: good.apiKey.prefix, secret: newSecret() })),
        revoked: () => flat(revoked.raw),
        expired: () => flat(expired.raw),
      };
      const names = Object.keys(kinds) as (keyof typeof kinds)[];
      const measure = async (): Promise<string[]> => {
        const times: Record<string, number[]> = Object.fromEntries(names.map((name) => [name, []]));
        const attempts = names.flatMap((name) => Array.from({ length: SAMPLES }, () => ({ name, raw: kinds[name]() })));
        for (const { name, raw } of attempts.sort(() => Math.random() - 0.5)) {
          const start = process.hrtime.bigint();
          const verified = await verifyApiKey(database.db, raw);
          times[name]?.push(Number(process.hrtime.bigint() - start));
          expect(verified).toBeNull();
        }
        // Of two equal distributions the value scatters around 0 by 0.08 with 100 samples.
        return names.flatMap((a) => names.filter((b) => dominance(times[a] ?? [], times[b] ?? []) > 0.35).map((b) => `${a} > ${b}`));
      };
      // A difference is there every time, and in the same direction; what else happens on the machine is not.
      let toldApart = await measure();
      for (let again = 0; again < 2 && toldApart.length > 0; again += 1) {
        const seen = await measure();
        toldApart = toldApart.filter((pair) => seen.includes(pair));
      }
      await keys.stop();
      expect(toldApart).toEqual([]);
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
