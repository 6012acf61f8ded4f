import pg from 'pg';
import { expect, inject, test } from 'vitest';
import { isBehindPooler, NOTIFICATIONS_ARE_LOST } from '../../../../../../test/provision/behind-pooler.ts';
import { addPerson, people, preparePeopleAndKeys, setEnabled } from '../../../../test/people.ts';
import type { Database } from '../../../db/engine/db.ts';
import { countQueries } from '../../../db/engine/query-observer.ts';
import { describeDatabases, type TestDatabase } from '../../../testing/databases.ts';
import { fakeClock } from '../../../testing/fake-clock.ts';
import { TICK_MS } from './refusal-tick.ts';
import { createApiKey } from '../manage/create.ts';
import { formatKey, newSecret } from '../key/key.ts';
import { revokeApiKey } from '../manage/revoke.ts';
import { rotateApiKey } from '../manage/rotate.ts';
import { updateApiKey } from '../manage/update.ts';
import { useApiKeys } from '../request/use-api-keys.ts';
import { verifyApiKey } from './verify.ts';

const MAX_AGE_MS = 60_000;

async function setUp(database: TestDatabase) {
  const db = await database.open();
  const clock = fakeClock('2030-01-01T00:00:00.000Z');
  const keys = await useApiKeys(db, { users: people, clock, cache: { maxAgeMs: MAX_AGE_MS }, maxKeysPerOwner: 1000 });
  const create = (input: Partial<Parameters<typeof createApiKey>[1]> = {}) =>
    createApiKey(db, { user: 'no-ada', name: 'CI', scopes: ['a:b'], ...input });
  return { db, clock, keys, create };
}

const statements = async (db: Database, raw: string) => (await countQueries(() => verifyApiKey(db, raw))).count;
const works = async (db: Database, raw: string) => (await verifyApiKey(db, raw)) !== null;

