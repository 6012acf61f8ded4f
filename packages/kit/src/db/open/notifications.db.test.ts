import { expect, test, vi } from 'vitest';
import { isBehindPooler, NOTIFICATIONS_ARE_LOST } from '../../../../../test/provision/behind-pooler.ts';
import { describeDatabases } from '../../testing/databases.ts';

describeDatabases('notifications', (database) => {
  test('a handle knows its database, inside and outside of transactions', async () => {
    expect(database.db.database).toBe(database.db);
    await database.db.transaction(async (tx) => {
      expect(tx.database).toBe(database.db);
      await tx.transaction(async (inner) => expect(inner.database).toBe(database.db));
    });
  });

  test('a notification arrives when its transaction commits, and never when it rolls back', async (context) => {
    context.skip(database.dialect === 'postgres' && isBehindPooler(), NOTIFICATIONS_ARE_LOST);
    const heard: string[] = [];
    const stop = await database.db.listen('kit_test_notes', (payload) => heard.push(payload));
    await database.db
      .transaction(async (tx) => {
        await database.db.notify(tx, 'kit_test_notes', 'dropped');
        throw new Error('no');
      })
      .catch(() => undefined);
    await database.db.transaction(async (tx) => {
      await database.db.notify(tx, 'kit_test_notes', 'kept');
      expect(heard).toEqual([]);
    });
    await vi.waitFor(() => expect(heard).toEqual(['kept']));
    await stop();
  });

  test('a channel without listeners is silent', async (context) => {
    context.skip(database.dialect === 'postgres' && isBehindPooler(), NOTIFICATIONS_ARE_LOST);
    const heard: string[] = [];
    const stop = await database.db.listen('kit_test_end', (payload) => heard.push(payload));
    await database.db.notify(database.db, 'kit_test_end', 'one');
    await database.db.notify(database.db, 'another channel', 'unheard');
    await vi.waitFor(() => expect(heard).toEqual(['one']));
    await stop();
    await database.db.notify(database.db, 'kit_test_end', 'two');
    const after = await database.db.listen('kit_test_end', (payload) => heard.push(payload));
    await database.db.notify(database.db, 'kit_test_end', 'three');
    await vi.waitFor(() => expect(heard).toEqual(['one', 'three']));
    await after();
  });

  test('several listeners of one channel all hear, and a failing one does not affect the others', async (context) => {
    context.skip(database.dialect === 'postgres' && isBehindPooler(), NOTIFICATIONS_ARE_LOST);
    const heard: string[] = [];
    const logged: unknown[] = [];
    const db = await database.open({ log: { warn: () => undefined, error: (fields) => logged.push(fields) } });
    await db.listen('kit_test_many', () => {
      throw new Error('broken listener');
    });
    await db.listen('kit_test_many', (payload) => heard.push(`a ${payload}`));
    await db.listen('kit_test_many', (payload) => heard.push(`b ${payload}`));
    await db.notify(db, 'kit_test_many', '1');
    await vi.waitFor(() => expect(heard).toEqual(['a 1', 'b 1']));
    expect(logged).toHaveLength(1);
  });

  test('a payload that PostgreSQL could not carry is refused on both', async () => {
    await expect(database.db.notify(database.db, 'orders', 'x'.repeat(8000))).rejects.toThrow('at most 7,999 bytes');
  });

  if (database.dialect === 'sqlite') return;

  test('a lost listening connection is reported, and again when it is back', async (context) => {
    context.skip(database.dialect === 'postgres' && isBehindPooler(), NOTIFICATIONS_ARE_LOST);
    const seen: string[] = [];
    const listening = await database.open();
    await listening.listen('kit_test_lost', (payload) => seen.push(payload), {
      onDisconnect: () => seen.push('lost'),
      onReconnect: () => seen.push('back'),
    });
    await database.db.query("select pg_terminate_backend(pid) from pg_stat_activity where query like 'listen%kit_test_lost%'");
    await vi.waitFor(() => expect(seen).toEqual(['lost', 'back']), { timeout: 10_000 });
    await database.db.notify(database.db, 'kit_test_lost', 'heard again');
    await vi.waitFor(() => expect(seen).toEqual(['lost', 'back', 'heard again']), { timeout: 10_000 });
  });

  test('… also when a new listener opens the connection before it would have been tried again', async (context) => {
    context.skip(database.dialect === 'postgres' && isBehindPooler(), NOTIFICATIONS_ARE_LOST);
    const seen: string[] = [];
    const listening = await database.open();
    await listening.listen('kit_test_early', () => undefined, {
      onDisconnect: () => void listening.listen('kit_test_newer', () => undefined).then(() => seen.push('newer')),
      onReconnect: () => seen.push('back'),
    });
    await database.db.query("select pg_terminate_backend(pid) from pg_stat_activity where query like 'listen%kit_test_early%'");
    await vi.waitFor(() => expect(seen).toEqual(['back', 'newer']), { timeout: 10_000 });
  });
});
