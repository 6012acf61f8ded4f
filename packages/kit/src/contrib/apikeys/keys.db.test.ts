import { lockRows } from '../../../test/lock-rows.ts';
import { createHash, createHmac } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { addPerson, people, preparePeopleAndKeys, setEnabled } from '../../../test/people.ts';
import { countQueries } from '../../db/engine/query-observer.ts';
import { describeDatabases } from '../../testing/databases.ts';
import { fakeClock } from '../../testing/fake-clock.ts';
import { createApiKey } from './manage/create.ts';
import { formatKey, newPrefix, newSecret, parseKey } from './key/key.ts';
import { keyringOf } from './verify/keyring.ts';
import { revokeApiKey } from './manage/revoke.ts';
import { rotateApiKey } from './manage/rotate.ts';
import { KEY_STATES, keyState } from './key/state.ts';
import { countKeys, listKeys } from './rows/store.ts';
import { updateApiKey } from './manage/update.ts';
import { useApiKeys, type ApiKeysInUse } from './request/use-api-keys.ts';
import { verifyApiKey } from './verify/verify.ts';

const clock = fakeClock('2030-01-01T00:00:00.000Z');
const DAY_MS = 86_400_000;
const inDays = (days: number) => new Date(clock.now().getTime() + days * DAY_MS);

