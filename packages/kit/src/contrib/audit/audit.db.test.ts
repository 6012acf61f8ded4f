import { migrateApp } from '../../app/data/migration-modules.ts';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { prepareAccountsAndKeys, startKeyApp, type KeyApp } from '../../../test/key-app.ts';
import type { Principal, User } from '../../auth/people/principal.ts';
import type { Db } from '../../db/engine/db.ts';
import { countQueries } from '../../db/engine/query-observer.ts';
import { modelDrift } from '../../db/migrations/drift.ts';
import { migrate } from '../../db/migrations/migrate.ts';
import { describeDatabases } from '../../testing/databases.ts';
import { fakeClock } from '../../testing/fake-clock.ts';
import { auditMigrations } from './migrations/all.ts';
import { auditChain, auditEntries, auditInbox } from './models.ts';
import { pruneAudit } from './chain/prune.ts';
import { auditSink } from './record/record.ts';
import { sealEntries } from './chain/seal.ts';
import { readChain, readEntries, type StoredEntry } from './chain/store.ts';
import { verifyChain as verifySealed, type VerifyChainOptions } from './chain/verify-chain.ts';
import { audit } from './module.ts';
import { AuditController } from './controller.ts';

const clock = fakeClock('2030-01-01T00:00:00.000Z');
const sink = auditSink({ clock, sensitive: () => new Set(['shoe_size']), databases: ['default'] });
const prepare = async (db: Parameters<typeof migrate>[0]) => void (await migrate(db, [{ name: 'audit', migrations: auditMigrations }]));
const user: User = { id: 'u1', username: 'ada', email: null, is_active: true, is_staff: true, is_superuser: false };
const principal: Principal = { user, scheme: 'api_key', scopes: ['*'], credentialId: 'key-1' };
const DAY_MS = 86_400_000;

const all = async (db: Db): Promise<StoredEntry[]> => {
  await sealEntries(db, { wait: true });
  return readEntries(db, (await readChain(db)).pruned_through, 1_000_000n, 1_000_000);
};
const verifyChain = async (db: Db, options?: VerifyChainOptions) => {
  await sealEntries(db, { wait: true });
  return verifySealed(db, options);
};
const note = (db: Db, action: string, more: object = {}) => sink.record(db, [{ action, target_type: 'thing', target_id: 't1', ...more }]);

