import { beforeEach, describe, expect, test } from 'vitest';
import type { Db } from '../../../db/engine/db.ts';
import { migrate } from '../../../db/migrations/migrate.ts';
import { describeDatabases } from '../../../testing/databases.ts';
import { fakeClock } from '../../../testing/fake-clock.ts';
import { GENESIS } from './chain.ts';
import { auditMigrations } from '../migrations/all.ts';
import { auditSink } from '../record/record.ts';
import { sealBeforeReading, sealEntries } from './seal.ts';
import { Sealer } from './sealer.ts';
import { readEntries, unsealed } from './store.ts';
import { verifyChain } from './verify-chain.ts';

const clock = fakeClock('2030-01-01T00:00:00.000Z');
const sink = auditSink({ clock, sensitive: () => new Set(), databases: ['default'] });
const entry = (action: string) => ({ action, target_type: 'thing', target_id: 't1', before: { n: 1 }, after: { n: 2, m: [null] } });
const note = (db: Db, ...actions: string[]) => sink.record(db, actions.map(entry));
const actions = async (db: Db) => (await readEntries(db, 0n, 1_000_000n, 100_000)).map(({ action }) => action);

describeDatabases(
  'sealing',
  (database) => {
    let db: Db;
    beforeEach(async () => {
      ({ db } = database);
      await db.query('delete from audit_entries');
      await db.query('delete from audit_inbox');
      await db.query('update audit_chain set length = 0, hash = $1, pruned_through = 0, pruned_hash = $1', [GENESIS]);
    });

    test('moves committed entries into the chain, and only those', async () => {
      await note(db, 'first', 'second');
      const gate = Promise.withResolvers<void>();
      const written = Promise.withResolvers<void>();
      const open =
        db.dialect === 'sqlite'
          ? Promise.resolve()
          : db.transaction(async (tx) => {
              await note(tx, 'open');
              written.resolve();
              await gate.promise;
            });
      if (db.dialect === 'postgres') await written.promise;
      expect(await verifyChain(db)).toMatchObject({ ok: true, checked: 0, unsealed: { count: 2, oldest: clock.now() } });
      expect(await sealEntries(db)).toBe(2);
      expect(await actions(db)).toEqual(['first', 'second']);
      expect(await verifyChain(db)).toMatchObject({ ok: true, checked: 2, unsealed: { count: 0, oldest: null }, head: { seq: 2n } });
      gate.resolve();
      await open;
      expect(await sealEntries(db)).toBe(db.dialect === 'postgres' ? 1 : 0);
      expect(await verifyChain(db)).toMatchObject({ ok: true, unsealed: { count: 0 } });
    });

    test('goes on until nothing is left, however much waits', async () => {
      await note(db, ...Array.from({ length: 2500 }, (_, index) => `entry ${index}`));
      expect(await sealEntries(db)).toBe(2500);
      expect(await actions(db)).toEqual(Array.from({ length: 2500 }, (_, index) => `entry ${index}`));
      expect(await verifyChain(db)).toMatchObject({ ok: true, checked: 2500 });
    });

    test('seals what is left in its order when entries between were removed, and again once the inbox was emptied', async () => {
      const names = Array.from({ length: 1300 }, (_, index) => `entry ${index}`);
      await note(db, ...names);
      const isRemoved = (index: number): boolean => index % 7 === 3 || (index > 500 && index < 620);
      for (const [index, action] of names.entries())
        if (isRemoved(index)) await db.query('delete from audit_inbox where action = $1', [action]);
      const left = names.filter((_, index) => !isRemoved(index));
      expect(await sealEntries(db)).toBe(left.length);
      expect(await actions(db)).toEqual(left);
      await note(db, 'later', 'last');
      expect(await sealEntries(db)).toBe(2);
      expect(await actions(db)).toEqual([...left, 'later', 'last']);
      expect(await verifyChain(db)).toMatchObject({ ok: true, checked: left.length + 2, unsealed: { count: 0 } });
    });

    test('several sealers and writers at once make one chain with every entry once', async () => {
      const handles = [database.db, await database.open(), await database.open()];
      const writing = Promise.all(
        Array.from({ length: 90 }, (_, index) =>
          (handles[index % 3] ?? db).transaction(async (tx) => {
            await note(tx, `a${index}`);
            await note(tx, `b${index}`);
          }),
        ),
      );
      const written = new AbortController();
      const sealing = handles.map(async (handle, index) => {
        while (!written.signal.aborted) {
          await sealEntries(handle, { wait: index === 0 });
          await new Promise((resolve) => setImmediate(resolve));
        }
      });
      await writing;
      written.abort();
      await Promise.all(sealing);
      await Promise.all(handles.map((handle) => sealEntries(handle, { wait: true })));
      const found = await actions(db);
      expect(found.toSorted()).toEqual(
        Array.from({ length: 90 }, (_, index) => [`a${index}`, `b${index}`])
          .flat()
          .toSorted(),
      );
      expect(await verifyChain(db)).toMatchObject({ ok: true, checked: 180, unsealed: { count: 0 } });
    });

    test('a sealer that finds another at work leaves it alone, and one that waits does not miss anything', async () => {
      if (db.dialect === 'sqlite') return;
      await note(db, 'first');
      const other = await database.open();
      const waiting = await other.transaction(async (tx) => {
        await tx.query('select 1 from audit_chain for update');
        expect(await sealEntries(db)).toBe(0);
        return { sealed: sealEntries(db, { wait: true }) };
      });
      expect(await waiting.sealed).toBe(1);
    });

    test('writers never wait for a sealer, nor for each other', async () => {
      if (db.dialect === 'sqlite') return;
      const other = await database.open();
      await other.transaction(async (sealer) => {
        await sealer.query('select 1 from audit_chain for update');
        await db.transaction(async (outer) => {
          await note(outer, 'outer');
          await (await database.open()).transaction((inner) => note(inner, 'inner'));
        });
      });
      expect(await sealEntries(db)).toBe(2);
    });

    test('a writer in a serializable transaction is not refused because others were sealed meanwhile', async () => {
      await db.transaction(
        async (tx) => {
          await tx.query('select count(*) as n from audit_inbox');
          if (db.dialect === 'postgres') {
            const other = await database.open();
            await note(other, 'meanwhile');
            await sealEntries(other);
          }
          await note(tx, 'late');
        },
        { isolation: 'repeatable read' },
      );
      await sealEntries(db);
      expect(await actions(db)).toContain('late');
    });

    test('a transaction that fails in the middle of sealing changes nothing', async () => {
      await note(db, 'first', 'second');
      await db.query('alter table audit_chain rename column length to gone');
      await expect(sealEntries(db)).rejects.toThrow(/length/);
      await db.query('alter table audit_chain rename column gone to length');
      expect(await actions(db)).toEqual([]);
      expect(await unsealed(db)).toMatchObject({ count: 2 });
      expect(await sealEntries(db)).toBe(2);
      expect(await verifyChain(db)).toMatchObject({ ok: true, checked: 2 });
    });

    test('lists show what was committed just now', async () => {
      await note(db, 'just now');
      await sealBeforeReading(db);
      expect(await actions(db)).toEqual(['just now']);
    });

    describe('the sealer of a process', () => {
      const log = {
        warnings: [] as string[],
        info: () => undefined,
        error: () => undefined,
        warn: (_: object, text: string) => void log.warnings.push(text),
      };

      test('seals soon after it is woken, and the last entries when it stops', async () => {
        const sealer = new Sealer(database.db, log);
        await note(db, 'first');
        sealer.wake();
        await expect.poll(() => actions(db), { timeout: 300_000 }).toEqual(['first']);
        await note(db, 'second');
        sealer.wake();
        await sealer.stop();
        expect(await actions(db)).toEqual(['first', 'second']);
      });

      test('finds what other processes left when it starts', async () => {
        await note(db, 'left');
        const sealer = new Sealer(database.db, log);
        sealer.startSweeps();
        await expect.poll(() => actions(db), { timeout: 300_000 }).toEqual(['left']);
        await sealer.stop();
      });

      test('reports a failure and goes on with the next round', async () => {
        const sealer = new Sealer(database.db, log);
        await note(db, 'first');
        await db.query('alter table audit_chain rename to gone');
        sealer.wake();
        await expect.poll(() => log.warnings.length, { timeout: 300_000 }).toBe(1);
        await db.query('alter table gone rename to audit_chain');
        sealer.wake();
        await sealer.stop();
        expect(await actions(db)).toEqual(['first']);
      });
    });
  },
  { prepare: async (db) => void (await migrate(db, [{ name: 'audit', migrations: auditMigrations }])), template: 'audit' },
);