describeDatabases(
  'cache',
  (database) => {
    test('a second verification costs no statement until the entry is too old', async () => {
      const { db, clock, keys, create } = await setUp(database);
      const { raw } = await create();
      expect([await statements(db, raw), await statements(db, raw)]).toEqual([1, 0]);
      clock.advance(MAX_AGE_MS - 1);
      expect(await statements(db, raw)).toBe(0);
      clock.advance(1);
      expect(await statements(db, raw)).toBe(1);
      clock.advance(-1000);
      expect(await statements(db, raw), 'a clock that was set back proves nothing').toBe(1);
      await keys.stop();
    });

    test('the secret is compared and the expiry judged on every hit', async () => {
      const { db, clock, keys, create } = await setUp(database);
      const { apiKey, raw } = await create({ expiresAt: new Date(clock.now().getTime() + 1000) });
      expect(await works(db, raw)).toBe(true);
      const { raw: otherRaw } = await create();
      expect(await works(db, otherRaw.replace(/^kit_.{12}/, `kit_${apiKey.prefix}`))).toBe(false);
      clock.advance(1000);
      expect(await works(db, raw)).toBe(false);
      await keys.stop();
    });

    test('a refusal from memory is counted and answered like one from the database', async () => {
      const db = await database.open();
      const settings = { users: people, cache: { maxAgeMs: MAX_AGE_MS }, maxKeysPerOwner: 1000, failedAttempts: '2/min' };
      const keys = await useApiKeys(db, settings);
      const { apiKey, raw } = await createApiKey(db, { user: 'no-ada', name: 'CI', scopes: [] });
      await verifyApiKey(db, raw);
      const wrong = () => formatKey('kit', { prefix: apiKey.prefix, secret: newSecret() });
      for (let attempt = 0; attempt < 2; attempt += 1) {
        const startedAt = performance.now();
        const { count, result } = await countQueries(() => verifyApiKey(db, wrong(), { clientAddress: '192.0.2.1' }));
        expect([count, result]).toEqual([0, null]);
        expect(performance.now() - startedAt).toBeGreaterThanOrEqual(TICK_MS);
      }
      await expect(verifyApiKey(db, wrong(), { clientAddress: '192.0.2.1' })).rejects.toMatchObject({ status: 429, code: 'throttled' });
      await keys.stop();
    });

    test('what a request does to the dates it was given reaches no other request', async () => {
      const { db, clock, keys, create } = await setUp(database);
      const expiresAt = new Date(clock.now().getTime() + 1000);
      const { raw } = await create({ expiresAt });
      for (let look = 0; look < 3; look += 1) (await verifyApiKey(db, raw))?.apiKey.expires_at?.setFullYear(2099);
      expect(await statements(db, raw), 'cached').toBe(0);
      expect((await verifyApiKey(db, raw))?.apiKey.expires_at).toEqual(expiresAt);
      clock.advance(1000);
      expect(await works(db, raw)).toBe(false);
      await keys.stop();
    });

    test('revoke, rotate, edit and a changed owner are seen by the next request of this process', async () => {
      const { db, keys, create } = await setUp(database);
      const revoked = await create();
      expect(await works(db, revoked.raw)).toBe(true);
      await revokeApiKey(db, revoked.apiKey);
      expect(await works(db, revoked.raw)).toBe(false);

      const rotated = await create();
      expect(await works(db, rotated.raw)).toBe(true);
      await rotateApiKey(db, rotated.apiKey);
      expect(await works(db, rotated.raw)).toBe(false);

      const edited = await create();
      expect(await works(db, edited.raw)).toBe(true);
      await updateApiKey(db, edited.apiKey, { scopes: ['c:d'] });
      expect((await verifyApiKey(db, edited.raw))?.apiKey.scopes).toEqual(['c:d']);

      await addPerson(db, 'leaving');
      const owned = await create({ user: 'no-leaving' });
      expect(await works(db, owned.raw)).toBe(true);
      await db.transaction(async (tx) => {
        await setEnabled(tx, 'leaving', false);
        await keys.ownerChanged(tx, 'no-leaving');
      });
      expect(await works(db, owned.raw)).toBe(false);
      await keys.stop();
      await database.db.query("delete from people where handle = 'leaving'");
    });

    test('a change that is rolled back leaves the entry', async () => {
      const { db, keys, create } = await setUp(database);
      const { apiKey, raw } = await create();
      expect(await works(db, raw)).toBe(true);
      const rolledBack = db.transaction(async (tx) => {
        await revokeApiKey(tx, apiKey);
        expect(await verifyApiKey(tx, raw), 'the transaction sees its own change').toBeNull();
        throw new Error('no');
      });
      await expect(rolledBack).rejects.toThrow('no');
      expect(await works(db, raw)).toBe(true);
      await keys.stop();
    });

    test('a read that a revoke overtakes is not kept', async () => {
      const { db, keys, create } = await setUp(database);
      for (let round = 0; round < 20; round += 1) {
        const { apiKey, raw } = await create();
        const reads = Array.from({ length: 6 }, () => verifyApiKey(db, raw));
        await revokeApiKey(db, apiKey);
        await Promise.all(reads);
        expect(await works(db, raw)).toBe(false);
      }
      await keys.stop();
    });

    test('word of a change that only a newer version knows empties the memory', async (context) => {
      context.skip(database.dialect === 'postgres' && isBehindPooler(), NOTIFICATIONS_ARE_LOST);
      const { db, keys, create } = await setUp(database);
      const { raw } = await create();
      await verifyApiKey(db, raw);
      expect(await statements(db, raw)).toBe(0);
      await db.transaction((tx) => db.notify(tx, 'kit_api_keys', 'everything:changed'));
      await expect.poll(() => statements(db, raw), { timeout: 5000 }).toBe(1);
      await keys.stop();
    });

    test('memory is bounded by entriesMax', async () => {
      const db = await database.open();
      const keys = await useApiKeys(db, { users: people, cache: { maxAgeMs: MAX_AGE_MS, entriesMax: 2 }, maxKeysPerOwner: 1000 });
      const raws: string[] = [];
      for (let index = 0; index < 3; index += 1) raws.push((await createApiKey(db, { user: 'no-ada', name: 'CI', scopes: [] })).raw);
      for (const raw of raws) await verifyApiKey(db, raw);
      expect(await Promise.all(raws.slice(1).map((raw) => statements(db, raw)))).toEqual([0, 0]);
      expect(await statements(db, raws[0] ?? '')).toBe(1);
      await keys.stop();
    });

    if (database.dialect === 'sqlite') return;

    test('other processes hear of revoke, rotate, edit and changed owners', async (context) => {
      context.skip(isBehindPooler(), NOTIFICATIONS_ARE_LOST);
      const here = await setUp(database);
      const there = await setUp(database);
      await addPerson(here.db, 'moving');
      const made = await here.create({ user: 'no-moving' });
      for (const change of [
        () => updateApiKey(here.db, made.apiKey, { name: 'other' }),
        () => here.db.transaction((tx) => here.keys.ownerChanged(tx, 'no-moving')),
        () => rotateApiKey(here.db, made.apiKey),
        () => revokeApiKey(here.db, made.apiKey),
      ]) {
        await verifyApiKey(there.db, made.raw);
        expect(await statements(there.db, made.raw), 'cached').toBe(0);
        await change();
        await expect.poll(() => statements(there.db, made.raw), { timeout: 5000 }).toBe(1);
      }
      await Promise.all([here.keys.stop(), there.keys.stop()]);
    });

    test('while the listener is down the cache is bypassed, and it serves again once it is back', async (context) => {
      context.skip(isBehindPooler(), NOTIFICATIONS_ARE_LOST);
      const { db, keys, create } = await setUp(database);
      const { raw } = await create();
      await verifyApiKey(db, raw);
      expect(await statements(db, raw)).toBe(0);
      const server = new pg.Client({ connectionString: inject('postgresUrl') });
      await server.connect();
      const name = new URL(database.url).pathname.slice(1);
      const listeners = `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}' and query ilike 'listen%kit_api_keys%'`;
      // No new connection is accepted until this is set: the listener stays down.
      await server.query(`alter database "${name}" with allow_connections false`);
      try {
        await server.query(listeners);
        await expect.poll(() => statements(db, raw), { timeout: 5000 }).toBe(1);
        for (let again = 0; again < 5; again += 1) expect(await statements(db, raw)).toBe(1);
      } finally {
        await server.query(`alter database "${name}" with allow_connections true`);
        await server.end();
      }
      await expect
        .poll(
          async () => {
            await verifyApiKey(db, raw);
            return statements(db, raw);
          },
          { timeout: 15_000 },
        )
        .toBe(0);
      await keys.stop();
    });
  },
  { prepare: preparePeopleAndKeys, template: 'people_and_keys' },
);
