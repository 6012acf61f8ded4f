import { expect, test } from 'vitest';
import { people, preparePeopleAndKeys } from '../../../../test/people.ts';
import type { Database } from '../../../db/engine/db.ts';
import { countQueries } from '../../../db/engine/query-observer.ts';
import { describeDatabases } from '../../../testing/databases.ts';
import { fakeClock } from '../../../testing/fake-clock.ts';
import { createApiKey } from '../manage/create.ts';
import { LastUsed } from './last-used.ts';
import { rotateApiKey } from '../manage/rotate.ts';
import { useApiKeys } from '../request/use-api-keys.ts';
import { verifyApiKey } from './verify.ts';

describeDatabases(
  'last used',
  (database) => {
    const setUp = async (db: Database) => {
      const clock = fakeClock('2030-01-01T00:00:00.000Z');
      const warnings: string[] = [];
      const log = { warn: (_: object, message: string) => warnings.push(message), error: () => undefined };
      const keys = await useApiKeys(db, { users: people, clock, log });
      const { apiKey, raw } = await createApiKey(db, { user: 'no-ada', name: 'CI', scopes: [] });
      return { clock, keys, apiKey, raw, warnings };
    };
    const read = async (id: string) => {
      const [row] = await database.db.query<{ last_used_at: Date | null; previous_last_used_at: Date | null }>(
        'select last_used_at, previous_last_used_at from api_keys where id = $1',
        [id],
      );
      return row;
    };

    /** PostgreSQL marks each version of a row with the transaction that wrote it; SQLite keeps no such thing. */
    const versionOf = async (id: string) =>
      database.dialect === 'sqlite'
        ? null
        : (await database.db.query<{ version: string }>('select xmin::text as version from api_keys where id = $1', [id]))[0]?.version;

    test('1,000 requests within a minute are written once, from any number of processes', async () => {
      const writes: string[] = [];
      const onQuery = ({ sql }: { sql: string }) => void (/^\s*update/.test(sql) && writes.push(sql));
      const [first, second] = [await database.open({ onQuery }), await database.open({ onQuery })];
      const { clock, keys, apiKey, raw } = await setUp(first);
      const other = await useApiKeys(second, { users: people, clock });
      const start = clock.now();
      const changes = new Set<string | undefined>();
      const versions = new Set<unknown>();
      for (let request = 0; request < 1000; request += 1) {
        expect(await verifyApiKey(request % 2 === 0 ? first : second, raw)).not.toBeNull();
        clock.advance(59);
        if (request % 100 !== 1) continue;
        for (const process of [keys, other]) {
          await process.flush();
          changes.add((await read(apiKey.id))?.last_used_at?.toISOString());
          versions.add(await versionOf(apiKey.id));
        }
      }
      await Promise.all([keys.stop(), other.stop()]);
      expect([...changes]).toEqual([start.toISOString()]);
      expect(versions.size).toBe(1);
      // Each process asks once; the second finds the first one's time and writes nothing.
      expect(writes.length).toBeLessThanOrEqual(2);
    });

    test('after a minute the next request is written', async () => {
      const db = await database.open();
      const { clock, keys, apiKey, raw } = await setUp(db);
      await verifyApiKey(db, raw);
      await keys.flush();
      clock.advance(59_999);
      await verifyApiKey(db, raw);
      await keys.flush();
      expect((await read(apiKey.id))?.last_used_at).toEqual(new Date('2030-01-01T00:00:00.000Z'));
      clock.advance(1);
      await verifyApiKey(db, raw);
      await keys.flush();
      expect((await read(apiKey.id))?.last_used_at).toEqual(clock.now());
      await keys.stop();
    });

    test('what is noted is written by itself, and outside of the transaction that noted it', async () => {
      const db = await database.open();
      const { clock, keys, apiKey, raw } = await setUp(db);
      await db.transaction(async (tx) => {
        const { queries } = await countQueries(async () => {
          await verifyApiKey(tx, raw);
          await new Promise((resolve) => setTimeout(resolve, 20));
        });
        expect(queries).toHaveLength(1);
      });
      await expect.poll(async () => (await read(apiKey.id))?.last_used_at, { timeout: 10_000 }).toEqual(clock.now());
      await keys.stop();
    });

    test('stopping writes what is left', async () => {
      const db = await database.open();
      const { clock, keys, apiKey, raw } = await setUp(db);
      await verifyApiKey(db, raw);
      expect((await read(apiKey.id))?.last_used_at).toBeNull();
      await keys.stop();
      expect((await read(apiKey.id))?.last_used_at).toEqual(clock.now());
    });

    test('the use of a secret in its grace is told apart', async () => {
      const db = await database.open();
      const { clock, keys, apiKey, raw } = await setUp(db);
      await verifyApiKey(db, raw);
      await keys.flush();
      const usedAt = clock.now();
      const rotated = await rotateApiKey(db, apiKey, { graceSeconds: 3600 });
      expect(rotated.apiKey.previous_last_used_at).toEqual(usedAt);
      expect(await read(apiKey.id)).toEqual({ last_used_at: usedAt, previous_last_used_at: usedAt });
      clock.advance(120_000);
      await verifyApiKey(db, rotated.raw);
      await keys.flush();
      expect(await read(apiKey.id)).toEqual({ last_used_at: clock.now(), previous_last_used_at: usedAt });
      // Another key in use never hides that the old one still is.
      const lastUsed = clock.now();
      clock.advance(1000);
      await verifyApiKey(db, raw);
      await keys.flush();
      expect(await read(apiKey.id)).toEqual({ last_used_at: lastUsed, previous_last_used_at: clock.now() });
      await keys.stop();
    });

    test('a use of the old secret that waits while a rotation ends that secret is not told of the next one', async () => {
      const db = await database.open();
      const { clock, keys, apiKey, raw } = await setUp(db);
      await rotateApiKey(db, apiKey, { graceSeconds: 3600 });
      expect((await verifyApiKey(db, raw))?.isPrevious).toBe(true);
      await rotateApiKey(db, apiKey);
      await keys.flush();
      expect(await read(apiKey.id)).toEqual({ last_used_at: clock.now(), previous_last_used_at: null });
      await keys.stop();
    });

    test('a database that takes no writes neither fails nor delays a request', async () => {
      const db = await database.open();
      const { clock, keys, apiKey, raw, warnings } = await setUp(db);
      const recorder = new LastUsed(db, { warn: (_: object, message: string) => void warnings.push(message), error: () => undefined });
      const note = () => recorder.note({ id: apiKey.id, last_used_at: null, previous_last_used_at: null }, false, clock.now());
      await db.query('alter table api_keys rename column last_used_at to elsewhere');
      try {
        note();
        await expect(recorder.flush()).resolves.toBeUndefined();
        expect(warnings.join()).toContain('could not write');
      } finally {
        await db.query('alter table api_keys rename column elsewhere to last_used_at');
      }
      note();
      await recorder.stop();
      expect((await read(apiKey.id))?.last_used_at, 'the next request is written').toEqual(clock.now());
      expect(await verifyApiKey(db, raw)).not.toBeNull();
      await keys.stop();
    });

    if (database.dialect === 'sqlite') return;

    test('a key that another transaction has locked is skipped', async () => {
      const db = await database.open();
      const { keys, apiKey, raw } = await setUp(db);
      await database.db.transaction(async (tx) => {
        await tx.query('select id from api_keys where id = $1 for update', [apiKey.id]);
        await verifyApiKey(db, raw);
        await keys.flush();
      });
      expect((await read(apiKey.id))?.last_used_at).toBeNull();
      await keys.stop();
    });
  },
  { prepare: preparePeopleAndKeys, template: 'people_and_keys' },
);
