import { beforeEach, expect, test } from 'vitest';
import type { Db } from '../../../db/engine/db.ts';
import { migrate } from '../../../db/migrations/migrate.ts';
import { describeDatabases } from '../../../testing/databases.ts';
import { fakeClock } from '../../../testing/fake-clock.ts';
import { GENESIS } from './chain.ts';
import { auditMigrations } from '../migrations/all.ts';
import { pruneAudit } from './prune.ts';
import { auditSink } from '../record/record.ts';
import { findEntry } from './store.ts';
import { verifyChain } from './verify-chain.ts';
import { sealEntries } from './seal.ts';

const clock = fakeClock('2030-01-01T00:00:00.000Z');
const sink = auditSink({ clock, sensitive: () => new Set(), databases: ['default'] });
const note = async (db: Db, action: string) => {
  await sink.record(db, [{ action, target_type: 'thing', target_id: 't1' }]);
  await sealEntries(db, { wait: true });
};

describeDatabases(
  'direct changes of the audit tables',
  (database) => {
    let db: Db;
    beforeEach(async () => {
      ({ db } = database);
      await db.query('delete from audit_entries');
      await db.query('delete from audit_inbox');
      await db.query('update audit_chain set length = 0, hash = $1, pruned_through = 0, pruned_hash = $1', [GENESIS]);
      for (const action of ['first', 'second', 'third']) await note(db, action);
      expect(await verifyChain(db)).toMatchObject({ ok: true, checked: 3 });
    });
    const faultNow = async () => (await verifyChain(db)).fault;
    const hashOf = async (seq: bigint) => (await findEntry(db, seq))?.hash;
    const move = (from: number, to: number) => db.query('update audit_entries set seq = $2 where seq = $1', [from, to]);
    const prune = () => pruneAudit(db, sink, { before: new Date(clock.now().getTime() + 1) });

    const putIn = (seq: number) => {
      const rest = 'at, action, target_type, target_id, content_hash, previous_hash, hash';
      return db.query(
        `insert into audit_entries (id, seq, ${rest})
         select '01890000-0000-7000-8000-000000000000', ${seq}, ${rest} from audit_entries order by seq limit 1`,
      );
    };

    test.each([4, 1_000_000, 0, -7])('an entry inserted as number %i, outside the chain, is found', async (seq) => {
      await putIn(seq);
      expect(await faultNow()).toEqual({ seq: null, message: '1 entries are outside the chain.' });
    });

    test('an entry inserted where others were pruned is found', async () => {
      await prune();
      await note(db, 'fifth');
      expect(await verifyChain(db)).toMatchObject({ ok: true, pruned_through: 3n });
      await putIn(2);
      expect(await faultNow()).toEqual({ seq: null, message: '1 entries are outside the chain.' });
    });

    test('removed first entries are found, also when the rest is numbered from one again', async () => {
      const first = await hashOf(1n);
      await db.query('delete from audit_entries where seq = 1');
      await move(2, 1);
      await move(3, 2);
      await db.query('update audit_chain set length = 2, pruned_hash = $1', [first]);
      expect(await faultNow()).toEqual({ seq: 1n, message: 'Entry 1 is not the first of the chain: entries before it are missing.' });
    });

    test('entries that changed places are found', async () => {
      await move(2, -2);
      await move(3, 2);
      await move(-2, 3);
      expect(await faultNow()).toEqual({ seq: 2n, message: 'Entry 2 does not follow the entry before it.' });
    });

    test('a removed entry is found, also when the others are numbered again', async () => {
      await db.query('delete from audit_entries where seq = 2');
      expect(await faultNow()).toEqual({ seq: 2n, message: 'Entry 2 is missing.' });
      await move(3, 2);
      await db.query('update audit_chain set length = 2');
      expect(await faultNow()).toEqual({ seq: 2n, message: 'Entry 2 does not follow the entry before it.' });
    });

    test('a cut end is found by the chain itself, and by an anchor when the end was adjusted', async () => {
      const { head } = await verifyChain(db);
      await db.query('delete from audit_entries where seq = 3');
      expect((await faultNow())?.message).toMatch(/entries at its end are missing/);
      await db.query('update audit_chain set length = 2, hash = $1', [await hashOf(2n)]);
      expect(await faultNow(), 'nothing in the database can tell').toBeNull();
      expect(await verifyChain(db, { anchor: head })).toMatchObject({ ok: false, fault: { seq: 3n } });
    });

    test('an anchor from before a pruning is refused', async () => {
      const [second, third] = [await hashOf(2n), await hashOf(3n)];
      await prune();
      expect(await verifyChain(db, { anchor: { seq: 3n, hash: third ?? '' } })).toMatchObject({ ok: true });
      const fault = { seq: 2n, message: 'Entry 2 was pruned: use a later anchor.' };
      expect(await verifyChain(db, { anchor: { seq: 2n, hash: second ?? '' } })).toMatchObject({ ok: false, fault });
      expect(await verifyChain(db, { anchor: { seq: 3n, hash: second ?? '' } })).toMatchObject({ ok: false, fault: { seq: 3n } });
    });

    test.each([
      ['changed', "update audit_entries set action = 'forged' where seq = 2", 'The content of entry 2 was changed.'],
      ['missing', 'delete from audit_entries where seq = 2', 'Entry 2 is missing.'],
    ])('an entry that was %s stops a pruning', async (_what, attack, message) => {
      await db.query(attack);
      await expect(prune()).rejects.toThrow(message);
      expect((await faultNow())?.message, 'it still shows').toBe(message);
      await pruneAudit(db, sink, { before: new Date(clock.now().getTime() + 1), force: true });
      expect(await verifyChain(db)).toMatchObject({ ok: true, pruned_through: 3n });
      expect((await findEntry(db, 4n))?.metadata).toMatchObject({ fault: message });
    });

    test('prunings at the same time do not disturb each other', async () => {
      for (let index = 0; index < 30; index += 1) await note(db, `entry ${index}`);
      const handles = [database.db, await database.open(), await database.open()];
      const before = new Date(clock.now().getTime() + 1);
      const removed = await Promise.all(handles.map((handle) => pruneAudit(handle, sink, { before })));
      expect(removed.reduce((sum, count) => sum + count)).toBeGreaterThanOrEqual(33);
      expect(await verifyChain(db)).toMatchObject({ ok: true });
    });

    test('a fault in newer entries does not stop a pruning', async () => {
      clock.advance(1000);
      await note(db, 'fourth');
      await db.query("update audit_entries set action = 'forged' where seq = 4");
      expect(await pruneAudit(db, sink, { before: clock.now() })).toBe(3);
      expect((await faultNow())?.message).toBe('The content of entry 4 was changed.');
    });

    test('a pruned mark that was moved forward is found', async () => {
      await prune();
      for (const action of ['fifth', 'sixth']) await note(db, action);
      const fifth = await hashOf(5n);
      await db.query('delete from audit_entries where seq in (4, 5)');
      await db.query('update audit_chain set pruned_through = 5, pruned_hash = $1', [fifth]);
      expect((await faultNow())?.message).toMatch(/no pruning removed them/);
    });
  },
  { prepare: async (db) => void (await migrate(db, [{ name: 'audit', migrations: auditMigrations }])), template: 'audit' },
);
