import { beforeEach, expect, test } from 'vitest';
import type { AuditEntry } from '../../../auth/request/audit-sink.ts';
import type { Db } from '../../../db/engine/db.ts';
import { migrate } from '../../../db/migrations/migrate.ts';
import { describeDatabases } from '../../../testing/databases.ts';
import { fakeClock } from '../../../testing/fake-clock.ts';
import { auditMigrations } from '../migrations/all.ts';
import { auditSink } from '../record/record.ts';
import { contentHash, type EntryContent, GENESIS } from './chain.ts';
import { pruneAudit } from './prune.ts';
import { sealEntries } from './seal.ts';
import { findEntry } from './store.ts';
import { verifyChain } from './verify-chain.ts';

const clock = fakeClock('2030-01-01T00:00:00.000Z');
const sink = auditSink({ clock, sensitive: () => new Set(), databases: ['default'] });
const erase = (db: Db, erasure: object) =>
  sink.erase?.(db, { target_type: 'tenant', target_id: 'north', by: 'a test', ...erasure }) ?? Promise.reject(new Error('cannot erase'));

describeDatabases(
  'erased values',
  (database) => {
    let db: Db;
    beforeEach(async () => {
      ({ db } = database);
      await db.query('delete from audit_entries');
      await db.query('delete from audit_inbox');
      await db.query('update audit_chain set length = 0, hash = $1, pruned_through = 0, pruned_hash = $1', [GENESIS]);
    });
    const record = (entries: readonly Partial<AuditEntry>[]) =>
      sink.record(
        db,
        entries.map((entry) => ({
          actor: { id: 'u1', username: 'marker ada' } as NonNullable<Exclude<AuditEntry['actor'], string>>,
          action: 'order.created',
          target_type: 'order',
          target_id: 'o1',
          after: { title: 'marker title' },
          metadata: { note: 'marker note' },
          request_id: 'marker request',
          ...entry,
        })),
      );
    const rowsWithMarkers = async () => {
      const found = await db.query<{ seq: bigint }>(
        "select * from audit_entries where actor_name like '%marker%' or cast(after as text) like '%marker%' or request_id like '%marker%' order by seq",
      );
      return found.map(({ seq }) => Number(seq));
    };

    test('of one tenant are gone, those of others stay, and the chain is whole', async () => {
      await record([{ tenant: 'north' }, { tenant: 'south' }, { tenant: 'north' }, {}]);
      await sealEntries(db, { wait: true });
      await record([{ tenant: 'north' }]);
      expect(await erase(db, { tenant: 'north' })).toEqual({ erased: 3, kept: 0 });
      expect(await rowsWithMarkers()).toEqual([2, 4]);
      expect(await findEntry(db, 1n)).toMatchObject({ actor_id: 'u1', action: 'order.created', target_id: 'o1', tenant_id: 'north' });
      expect(await findEntry(db, 6n)).toMatchObject({ action: 'audit.erased', target_id: 'north', metadata: { places: ['1', '3', '5'] } });
      expect(await verifyChain(db)).toMatchObject({ ok: true, checked: 6 });
      expect(await erase(db, { tenant: 'north' }), 'a second time').toEqual({ erased: 0, kept: 0 });
      expect(await verifyChain(db)).toMatchObject({ ok: true, checked: 6 });
    });

    test('of what a user did, and about records, are gone, and never those of the entry that says so', async () => {
      await record([{}, { actor: 'a program', target_id: 'o2' }, { actor: 'a program', target_id: 'o3' }]);
      const by = { id: 'u1', username: 'ada' };
      const whose = { target_type: 'user', target_id: 'u1', actorId: 'u1', records: { type: 'order', ids: ['o2'] }, by };
      expect(await erase(db, whose)).toEqual({ erased: 2, kept: 0 });
      expect(await erase(db, whose)).toEqual({ erased: 0, kept: 0 });
      expect(await rowsWithMarkers()).toEqual([3]);
      expect(await findEntry(db, 4n)).toMatchObject({ action: 'audit.erased', actor_name: 'ada', metadata: { places: ['1-2'] } });
      expect(await verifyChain(db)).toMatchObject({ ok: true });
    });

    test('are erased in batches, and prunings go on', async () => {
      for (let index = 0; index < 3; index += 1) await record(Array.from({ length: 400 }, () => ({ tenant: 'north' })));
      expect(await erase(db, { tenant: 'north' })).toEqual({ erased: 1200, kept: 0 });
      expect(await rowsWithMarkers()).toEqual([]);
      clock.advance(1000);
      await record([{ tenant: 'south' }]);
      await sealEntries(db, { wait: true });
      expect(await verifyChain(db)).toMatchObject({ ok: true });
      expect(await pruneAudit(db, sink, { before: clock.now() })).toBe(1203);
      expect(await verifyChain(db)).toMatchObject({ ok: true });
    });

    test('that nothing says were erased are found', async () => {
      await record([{ tenant: 'north' }, { tenant: 'south' }]);
      await sealEntries(db, { wait: true });
      const blank = 'salt = null, actor_name = null, "before" = null, "after" = null, metadata = null, request_id = null';
      await db.query(`update audit_entries set ${blank} where seq = 2`);
      const message = 'The values of entry 2 are missing, but no entry says that they were erased.';
      expect((await verifyChain(db)).fault).toEqual({ seq: 2n, message });
      await erase(db, { tenant: 'north' });
      expect((await verifyChain(db)).fault, 'another entry was erased').toEqual({ seq: 2n, message });
    });

    test('that were changed, in part or with their salt, are found', async () => {
      await record([{ tenant: 'north' }]);
      await erase(db, { tenant: 'north' });
      for (const change of ["actor_name = 'eve'", 'after = \'{"a":1}\'', "salt = 'x'", "tenant_id = 'south'"]) {
        await db.transaction(async (tx) => {
          await tx.query(`update audit_entries set ${change} where seq = 1`);
          const { fault } = await verifyChain(tx);
          expect([change, fault?.message]).toEqual([change, 'The content of entry 1 was changed.']);
          await tx.query("update audit_entries set actor_name = null, after = null, salt = null, tenant_id = 'north' where seq = 1");
        });
      }
      expect(await verifyChain(db)).toMatchObject({ ok: true });
    });

    test('of the first format are kept, and counted', async () => {
      const content: EntryContent = {
        id: '01890000-0000-7000-8000-000000000001',
        at: clock.now(),
        actor_id: 'u1',
        actor_name: 'marker ada',
        actor_scheme: null,
        credential_id: null,
        action: 'order.created',
        target_type: 'order',
        target_id: 'o1',
        before: null,
        after: null,
        metadata: null,
        request_id: null,
        tenant_id: '',
        salt: null,
        values_hash: null,
      };
      await db.query(
        `insert into audit_inbox (id, at, actor_id, actor_name, action, target_type, target_id, content_hash)
         values ($1, $2, 'u1', 'marker ada', 'order.created', 'order', 'o1', $3)`,
        [content.id, content.at, contentHash(content)],
      );
      await record([{}]);
      expect(await erase(db, { target_type: 'user', target_id: 'u1', actorId: 'u1' })).toEqual({ erased: 1, kept: 1 });
      expect(await rowsWithMarkers()).toEqual([1]);
      expect(await verifyChain(db)).toMatchObject({ ok: true, checked: 3 });
    });
  },
  { prepare: async (db) => void (await migrate(db, [{ name: 'audit', migrations: auditMigrations }])), template: 'audit' },
);
