import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { type LiveApp, resetRights, send, startLive, ticketModule, ticketResource, tickets } from '../../../test/crud/live.ts';
import { people } from '../../../test/crud/shop.ts';
import { CHANGES_KEPT_MS, pruneChanges } from '../../app/data/prune-changes.ts';
import { coreTables } from '../../app/data/migration-modules.ts';
import { insert, type Database } from '../../db/index.ts';
import { migrate } from '../../db/migrations/migrate.ts';
import { describeDatabases } from '../../testing/databases.ts';
import { crudOf, touched } from '../index.ts';

describeDatabases('the change log', (database) => {
  let db: Database;
  let live: LiveApp;
  beforeAll(async () => {
    db = database.db;
    await migrate(db, [coreTables, ticketModule]);
    live = await startLive(db);
  });
  afterAll(() => live.app.close());
  beforeEach(async () => {
    resetRights();
    await db.query('delete from tickets');
    await db.query('delete from kit_changes');
  });

  type Logged = { readonly key: string; readonly kind: string; readonly prior: Record<string, unknown> | null };
  async function logged(): Promise<Logged[]> {
    const rows = await db.query<{ key: string; kind: string; prior: unknown }>(
      'select key, kind, prior from kit_changes order by position',
    );
    return rows.map(({ key, kind, prior }) => ({
      key: JSON.parse(key) as string,
      kind,
      prior: (typeof prior === 'string' ? JSON.parse(prior) : prior) as Logged['prior'],
    }));
  }

  test('has each write once, with the row before it, and never a sensitive column', async () => {
    const { body } = await send(live.url, 'ann', 'POST', { title: 'one', secret: 'hunter2', count: '9007199254740993', price: '1.50' });
    const { id } = body as { id: string };
    await send(`${live.url}/${id}`, 'ann', 'PATCH', { title: 'two', due_at: '2026-01-02T03:04:05.678Z' });
    await send(`${live.url}/${id}`, 'ann', 'PATCH', { title: 'two' });
    await send(`${live.url}/${id}`, 'ann', 'DELETE');
    await send(`${live.url}/${id}/restore`, 'ann', 'POST');
    const found = await logged();
    expect(found.map(({ key, kind }) => [key, kind])).toEqual([
      [id, 'created'],
      [id, 'changed'],
      [id, 'changed'],
      [id, 'changed'],
      [id, 'changed'],
    ]);
    expect(found[1]?.prior).toMatchObject({ title: 'one', due_at: null, count: '9007199254740993', price: '1.50', version: 1 });
    expect(found[2]?.prior).toMatchObject({ title: 'two', due_at: '2026-01-02T03:04:05.678Z', version: 2 });
    expect(found.at(-1)?.prior?.['deleted_at']).not.toBeNull();
    expect(JSON.stringify(found)).not.toMatch(/hunter2|"secret"/);
    expect(found.map(({ prior }) => prior?.['~secret'])).toEqual([undefined, 'false', 'false', 'false', 'false']);
  });

  test('has writes of bulk operations, programs and touched(), and none of a transaction that is rolled back', async () => {
    const { body } = await send(`${live.url}/bulk`, 'ann', 'POST', { items: [{ title: 'a' }, { title: 'b' }] });
    const ids = (body as { items: { id: string }[] }).items.map(({ id }) => id);
    const user = { id: people.ann.id, username: 'ann', email: null, is_active: true, is_staff: false, is_superuser: false };
    await crudOf(live.app, ticketResource)
      .as({ user, tenant: 'north' })
      .write()
      .update(ids[0] as string, { title: 'c' });
    await db.transaction((tx) => touched(tx, ticketResource, ids));
    await db
      .transaction(async (tx) => {
        await touched(tx, ticketResource, ids);
        throw new Error('undone');
      })
      .catch(() => undefined);
    expect((await logged()).map(({ key, kind }) => [key, kind])).toEqual([
      [ids[0], 'created'],
      [ids[1], 'created'],
      [ids[0], 'changed'],
      [ids[0], 'touched'],
      [ids[1], 'touched'],
    ]);
    await insert(db, tickets, { org: 'north', owner_id: people.ann.id, title: 'by SQL' });
    expect(await logged()).toHaveLength(5);
  });

  test('keeps changes for as long as clients may continue, and the last one', async () => {
    for (const title of ['a', 'b', 'c']) await send(live.url, 'ann', 'POST', { title });
    expect(await pruneChanges(db)).toBe(0);
    const at = new Date(db.clock.now().getTime() - CHANGES_KEPT_MS - 60_000);
    await db.query('update kit_changes set at = $1', [at]);
    expect(await pruneChanges(db)).toBe(2);
    expect(await pruneChanges(db)).toBe(0);
    expect(await logged()).toHaveLength(1);
  });
});
