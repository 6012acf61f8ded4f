import { expect, test } from 'vitest';
import { people, preparePeopleAndKeys } from '../../../../test/people.ts';
import { describeDatabases } from '../../../testing/databases.ts';
import { fakeClock } from '../../../testing/fake-clock.ts';
import { createApiKey } from '../manage/create.ts';
import { usageOf } from '../rows/usage-store.ts';
import { useApiKeys } from '../request/use-api-keys.ts';
import { verifyApiKey } from './verify.ts';

const BEGIN = new Date('2030-01-01T00:00:00.000Z');
const END = new Date('2100-01-01T00:00:00.000Z');

describeDatabases(
  'usage of API keys',
  (database) => {
    test('requests of each key are counted by the hour, in one write for all of them, from any number of processes', async () => {
      const writes: string[] = [];
      const onQuery = ({ sql }: { sql: string }) => void (/api_key_usage/.test(sql) && /^\s*insert/.test(sql) && writes.push(sql));
      const [first, second] = [await database.open({ onQuery }), await database.open()];
      const clock = fakeClock('2030-01-01T10:59:30.000Z');
      const [keys, other] = [await useApiKeys(first, { users: people, clock }), await useApiKeys(second, { users: people, clock })];
      const [a, b] = [
        await createApiKey(first, { user: 'no-ada', name: 'CI', scopes: [] }),
        await createApiKey(first, { user: 'no-bob', name: 'Desk', scopes: [] }),
      ];
      for (let request = 0; request < 60; request += 1) {
        clock.advance(1000);
        await verifyApiKey(request % 2 === 0 ? first : second, a.raw);
        if (request % 3 === 0) await verifyApiKey(first, b.raw);
      }
      expect(await verifyApiKey(first, `${a.raw.slice(0, -1)}${a.raw.endsWith('x') ? 'y' : 'x'}`)).toBeNull();
      expect(writes).toHaveLength(0);
      await Promise.all([keys.flush(), other.flush()]);
      expect(writes).toHaveLength(1);
      expect(await usageOf(database.db, a.apiKey.id, BEGIN, END)).toEqual([
        { hour: new Date('2030-01-01T10:00:00.000Z'), requests: 29 },
        { hour: new Date('2030-01-01T11:00:00.000Z'), requests: 31 },
      ]);
      expect((await usageOf(database.db, b.apiKey.id, BEGIN, END)).reduce((sum, { requests }) => sum + requests, 0)).toBe(20);
      // What is counted after the last write is written when the process stops.
      await verifyApiKey(first, b.raw);
      await Promise.all([keys.stop(), other.stop()]);
      expect((await usageOf(database.db, b.apiKey.id, BEGIN, END)).reduce((sum, { requests }) => sum + requests, 0)).toBe(21);
    });

    test('counts survive a database that does not take writes, and requests do not notice', async () => {
      const db = await database.open();
      const clock = fakeClock('2030-02-01T10:00:00.000Z');
      const warnings: string[] = [];
      const log = { warn: (_: object, message: string) => warnings.push(message), error: () => undefined };
      const keys = await useApiKeys(db, { users: people, clock, log });
      const { apiKey, raw } = await createApiKey(db, { user: 'no-ada', name: 'Outage', scopes: [] });
      await verifyApiKey(db, raw);
      await database.db.execute('alter table api_key_usage rename to api_key_usage_away');
      await keys.flush();
      expect(warnings).toEqual(['could not count the use of API keys yet; requests are not affected']);
      expect(await verifyApiKey(db, raw)).not.toBeNull();
      await database.db.execute('alter table api_key_usage_away rename to api_key_usage');
      await keys.stop();
      expect(await usageOf(database.db, apiKey.id, BEGIN, END)).toEqual([{ hour: new Date('2030-02-01T10:00:00.000Z'), requests: 2 }]);
    });

    test('counts of more than 90 days ago are deleted', async () => {
      const db = await database.open();
      const clock = fakeClock('2030-03-01T10:00:00.000Z');
      const keys = await useApiKeys(db, { users: people, clock });
      const { apiKey, raw } = await createApiKey(db, { user: 'no-ada', name: 'Old', scopes: [] });
      await verifyApiKey(db, raw);
      await keys.flush();
      clock.advance(91 * 86_400_000);
      await verifyApiKey(db, raw);
      await keys.stop();
      expect((await usageOf(database.db, apiKey.id, BEGIN, END)).map(({ hour }) => hour.toISOString())).toEqual([
        '2030-05-31T10:00:00.000Z',
      ]);
    });
  },
  { prepare: preparePeopleAndKeys, template: 'people_and_keys' },
);