describeDatabases(
  'programs',
  (database) => {
    let keys: ApiKeysInUse;
    beforeAll(async () => {
      keys = await useApiKeys(database.db, { users: people, clock, maxKeysPerOwner: 1000 });
    });
    afterAll(() => keys.stop());

    const create = (input: Partial<Parameters<typeof createApiKey>[1]> = {}) =>
      createApiKey(database.db, { user: 'no-ada', name: 'CI', scopes: ['orders:read'], ...input });
    const works = async (raw: string) => (await verifyApiKey(database.db, raw)) !== null;
    const stored = async (id: string) =>
      (await database.db.query<Record<string, unknown>>('select * from api_keys where id = $1', [id]))[0] ?? {};

    describe('create', () => {
      test('a created key works and acts for its owner', async () => {
        const { apiKey, raw } = await create({
          name: '  CI  ',
          scopes: ['orders:read', '*', 'orders:read'],
          expiresAt: inDays(1),
          rateLimit: '20/5min',
        });
        expect(apiKey).toMatchObject({ owner_id: 'no-ada', name: 'CI', scopes: ['*', 'orders:read'], rate_limit: '20/5min' });
        const verified = await verifyApiKey(database.db, raw);
        expect(verified?.user).toEqual({
          id: 'no-ada',
          username: 'ada',
          email: null,
          is_active: true,
          is_staff: false,
          is_superuser: false,
        });
        expect(verified?.apiKey).toEqual(apiKey);
        expect(verified?.isPrevious).toBe(false);
      });

      test('only the digest of the secret is stored', async () => {
        const { apiKey, raw } = await create();
        const { secret = '' } = parseKey(raw, 'kit') ?? {};
        const row = await stored(apiKey.id);
        expect(row['digest']).toBe(createHash('sha256').update(secret).digest('hex'));
        expect(JSON.stringify(row)).not.toContain(secret);
      });

      test('an unknown owner is refused', async () => {
        await expect(create({ user: 'no-nobody' })).rejects.toMatchObject({ code: 'owner_not_found' });
      });

      test('every fault of the input is reported at once', async () => {
        await expect(create({ name: '', scopes: ['!'], expiresAt: inDays(-1), rateLimit: 'often' })).rejects.toMatchObject({
          status: 422,
          code: 'validation_error',
          errors: [
            { location: ['body', 'name'] },
            { location: ['body', 'scopes', 0] },
            { location: ['body', 'expires_at'] },
            { location: ['body', 'rate_limit'] },
          ],
        });
      });

      test('in the caller’s transaction the key exists exactly when that commits', async () => {
        let raw = '';
        const rolledBack = database.db.transaction(async (tx) => {
          ({ raw } = await createApiKey(tx, { user: 'no-ada', name: 'CI', scopes: [] }));
          expect(await verifyApiKey(tx, raw)).not.toBeNull();
          throw new Error('no');
        });
        await expect(rolledBack).rejects.toThrow('no');
        expect(await works(raw)).toBe(false);
        raw = await database.db.transaction(async (tx) => (await createApiKey(tx, { user: 'no-ada', name: 'CI', scopes: [] })).raw);
        expect(await works(raw)).toBe(true);
      });
    });

    describe('verify', () => {
      test('costs one statement and no write', async () => {
        const { raw } = await create();
        const { count, queries, result } = await countQueries(() => verifyApiKey(database.db, raw));
        expect(result).not.toBeNull();
        expect(count).toBe(1);
        expect(queries[0]?.sql.trimStart().slice(0, 6)).toBe('select');
      });

      test('a key that is not one costs no statement', async () => {
        const { raw } = await create();
        for (const garbage of [undefined, null, '', 'kit_x', raw.slice(0, -1), `${raw}x`, raw.replace('kit', 'kot'), 'x'.repeat(100_000)]) {
          const { count, result } = await countQueries(() => verifyApiKey(database.db, garbage));
          expect([result, count]).toEqual([null, 0]);
        }
      });

      test('an unknown prefix and a wrong secret are the same null after the same statement', async () => {
        const { apiKey } = await create();
        for (const prefix of [apiKey.prefix, newPrefix()]) {
          const { count, result } = await countQueries(() => verifyApiKey(database.db, formatKey('kit', { prefix, secret: newSecret() })));
          expect([result, count]).toEqual([null, 1]);
        }
      });

      test('a key whose owner is gone does not work', async () => {
        await addPerson(database.db, 'gone');
        const { raw } = await create({ user: 'no-gone' });
        await database.db.query("delete from people where handle = 'gone'");
        expect(await works(raw)).toBe(false);
      });
    });

    describe('rotate', () => {
      test('keeps row, prefix, owner, name, creation time and omitted parameters; the old value dies at once', async () => {
        const { apiKey, raw } = await create({ expiresAt: inDays(3), rateLimit: '5/min' });
        clock.advance(1000);
        const rotated = await rotateApiKey(database.db, apiKey);
        expect(rotated.apiKey).toEqual(apiKey);
        expect(rotated.raw.slice(0, 16)).toBe(raw.slice(0, 16));
        expect(rotated.raw).not.toBe(raw);
        expect([await works(raw), await works(rotated.raw)]).toEqual([false, true]);
      });

      test('undefined keeps a value, null clears it, a new one replaces it', async () => {
        const { apiKey } = await create({ expiresAt: inDays(3), rateLimit: '5/min' });
        const cleared = await rotateApiKey(database.db, apiKey.id, { expiresAt: null, rateLimit: null, scopes: ['b:c', 'a:b'] });
        expect(cleared.apiKey).toMatchObject({ expires_at: null, rate_limit: null, scopes: ['a:b', 'b:c'] });
        expect(await stored(apiKey.id)).toMatchObject({ expires_at: null, rate_limit: null, scopes: ['a:b', 'b:c'] });
        const set = await rotateApiKey(database.db, apiKey.id, { expiresAt: inDays(9), rateLimit: '1/s' });
        expect(set.apiKey).toMatchObject({ expires_at: inDays(9), rate_limit: '1/s', scopes: ['a:b', 'b:c'] });
      });

      test('with a grace the old secret works until it ends, and not a moment longer', async () => {
        const { apiKey, raw } = await create();
        const until = new Date(clock.now().getTime() + 60_000);
        const rotated = await rotateApiKey(database.db, apiKey, { graceSeconds: 60 });
        expect(rotated.apiKey.previous_expires_at).toEqual(until);
        expect((await verifyApiKey(database.db, raw))?.isPrevious).toBe(true);
        expect((await verifyApiKey(database.db, rotated.raw))?.isPrevious).toBe(false);
        clock.advance(59_999);
        expect(await works(raw)).toBe(true);
        clock.advance(1);
        expect([await works(raw), await works(rotated.raw)]).toEqual([false, true]);
      });

      test('rotating again ends the older of two secrets in use; without grace it ends both', async () => {
        const first = await create();
        const second = await rotateApiKey(database.db, first.apiKey, { graceSeconds: 600 });
        const third = await rotateApiKey(database.db, first.apiKey, { graceSeconds: 600 });
        expect([await works(first.raw), await works(second.raw), await works(third.raw)]).toEqual([false, true, true]);
        const fourth = await rotateApiKey(database.db, first.apiKey);
        expect([await works(second.raw), await works(third.raw), await works(fourth.raw)]).toEqual([false, false, true]);
        expect(await stored(first.apiKey.id)).toMatchObject({ previous_digest: null, previous_expires_at: null });
      });

      test('a revoked key is refused and stays as it was', async () => {
        const { apiKey, raw } = await create();
        await revokeApiKey(database.db, apiKey);
        const before = await stored(apiKey.id);
        await expect(rotateApiKey(database.db, apiKey, { rateLimit: '1/s' })).rejects.toMatchObject({ status: 409, code: 'key_revoked' });
        expect(await stored(apiKey.id)).toEqual(before);
        expect(await works(raw)).toBe(false);
      });

      test('an expired key comes back with a new expiry', async () => {
        const { apiKey, raw } = await create({ expiresAt: inDays(1) });
        clock.advance(DAY_MS);
        expect(await works(raw)).toBe(false);
        const rotated = await rotateApiKey(database.db, apiKey, { expiresAt: inDays(1) });
        expect(await works(rotated.raw)).toBe(true);
      });

      test('a key that does not exist is not found', async () => {
        await expect(rotateApiKey(database.db, '01890000-0000-7000-8000-000000000000')).rejects.toMatchObject({
          code: 'api_key_not_found',
        });
      });

      test('50 parallel rotations leave exactly one working new key', async () => {
        const { apiKey, raw } = await create();
        const rotated = await Promise.all(Array.from({ length: 50 }, () => rotateApiKey(database.db, apiKey)));
        const working = await Promise.all([raw, ...rotated.map((each) => each.raw)].map(works));
        expect(working.filter(Boolean)).toHaveLength(1);
        expect(working[0]).toBe(false);
      });
    });

    describe('revoke', () => {
      test('ends the current and the previous secret, is repeatable and keeps the first time and reason', async () => {
        const { apiKey, raw } = await create();
        const rotated = await rotateApiKey(database.db, apiKey, { graceSeconds: 600 });
        const at = clock.now();
        await revokeApiKey(database.db, apiKey, { reason: 'leaked' });
        expect([await works(raw), await works(rotated.raw)]).toEqual([false, false]);
        clock.advance(5000);
        await revokeApiKey(database.db, apiKey.id, { reason: 'again' });
        expect(await stored(apiKey.id)).toMatchObject({ revoked_at: at, revoked_reason: 'leaked' });
      });

      test('no verification that starts after revoke has returned succeeds, however many race it', async () => {
        const race = async (): Promise<void> => {
          const { apiKey, raw } = await create();
          let revoked = false;
          const lateSuccesses: number[] = [];
          const verifying = Array.from({ length: 8 }, async () => {
            for (let attempt = 0; attempt < 12; attempt += 1) {
              const startedAfter = revoked;
              if ((await works(raw)) && startedAfter) lateSuccesses.push(attempt);
            }
          });
          await Promise.all([...verifying, revokeApiKey(database.db, apiKey).then(() => (revoked = true))]);
          expect(lateSuccesses).toEqual([]);
          expect(await works(raw)).toBe(false);
        };
        // A refusal waits for the next tick: ten races, one after the other, would take as many times as long.
        await Promise.all(Array.from({ length: 10 }, race));
      });
    });

    describe('update', () => {
      test('changes what is given and leaves the secret alone', async () => {
        const { apiKey, raw } = await create({ rateLimit: '5/min' });
        const updated = await updateApiKey(database.db, apiKey, { name: 'deploys', scopes: ['z:y', 'a:b'], expiresAt: inDays(2) });
        expect(updated).toMatchObject({ name: 'deploys', scopes: ['a:b', 'z:y'], expires_at: inDays(2), rate_limit: '5/min' });
        expect((await verifyApiKey(database.db, raw))?.apiKey).toMatchObject({ name: 'deploys', scopes: ['a:b', 'z:y'] });
      });

      test('a revoked key is refused', async () => {
        const { apiKey } = await create();
        await revokeApiKey(database.db, apiKey);
        await expect(updateApiKey(database.db, apiKey, { name: 'x' })).rejects.toMatchObject({ code: 'key_revoked' });
      });
    });

    describe('states', () => {
      test('a key of a deactivated owner stops and resumes with its owner', async () => {
        await addPerson(database.db, 'pausing');
        const { raw } = await create({ user: 'no-pausing' });
        await setEnabled(database.db, 'pausing', false);
        expect(await works(raw)).toBe(false);
        await setEnabled(database.db, 'pausing', true);
        expect(await works(raw)).toBe(true);
      });

      test('a list by state holds exactly the keys that say so themselves', async () => {
        await addPerson(database.db, 'listed');
        for (const expiresAt of [null, inDays(1), inDays(9)]) {
          for (const isRevoked of [false, true]) {
            const { apiKey } = await create({ user: 'no-listed', expiresAt });
            if (isRevoked) await revokeApiKey(database.db, apiKey);
          }
        }
        clock.advance(DAY_MS);
        const { statements } = keyringOf(database.db);
        const page = { now: clock.now(), limit: 100 };
        for (const enabled of [true, false]) {
          await setEnabled(database.db, 'listed', enabled);
          const every = await listKeys(database.db, statements, { ownerId: 'no-listed' }, page);
          expect(every).toHaveLength(6);
          for (const state of KEY_STATES) {
            const found = await listKeys(database.db, statements, { ownerId: 'no-listed', state }, page);
            expect([state, found]).toEqual([state, every.filter((key) => keyState(key, clock.now()) === state)]);
            expect(await countKeys(database.db, statements, { ownerId: 'no-listed', state }, page.now)).toBe(found.length);
            const first = await listKeys(database.db, statements, { ownerId: 'no-listed', state }, { ...page, limit: 2 });
            const rest = await listKeys(database.db, statements, { ownerId: 'no-listed', state, after: first.at(-1) }, page);
            expect([...first, ...rest]).toEqual(found);
          }
        }
      });

      test('at its expiry a key stops', async () => {
        const { raw } = await create({ expiresAt: inDays(1) });
        clock.advance(DAY_MS - 1);
        expect(await works(raw)).toBe(true);
        clock.advance(1);
        expect(await works(raw)).toBe(false);
      });
    });
  },
  { prepare: preparePeopleAndKeys, template: 'people_and_keys' },
);

