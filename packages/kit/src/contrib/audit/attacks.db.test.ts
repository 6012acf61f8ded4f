import fc from 'fast-check';
import { beforeEach, expect, test } from 'vitest';
import type { Db } from '../../db/engine/db.ts';
import { migrate } from '../../db/migrations/migrate.ts';
import { describeDatabases } from '../../testing/databases.ts';
import { fakeClock } from '../../testing/fake-clock.ts';
import { contentHash, GENESIS, linkHash } from './chain/chain.ts';
import { auditMigrations } from './migrations/all.ts';
import { auditSink } from './record/record.ts';
import { sealEntries } from './chain/seal.ts';
import { readChain, readEntries, type ChainState, type StoredEntry } from './chain/store.ts';
import { verifyChain } from './chain/verify-chain.ts';

const clock = fakeClock('2030-01-01T00:00:00.000Z');
const sink = auditSink({ clock, sensitive: () => new Set(), databases: ['default'] });
const LENGTH = 12;

/** An attack on a chain of twelve: `k` is an entry that is not the last, `j` another one. */
type Attack = (db: Db, k: bigint, j: bigint) => Promise<unknown>;

const entryAt = async (db: Db, seq: bigint) => (await readEntries(db, seq - 1n, seq, 1))[0] as StoredEntry;
const run = (db: Db, sql: string, ...parameters: unknown[]) => db.query(sql, parameters);
const move = (db: Db, from: bigint, to: bigint) => run(db, 'update audit_entries set seq = $2 where seq = $1', from, to);
const forged = async (db: Db, seq: bigint) => ({ ...(await entryAt(db, seq)), action: 'forged' });

const closeGap: Attack = async (db, k) => {
  for (let seq = k + 1n; seq <= BigInt(LENGTH); seq += 1n) await move(db, seq, seq - 1n);
  await run(db, 'update audit_chain set length = $1', LENGTH - 1);
};

const attacks: Readonly<Record<string, Attack>> = {
  'an entry is removed': (db, k) => run(db, 'delete from audit_entries where seq = $1', k),
  'an entry is removed and the others are numbered again': async (db, k, j) => {
    await run(db, 'delete from audit_entries where seq = $1', k);
    await closeGap(db, k, j);
  },
  'the action is changed': (db, k) => run(db, "update audit_entries set action = 'forged' where seq = $1", k),
  'the actor is changed': (db, k) => run(db, "update audit_entries set actor_name = 'mallory' where seq = $1", k),
  'the time is changed': (db, k) => run(db, 'update audit_entries set at = $2 where seq = $1', k, new Date(0)),
  'the state before is removed': (db, k) => run(db, 'update audit_entries set before = null where seq = $1', k),
  'an entry is changed and its own hash computed again': async (db, k) =>
    run(db, "update audit_entries set action = 'forged', content_hash = $2 where seq = $1", k, contentHash(await forged(db, k))),
  'an entry is changed and its hash and link computed again': async (db, k) => {
    const entry = await forged(db, k);
    const digest = contentHash(entry);
    const link = linkHash(entry.previous_hash, digest);
    await run(db, "update audit_entries set action = 'forged', content_hash = $2, hash = $3 where seq = $1", k, digest, link);
  },
  'two entries change places': async (db, k, j) => {
    await move(db, k, -1n);
    await move(db, j, k);
    await move(db, -1n, j);
  },
  'an entry is inserted in the middle': async (db, k) => {
    for (let seq = BigInt(LENGTH); seq > k; seq -= 1n) await move(db, seq, seq + 1n);
    await copyEntry(db, k, k + 1n);
    await run(db, 'update audit_chain set length = $1', LENGTH + 1);
  },
  'an entry is inserted after the end': (db, k) => copyEntry(db, k, BigInt(LENGTH + 1)),
  'an entry is inserted before the start': (db, k) => copyEntry(db, k, 0n),
  'an entry is written without a place': (db, k) => copyEntry(db, k, null),
  'the tail is cut off': (db, k) => run(db, 'delete from audit_entries where seq > $1', k),
  'the tail is cut off and the length adjusted': async (db, k) => {
    await run(db, 'delete from audit_entries where seq > $1', k);
    await run(db, 'update audit_chain set length = $1', k);
  },
  'an entry goes back to the inbox to be sealed again': async (db, k) => {
    const columns = 'id, at, actor_name, action, target_type, target_id, before, after, content_hash';
    await run(db, `insert into audit_inbox (${columns}) select ${columns} from audit_entries where seq = $1`, k);
    await run(db, 'delete from audit_entries where seq = $1', k);
    await sealEntries(db);
  },
  'a sealed entry is sent again': async (db, k) => {
    const columns = 'id, at, actor_name, action, target_type, target_id, before, after, content_hash';
    await run(db, `insert into audit_inbox (${columns}) select ${columns} from audit_entries where seq = $1`, k);
    await expect(sealEntries(db)).rejects.toThrow(/unique/i);
  },
  'the start is moved without a pruning': async (db, k) => {
    const { hash } = await entryAt(db, k);
    await run(db, 'delete from audit_entries where seq <= $1', k);
    await run(db, 'update audit_chain set pruned_through = $1, pruned_hash = $2', k, hash);
  },
  'an entry that waits for its seal is changed': async (db) => {
    await sink.record(db, [{ action: 'waits', target_type: 'thing', target_id: 't1' }]);
    await run(db, "update audit_inbox set action = 'forged'");
  },
};