describeDatabases(
  'audit entries',
  (database) => {
    test('the models match the migrations', async () => {
      expect(modelDrift([{ name: 'audit', models: [auditInbox, auditEntries, auditChain], migrations: auditMigrations }])).toEqual([]);
    });

    test('an entry says who, by which key, what, on what, before and after, in which request', async () => {
      await database.db.transaction((tx) =>
        sink.record(tx, [
          {
            actor: principal,
            action: 'order.updated',
            target_type: 'order',
            target_id: 'o1',
            before: { total: '1.00', password: 'x', at: clock.now(), big: 10n },
            after: { total: '2.00', password: 'y', nested: { shoe_size: 42, token: 't' } },
            request_id: 'r1',
            metadata: { note: 'ü', secret: 's', deeper: [{ shoe_size: 42 }] },
          },
        ]),
      );
      const [entry] = (await all(database.db)).slice(-1);
      expect(entry).toMatchObject({
        at: clock.now(),
        actor_id: 'u1',
        actor_name: 'ada',
        actor_scheme: 'api_key',
        credential_id: 'key-1',
        action: 'order.updated',
        target_type: 'order',
        target_id: 'o1',
        before: { total: '1.00', password: '[masked]', at: clock.now().toISOString(), big: '10' },
        after: { total: '2.00', password: '[masked]', nested: { shoe_size: '[masked]', token: '[masked]' } },
        request_id: 'r1',
        metadata: { note: 'ü', secret: '[masked]', deeper: [{ shoe_size: '[masked]' }] },
      });
    });

    test('users, programs and an unknown actor can be recorded', async () => {
      for (const actor of [user, 'kit apikey', null]) await note(database.db, 'actor.tried', { actor });
      const actors = (await all(database.db))
        .slice(-3)
        .map(({ actor_id, actor_name, actor_scheme }) => [actor_id, actor_name, actor_scheme]);
      expect(actors).toEqual([
        ['u1', 'ada', null],
        [null, 'kit apikey', null],
        [null, null, null],
      ]);
    });

    test('a name that is too long is cut, and the entry is recorded', async () => {
      await note(database.db, 'long.name', { actor: '😀'.repeat(300) });
      const [entry] = (await all(database.db)).slice(-1);
      expect(entry).toMatchObject({ action: 'long.name', actor_name: '😀'.repeat(255) });
      expect(await verifyChain(database.db)).toMatchObject({ ok: true });
    });

    test('a hundred entries are one statement, in the order they were given, and an empty list is no statement', async () => {
      const entries = Array.from({ length: 100 }, (_, index) => ({ action: 'bulk.changed', target_type: 'thing', target_id: `t${index}` }));
      const counted = await database.db.transaction((tx) =>
        countQueries(async () => {
          await sink.record(tx, entries);
          await sink.record(tx, []);
        }),
      );
      const inserts = counted.queries.filter(({ sql }) => sql.startsWith('insert into audit_'));
      expect(inserts).toHaveLength(1);
      const written = (await all(database.db)).slice(-100);
      expect(written.map(({ target_id }) => target_id)).toEqual(entries.map(({ target_id }) => target_id));
      expect(await verifyChain(database.db)).toMatchObject({ ok: true });
    });

    test('more entries than one statement can carry are all written', async () => {
      const { length } = await all(database.db);
      await sink.record(
        database.db,
        Array.from({ length: 1201 }, (_, index) => ({ action: 'bulk.large', target_type: 'thing', target_id: String(index) })),
      );
      expect(await all(database.db)).toHaveLength(length + 1201);
      expect(await verifyChain(database.db)).toMatchObject({ ok: true });
    });

    test('an entry exists exactly when its change does, also in savepoints', async () => {
      const { length } = await all(database.db);
      await database.db
        .transaction(async (tx) => {
          await note(tx, 'rolled.back');
          throw new Error('no');
        })
        .catch(() => undefined);
      await database.db.transaction(async (tx) => {
        await tx
          .transaction(async (inner) => {
            await note(inner, 'inner.rolled_back');
            throw new Error('no');
          })
          .catch(() => undefined);
        await note(tx, 'outer.kept');
      });
      const entries = await all(database.db);
      expect(entries.slice(length).map(({ action }) => action)).toEqual(['outer.kept']);
      expect(await verifyChain(database.db)).toMatchObject({ ok: true, checked: entries.length });
    });

    test('concurrent writers on several connections make one chain without gaps or forks', async () => {
      const { length } = await all(database.db);
      const handles = [database.db, await database.open(), await database.open()];
      await Promise.all(
        Array.from({ length: 60 }, (_, index) =>
          (handles[index % 3] ?? database.db).transaction(async (tx) => {
            await note(tx, 'parallel.first');
            await new Promise((resolve) => setTimeout(resolve, index % 5));
            await note(tx, 'parallel.second');
          }),
        ),
      );
      const entries = await all(database.db);
      expect(entries).toHaveLength(length + 120);
      expect(entries.map(({ seq }) => seq)).toEqual(entries.map((_, index) => BigInt(index + 1)));
      expect(await verifyChain(database.db)).toMatchObject({ ok: true, checked: entries.length, fault: null });
    });

    test('writers that audit in another order than they lock do not deadlock', async () => {
      if (database.dialect === 'sqlite') return;
      await database.db.query('create table if not exists locked (id int primary key, n int)');
      await database.db.query('insert into locked values (1, 0), (2, 0) on conflict do nothing');
      const bump = (tx: Db) => tx.query('update locked set n = n + 1 where id = 1');
      await Promise.all(
        Array.from({ length: 20 }, (_, index) =>
          database.db.transaction(async (tx) => {
            if (index % 2 === 0) await bump(tx);
            await note(tx, 'order.changed');
            if (index % 2 === 1) await bump(tx);
          }),
        ),
      );
      expect(await verifyChain(database.db)).toMatchObject({ ok: true });
    });

    describe('verify', () => {
      const tampered = async (change: string, parameters: unknown[], undo: () => Promise<unknown>) => {
        await database.db.query(change, parameters);
        const report = await verifyChain(database.db);
        await undo();
        expect(await verifyChain(database.db)).toMatchObject({ ok: true });
        return report;
      };

      test('finds a changed content, and names the entry', async () => {
        const entry = (await all(database.db))[2];
        const report = await tampered('update audit_entries set action = $1 where seq = 3', ['forged'], () =>
          database.db.query('update audit_entries set action = $1 where seq = 3', [entry?.action]),
        );
        expect(report).toMatchObject({ ok: false, checked: 2, fault: { seq: 3n, message: 'The content of entry 3 was changed.' } });
      });

      test('finds a changed hash, a removed entry and a cut end', async () => {
        const entries = await all(database.db);
        const [third, last] = [entries[2], entries.at(-1)];
        const hash = await tampered(`update audit_entries set hash = '${'f'.repeat(64)}' where seq = 3`, [], () =>
          database.db.query('update audit_entries set hash = $1 where seq = 3', [third?.hash]),
        );
        expect(hash.fault).toEqual({ seq: 3n, message: 'The hash of entry 3 was changed.' });
        const moved = await tampered('update audit_entries set seq = -3 where seq = 3', [], () =>
          database.db.query('update audit_entries set seq = 3 where seq = -3'),
        );
        expect(moved.fault).toEqual({ seq: 3n, message: 'Entry 3 is missing.' });
        const cut = await tampered('update audit_entries set seq = -1 where seq = $1', [last?.seq], () =>
          database.db.query('update audit_entries set seq = $1 where seq = -1', [last?.seq]),
        );
        expect(cut.fault?.message).toMatch(/should end with entry/);
      });

      test('finds a rewritten tail with the help of an anchor', async () => {
        const { head } = await verifyChain(database.db);
        await note(database.db, 'after.anchor');
        expect(await verifyChain(database.db, { anchor: head })).toMatchObject({ ok: true });
        expect(await verifyChain(database.db, { anchor: { ...head, hash: 'e'.repeat(64) } })).toMatchObject({
          ok: false,
          fault: { seq: head.seq, message: `Entry ${head.seq} does not match the anchor.` },
        });
      });
    });

    test('pruning removes what is older, leaves an entry, and the rest stays verifiable', async () => {
      const before = await all(database.db);
      const { head } = await verifyChain(database.db);
      clock.advance(10 * DAY_MS);
      await note(database.db, 'young.one');
      const removed = await pruneAudit(database.db, sink, { before: new Date(clock.now().getTime() - 5 * DAY_MS), by: 'test' });
      expect(removed).toBe(before.length);
      const left = await all(database.db);
      expect(left.map(({ action }) => action)).toEqual(['young.one', 'audit.pruned']);
      expect(left[1]).toMatchObject({ actor_name: 'test', metadata: { removed: before.length, through_seq: String(before.length) } });
      expect(await verifyChain(database.db, { anchor: head })).toMatchObject({
        ok: true,
        checked: 2,
        pruned_through: BigInt(before.length),
      });
      expect(await pruneAudit(database.db, sink, { before: new Date(clock.now().getTime() - 5 * DAY_MS) })).toBe(0);
      expect(await all(database.db)).toHaveLength(2);
      await note(database.db, 'goes.on');
      expect(await verifyChain(database.db)).toMatchObject({ ok: true, checked: 3 });
    });

    test('entries removed without pruning are found', async () => {
      const chain = await readChain(database.db);
      const [first] = await readEntries(database.db, chain.pruned_through, chain.length, 1);
      await database.db.query('update audit_chain set pruned_through = $1, pruned_hash = $2', [first?.seq, first?.hash]);
      expect((await verifyChain(database.db)).fault?.message).toMatch(/no pruning removed them/);
      await database.db.query('update audit_chain set pruned_through = $1, pruned_hash = $2', [chain.pruned_through, chain.pruned_hash]);
    });
  },
  { prepare, template: 'audit' },
);