describeDatabases(
  'setup',
  (database) => {
    test('with a pepper the stored digest is HMAC-SHA-256 under it, and another pepper ends every key', async () => {
      const seasoned = await useApiKeys(database.db, { users: people, pepper: 'a pepper of some length' });
      const { apiKey, raw } = await createApiKey(database.db, { user: 'no-ada', name: 'CI', scopes: [] });
      const { secret = '' } = parseKey(raw, 'kit') ?? {};
      const [row] = await database.db.query<{ digest: string }>('select digest from api_keys where id = $1', [apiKey.id]);
      expect(row?.digest).toBe(createHmac('sha256', 'a pepper of some length').update(secret).digest('hex'));
      expect(await verifyApiKey(database.db, raw)).not.toBeNull();
      await seasoned.stop();
      const plain = await useApiKeys(database.db, { users: people });
      expect(await verifyApiKey(database.db, raw)).toBeNull();
      await plain.stop();
    });

    test('a pepper is set and changed without ending keys: they move to the new one as they are used', async () => {
      const digestOf = async (id: string) =>
        (await database.db.query<{ digest: string }>('select digest from api_keys where id = $1', [id]))[0]?.digest;
      const under = (pepper: string, raw: string) =>
        createHmac('sha256', pepper)
          .update(parseKey(raw, 'kit')?.secret ?? '')
          .digest('hex');
      const plain = await useApiKeys(database.db, { users: people });
      const used = await createApiKey(database.db, { user: 'no-ada', name: 'used', scopes: [] });
      const unused = await createApiKey(database.db, { user: 'no-ada', name: 'unused', scopes: [] });
      await plain.stop();
      const [first, second] = ['the first of two peppers', 'the second of two peppers'];
      for (const [pepper, previousPepper] of [
        [first, null],
        [second, first],
      ] as const) {
        const moving = await useApiKeys(database.db, { users: people, pepper, previousPepper });
        expect(await verifyApiKey(database.db, used.raw)).not.toBeNull();
        expect(await verifyApiKey(database.db, `${used.raw.slice(0, -1)}${used.raw.endsWith('x') ? 'y' : 'x'}`)).toBeNull();
        await moving.flush();
        expect(await digestOf(used.apiKey.id)).toBe(under(pepper, used.raw));
        expect(await verifyApiKey(database.db, used.raw)).not.toBeNull();
        await moving.stop();
      }
      const moved = await useApiKeys(database.db, { users: people, pepper: second });
      expect(await verifyApiKey(database.db, used.raw)).not.toBeNull();
      expect(await verifyApiKey(database.db, unused.raw)).toBeNull();
      await moved.stop();
    });

    test('a key that another transaction has locked holds up neither the move of the others to a new pepper nor the stop', async ({
      skip,
    }) => {
      if (database.dialect === 'sqlite') skip('SQLite has one writer at a time');
      const digestOf = async (id: string) =>
        (await database.db.query<{ digest: string }>('select digest from api_keys where id = $1', [id]))[0]?.digest;
      const plain = await useApiKeys(database.db, { users: people });
      const locked = await createApiKey(database.db, { user: 'no-ada', name: 'locked', scopes: [] });
      const free = await createApiKey(database.db, { user: 'no-ada', name: 'free', scopes: [] });
      await plain.stop();
      const before = { locked: await digestOf(locked.apiKey.id), free: await digestOf(free.apiKey.id) };
      const moving = await useApiKeys(database.db, { users: people, pepper: 'a pepper of some length', previousPepper: null });
      for (const { raw } of [locked, free]) expect(await verifyApiKey(database.db, raw)).not.toBeNull();
      const release = await lockRows(database.db, 'api_keys', [locked.apiKey.id]);
      await moving.stop();
      expect(await digestOf(free.apiKey.id)).not.toBe(before.free);
      await release();
      expect(await digestOf(locked.apiKey.id)).toBe(before.locked);
    });

    test('an app may choose its own tag', async () => {
      const keys = await useApiKeys(database.db, { users: people, tag: 'acme' });
      const { raw } = await createApiKey(database.db, { user: 'no-ada', name: 'CI', scopes: [] });
      expect(raw).toMatch(/^acme_/);
      expect(await verifyApiKey(database.db, raw)).not.toBeNull();
      await keys.stop();
    });

    test('the limit of active keys holds under parallel creation, and revoking makes room', async () => {
      const keys = await useApiKeys(database.db, { users: people, maxKeysPerOwner: 3 });
      const create = () => createApiKey(database.db, { user: 'no-bob', name: 'CI', scopes: [] });
      const results = await Promise.allSettled(Array.from({ length: 10 }, create));
      const made = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
      const refusals = results.flatMap((result) => (result.status === 'rejected' ? [result.reason as unknown] : []));
      expect(made).toHaveLength(3);
      for (const refusal of refusals) expect(refusal).toMatchObject({ status: 409, code: 'key_limit_reached', extensions: { limit: 3 } });
      await revokeApiKey(database.db, made[0]?.apiKey.id ?? '');
      await expect(create()).resolves.toBeDefined();
      await expect(create()).rejects.toMatchObject({ code: 'key_limit_reached' });
      await keys.stop();
    });

    test('the limit holds for an owner who is inactive: the keys all come back with the owner', async () => {
      const keys = await useApiKeys(database.db, { users: people, maxKeysPerOwner: 2 });
      await addPerson(database.db, 'away');
      const create = () => createApiKey(database.db, { user: 'no-away', name: 'CI', scopes: [] });
      await create();
      await setEnabled(database.db, 'away', false);
      await create();
      await expect(create()).rejects.toMatchObject({ status: 409, code: 'key_limit_reached' });
      await setEnabled(database.db, 'away', true);
      await expect(create()).rejects.toMatchObject({ code: 'key_limit_reached' });
      await keys.stop();
    });

    test('verbs on a database without a setup say what to do', async () => {
      await expect(verifyApiKey(database.db, 'x')).rejects.toThrow(/apiKeys\(\).*useApiKeys/);
    });
  },
  { prepare: preparePeopleAndKeys, template: 'people_and_keys' },
);