const copyEntry = (db: Db, from: bigint, seq: bigint | null) => {
  const columns = 'at, actor_name, action, target_type, target_id, before, after, content_hash, previous_hash, hash';
  return run(
    db,
    `insert into audit_entries (id, seq, ${columns}) select '01890000-0000-7000-8000-000000000000', $2, ${columns}
     from audit_entries where seq = $1`,
    from,
    seq,
  );
};

describeDatabases(
  'attacks on the audit tables',
  (database) => {
    let db: Db;
    const reset = async () => {
      await db.query('delete from audit_entries');
      await db.query('delete from audit_inbox');
      await db.query('update audit_chain set length = 0, hash = $1, pruned_through = 0, pruned_hash = $1', [GENESIS]);
      for (let batch = 0; batch < 3; batch += 1) {
        await sink.record(
          db,
          Array.from({ length: LENGTH / 3 }, (_, index) => ({
            actor: 'ada',
            action: `entry ${batch * 4 + index}`,
            target_type: 'thing',
            target_id: 't1',
            before: { n: index },
            after: { n: index + 1 },
          })),
        );
        await sealEntries(db);
      }
    };
    beforeEach(async () => {
      ({ db } = database);
      await reset();
      expect(await verifyChain(db)).toMatchObject({ ok: true, checked: LENGTH });
    });

    test.each(Object.entries(attacks))('%s: found, wherever it happens', async (_name, attack) => {
      const places = fc.tuple(fc.integer({ min: 1, max: LENGTH - 1 }), fc.integer({ min: 1, max: LENGTH })).filter(([k, j]) => k !== j);
      await fc.assert(
        fc
          .asyncProperty(places, async ([k, j]) => {
            await attack(db, BigInt(k), BigInt(j));
            expect((await verifyChain(db)).fault).not.toBeNull();
          })
          .afterEach(reset),
        { numRuns: 4, examples: [[[1, LENGTH]], [[LENGTH - 1, 1]]] },
      );
    });

    /** Everything from an entry on, rewritten as if it had always been so. */
    const rewriteFrom = async (first: bigint) => {
      let previous = first === 1n ? GENESIS : (await entryAt(db, first - 1n)).hash;
      for (let seq = first; seq <= BigInt(LENGTH); seq += 1n) {
        const digest = contentHash(await forged(db, seq));
        const hash = linkHash(previous, digest);
        await run(
          db,
          "update audit_entries set action = 'forged', content_hash = $2, previous_hash = $3, hash = $4 where seq = $1",
          seq,
          digest,
          previous,
          hash,
        );
        previous = hash;
      }
      await run(db, 'update audit_chain set hash = $1', previous);
    };

    test('a chain that is computed again shows only against an anchor', async () => {
      const { head } = await verifyChain(db);
      await rewriteFrom(5n);
      expect(await verifyChain(db), 'nothing in the database can tell').toMatchObject({ ok: true });
      expect(await verifyChain(db, { anchor: head })).toMatchObject({ ok: false, fault: { seq: head.seq } });
    });

    test('an old state that is put back shows only against a later anchor, also after new entries', async () => {
      const restore = await snapshot(db);
      await sink.record(db, [{ action: 'unwelcome', target_type: 'thing', target_id: 't1' }]);
      await sealEntries(db);
      const { head } = await verifyChain(db);
      await restore();
      expect(await verifyChain(db), 'nothing in the database can tell').toMatchObject({ ok: true });
      expect(await verifyChain(db, { anchor: head })).toMatchObject({ ok: false, fault: { seq: head.seq } });
      await sink.record(db, [{ action: 'later', target_type: 'thing', target_id: 't1' }]);
      await sealEntries(db);
      expect(await verifyChain(db, { anchor: head })).toMatchObject({ ok: false, fault: { seq: head.seq } });
    });

    test('an entry that is removed before it is sealed leaves no trace: that is the window', async () => {
      await sink.record(db, [{ action: 'gone', target_type: 'thing', target_id: 't1' }]);
      await run(db, 'delete from audit_inbox');
      expect(await verifyChain(db)).toMatchObject({ ok: true, checked: LENGTH });
    });
  },
  { prepare: async (db) => void (await migrate(db, [{ name: 'audit', migrations: auditMigrations }])), template: 'audit' },
);

/** Both tables as they are now. */
async function snapshot(db: Db): Promise<() => Promise<void>> {
  const chain: ChainState = await readChain(db);
  return async () => {
    await run(db, 'delete from audit_entries where seq > $1', chain.length);
    await run(db, 'update audit_chain set length = $1, hash = $2', chain.length, chain.hash);
  };
}