describeDatabases(
  'AuditController',
  (database) => {
    let kit: KeyApp;
    let staff: User;
    beforeAll(async () => {
      await prepare(database.db);
      kit = await startKeyApp(database.db, { modules: [audit()], app: { mount: { '/admin': { '/audit': AuditController } } } });
      // The tables of the toolkit itself: the key of the cursors is in one of them.
      await migrateApp(kit.app);
      staff = await kit.user('staff', { is_staff: true });
      await kit.user('ada');
      for (const name of ['one', 'two', 'three']) {
        await kit.call('POST', '/v1/api-keys', { 'x-act-as': 'ada', 'x-request-id': `request-${name}` }, { name, scopes: ['orders:read'] });
        kit.clock.advance(60_000);
      }
    });
    afterAll(() => kit.app.close());
    const list = (query = '', headers: Record<string, string> = { 'x-act-as': 'staff' }) =>
      kit.call('GET', `/admin/audit${query}`, headers);
    const names = async (query: string) => {
      const { body } = await list(query);
      return (body.items as { action: string; after: { name?: string } | null }[]).map(({ action, after }) => after?.name ?? action);
    };

    test('staff only; a key of staff needs the scope audit:read', async () => {
      expect((await list('', {})).status).toBe(401);
      expect((await list('', { 'x-act-as': 'ada' })).status).toBe(403);
      expect((await list()).status).toBe(200);
      const [without, having] = [await kit.key(staff, { scopes: ['orders:*'] }), await kit.key(staff, { scopes: ['audit:read'] })];
      expect((await list('', { 'x-api-key': without.raw })).body).toMatchObject({
        code: 'insufficient_scope',
        required_scope: 'audit:read',
      });
      expect((await list('', { 'x-api-key': having.raw })).status).toBe(200);
    });

    test('newest first, with filters and pages', async () => {
      expect(await names('?action=api_key.created&target_type=api_key&limit=3&until=2030-01-01T00:03:00Z')).toEqual([
        'three',
        'two',
        'one',
      ]);
      const one = '?action=api_key.created&limit=1&until=2030-01-01T00:03:00Z';
      const first = (await list(one)).body;
      const second = (await list(first.next)).body;
      expect([second.items[0].after.name, second.count, first.previous]).toEqual(['two', first.count, null]);
      expect((await list(second.previous)).body.items).toEqual(first.items);
      for (const cursor of [first.next.replace('03:00', '04:00'), `?cursor=${encodeURIComponent(first.next)}`, '?cursor=x'])
        expect((await list(cursor)).body).toMatchObject({ code: 'invalid_cursor' });
      expect(await names('?since=2030-01-01T00:01:00Z&until=2030-01-01T00:02:00Z')).toEqual(['two']);
      const { body } = await list('?action=api_key.created&limit=1');
      const [entry] = body.items;
      expect(body.count).toBeGreaterThanOrEqual(3);
      const byTarget = await list(`?target_type=api_key&target_id=${entry.target_id}`);
      expect(byTarget.body).toMatchObject({ count: 1, items: [{ id: entry.id }] });
      expect((await list('?actor_id=nobody')).body).toEqual({ items: [], count: 0, next: null, previous: null });
      expect((await kit.call('GET', `/admin/audit/${entry.id}`, { 'x-act-as': 'staff' })).body).toEqual(entry);
      expect((await kit.call('GET', `/admin/audit/${entry.id.toUpperCase()}`, { 'x-act-as': 'staff' })).body).toEqual(entry);
      expect((await kit.call('GET', '/admin/audit/01890000-0000-7000-8000-000000000000', { 'x-act-as': 'staff' })).status).toBe(404);
    });

    test('each filter finds what it says, and nothing else', async () => {
      const record = { action: 'order.shipped', target_type: 'order', target_id: 'o7', request_id: 'r7' };
      const actor: Principal = { user: { ...user, id: 'u7' }, scheme: 'api_key', scopes: [], credentialId: 'k7' };
      await kit.app.registry.audit?.record(kit.db, [{ ...record, actor }]);
      const wanted = { actor_id: 'u7', credential_id: 'k7', ...record };
      for (const [name, value] of Object.entries(wanted)) {
        const { body } = await list(`?${name}=${value}`);
        expect([name, body.count, body.items]).toMatchObject([name, 1, [wanted]]);
        expect([name, (await list(`?${name}=none`)).body.count]).toEqual([name, 0]);
      }
    });

    test('entries are counted up to 1,000, however many there are', async () => {
      const entry = { action: 'lamp.lit', target_type: 'lamp', actor: 'a program' };
      const entries = (many: number, target_id: string) => Array.from({ length: many }, () => ({ ...entry, target_id }));
      await kit.app.registry.audit?.record(kit.db, [...entries(1000, 'few'), ...entries(1001, 'many')]);
      expect((await list('?target_id=few&limit=1')).body.count).toBe(1000);
      const { body, headers } = await list('?target_id=many&limit=1');
      expect([body.count, headers['x-total-count']]).toEqual([null, '1000+']);
    });

    test('columns that a model of the app marks as sensitive are masked wherever their names appear', async () => {
      const after = { digest: 'd', nested: { previous_digest: 'p' }, prefix: 'shown' };
      await kit.app.registry.audit?.record(kit.db, [{ action: 'key.seen', target_type: 'thing', target_id: 't1', after }]);
      expect((await list('?action=key.seen')).body.items[0].after).toEqual({
        digest: '[masked]',
        nested: { previous_digest: '[masked]' },
        prefix: 'shown',
      });
    });

    test('a page holds 50 entries unless asked, and at most 100', async () => {
      for (let index = 0; index < 101; index += 1)
        await kit.app.registry.audit?.record(kit.db, [{ action: 'many', target_type: 'thing', target_id: String(index) }]);
      const { next } = (await list('?action=many&limit=100')).body;
      const sizes = [];
      for (const query of ['?action=many', '?action=many&limit=100', next]) sizes.push((await names(query)).length);
      expect(sizes).toEqual([50, 100, 1]);
      for (const query of ['limit=101', 'limit=0', 'page=1', 'page_size=5'])
        expect([query, (await list(`?${query}`)).status]).toEqual([query, 422]);
    });

    test.each([
      ['since', '2030-12-31T23:59:60Z'],
      ['since', '9999-12-31T23:59:59-12:00'],
      ['until', '0000-01-01T00:00:00Z'],
      ['until', '0001-01-01T00:00:00%2B12:00'],
    ])('422 at its place for %s=%s', async (name, moment) => {
      const { status, body } = await list(`?${name}=${moment}`);
      expect([status, body.errors]).toMatchObject([422, [{ location: ['query', name], code: 'invalid' }]]);
    });

    test('422: both times of a range are reported at once', async () => {
      const { body } = await list('?since=0000-01-01T00:00:00Z&until=0000-01-01T00:00:00Z');
      expect(body.errors?.map(({ location }: { location: unknown[] }) => location[1])).toEqual(['since', 'until']);
    });

    test.each(['?page=0', '?page=1e30', '?page=92233720368547758070', '?since=yesterday', '?nonsense=1', '?action='])(
      '422 for %s',
      async (query) => {
        expect((await list(query)).status).toBe(422);
      },
    );
  },
  { prepare: prepareAccountsAndKeys, template: 'accounts_and_keys' },
);
