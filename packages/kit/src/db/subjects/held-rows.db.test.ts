import { expect, test } from 'vitest';
import { describeDatabases } from '../../testing/databases.ts';
import { fakeClock } from '../../testing/fake-clock.ts';
import { t } from '../declare/column.ts';
import { type Model, model } from '../declare/model.ts';
import type { Database } from '../engine/db.ts';
import { changes as changesMigration } from '../migrations/core/migrations/0004_changes.ts';
import { erasures as erasuresMigration } from '../migrations/core/migrations/0005_erasures.ts';
import { failedErasures } from '../migrations/core/migrations/0006_failed_erasures.ts';
import { migrate } from '../migrations/migrate.ts';
import { insert, list } from '../rows/repository.ts';
import { tableStatements } from '../sql/ddl.ts';
import {
  countErasures,
  dueErasures,
  type Erasure,
  findErasure,
  isHeld,
  noteFailure,
  releaseLegalHold,
  requestErasure,
  setLegalHold,
} from './erasure-state.ts';
import { whoseIn } from './held-rows.ts';
import { retainBatch } from './retention.ts';
import { runErasure } from './run-erasure.ts';
import type { Subject } from './subject.ts';
import { subjectPlan } from './subject-plan.ts';

// Rows of ada and of the tenant acme are below those of bob, in every way that one row can refer to another.

const people = model('people', { id: t.text(20).pk().person() });
const posts = model(
  'posts',
  { id: t.int().pk(), owner_id: t.text(20).person(), at: t.timestamp() },
  { retention: { after: '30 days', by: 'at', then: 'delete' } },
);
const threads = model('threads', { id: t.int().pk(), post_id: t.ref<number>(() => posts, { onDelete: 'cascade' }) });
const comments = model('comments', {
  id: t.int().pk(),
  thread_id: t.ref<number>(() => threads, { onDelete: 'cascade' }),
  owner_id: t.text(20).person(),
  tenant_key: t.text(20).nullable().tenant(),
});
const stars = model('stars', {
  id: t.int().pk(),
  post_id: t.ref<number | null>(() => posts, { onDelete: 'set null' }).nullable(),
  owner_id: t.text(20).person(),
});
const folders = model('folders', {
  id: t.int().pk(),
  owner_id: t.text(20).person(),
  parent_id: t.ref<number | null>((): Model => folders as unknown as Model, { onDelete: 'cascade' }).nullable(),
  edited_by: t.text(20).nullable().person({ erase: 'unlink' }),
});
const all: readonly Model[] = [people, posts, threads, comments, stars, folders];
const plans = { person: subjectPlan('person', all), tenant: subjectPlan('tenant', all) };
const tables = { models: all, whose: (of: Model) => whoseIn(of, plans.person.tables, plans.tenant.tables) };

const ada: Subject = { kind: 'person', id: 'ada' };
const bob: Subject = { kind: 'person', id: 'bob' };
const acme: Subject = { kind: 'tenant', id: 'acme' };
const DAY_MS = 86_400_000;

describeDatabases('rows that rows under a legal hold refer to', (database) => {
  const clock = fakeClock('2030-06-15T12:00:00.000Z');
  const fill = async (): Promise<Database> => {
    const db = await database.open({ clock });
    const core = ['kit_erasures', 'kit_legal_holds', 'kit_retention', 'kit_changes', 'kit_migrations'];
    for (const name of [...core, ...all.map((each) => each.name).toReversed()])
      await db.query(`drop table if exists ${name}${db.dialect === 'postgres' ? ' cascade' : ''}`);
    await migrate(db, [{ name: 'kit', migrations: [changesMigration, erasuresMigration, failedErasures] }]);
    for (const { table } of all) for (const sql of tableStatements(table, db.dialect)) await db.query(sql);
    for (const id of ['ada', 'bob', 'cyd']) await insert(db, people, { id });
    const at = new Date(clock.now().getTime() - 60 * DAY_MS);
    // 1: a comment of ada; 2: one of cyd in acme; 3: a star of ada; 4: nobody's but bob's.
    for (const id of [1, 2, 3, 4]) {
      await insert(db, posts, { id, owner_id: 'bob', at });
      await insert(db, threads, { id, post_id: id });
    }
    await insert(db, comments, { id: 1, thread_id: 1, owner_id: 'ada', tenant_key: null });
    await insert(db, comments, { id: 2, thread_id: 2, owner_id: 'cyd', tenant_key: 'acme' });
    await insert(db, comments, { id: 4, thread_id: 4, owner_id: 'cyd', tenant_key: null });
    await insert(db, stars, { id: 3, post_id: 3, owner_id: 'ada' });
    // bob / bob / ada, and a folder beside it.
    for (const [id, owner, parent, editor] of [
      [1, 'bob', null, null],
      [2, 'bob', 1, null],
      [3, 'ada', 2, 'bob'],
      [4, 'bob', null, 'bob'],
    ] as const)
      await insert(db, folders, { id, owner_id: owner, parent_id: parent, edited_by: editor });
    return db;
  };
  const hold = (db: Database, subject: Subject) => db.transaction((tx) => setLegalHold(tx, subject, { reason: 'case 7', by: null }));
  const release = (db: Database, subject: Subject) => db.transaction((tx) => releaseLegalHold(tx, subject));
  const ids = async (db: Database, each: Model) => (await list(db, each)).map((row) => Number(row['id'])).toSorted((a, b) => a - b);
  const run = (db: Database, id: string, kind: Subject['kind'] = 'person') =>
    runErasure(id, { database: db, planned: [{ database: db, plan: plans[kind], tables }] });

  test('no retention removes them, nor what is between', async () => {
    const db = await fill();
    const table = { database: db, model: posts, retention: posts.retention as never, tables };
    for (const subject of [ada, acme]) await hold(db, subject);
    expect(await retainBatch(table, { database: db, now: true })).toBe(1);
    expect([await ids(db, posts), await ids(db, threads), await ids(db, comments)]).toEqual([
      [1, 2, 3],
      [1, 2, 3],
      [1, 2],
    ]);
    await release(db, acme);
    expect(await retainBatch(table, { database: db, now: true })).toBe(1);
    await release(db, ada);
    expect(await retainBatch(table, { database: db, now: true })).toBe(2);
    expect([await ids(db, posts), await ids(db, comments), await list(db, stars)]).toEqual([
      [],
      [],
      [{ id: 3, post_id: null, owner_id: 'ada' }],
    ]);
  });

  test('an erasure of their owner leaves them and erases the others; it ends when the hold does', async () => {
    const db = await fill();
    for (const subject of [ada, acme]) await hold(db, subject);
    const { id } = await db.transaction((tx) => requestErasure(tx, bob, { dueAt: clock.now(), by: 'test' }));
    expect(await run(db, id)).toBe('kept');
    const state = async () => [await ids(db, posts), await ids(db, comments), await ids(db, folders), (await list(db, people)).length];
    expect(await state()).toEqual([[1, 2, 3], [1, 2], [1, 2, 3], 3]);
    expect(await list(db, folders, { where: { id: 3 } })).toMatchObject([{ edited_by: 'bob' }]);
    expect(await findErasure(db, id)).toMatchObject({
      state: 'running',
      failures: 0,
      last_error: 'A legal hold of another person or tenant keeps rows of folders, posts, threads.',
    });
    // It is held, which is no failure, and waits until a hold ends.
    const totals = async () => (await countErasures(db)).find(({ kind }) => kind === 'person');
    expect(await totals()).toEqual({ kind: 'person', failing: 0, held: 1 });
    expect(isHeld((await findErasure(db, id)) as Erasure, [])).toBe(true);
    const due = async () => (await dueErasures(db, 'person', 10)).map((each) => each.id);
    expect(await due()).toEqual([]);
    await noteFailure(db, id, new Error('the store of files is away'));
    expect(await totals()).toEqual({ kind: 'person', failing: 1, held: 0 });
    expect(await run(db, id)).toBe('kept');
    expect(await totals()).toEqual({ kind: 'person', failing: 0, held: 1 });
    await release(db, acme);
    expect(await due()).toEqual([id]);
    expect(await run(db, id)).toBe('kept');
    expect(await state()).toEqual([[1, 3], [1], [1, 2, 3], 3]);
    await release(db, ada);
    expect(await run(db, id)).toBe('finished');
    // Folders of others lose the one above them.
    expect(await state()).toEqual([[], [], [3], 2]);
    expect(await findErasure(db, id)).toMatchObject({ failures: 0, last_error: null });
    expect(await totals()).toEqual({ kind: 'person', failing: 0, held: 0 });
  });

  test('a person who is held keeps their rows in a tenant that is erased, and a tenant its rows of a person', async () => {
    const db = await fill();
    const cyd: Subject = { kind: 'person', id: 'cyd' };
    await hold(db, cyd);
    const tenant = await db.transaction((tx) => requestErasure(tx, acme, { dueAt: clock.now(), by: 'test' }));
    expect(await run(db, tenant.id, 'tenant')).toBe('kept');
    expect(await ids(db, comments)).toEqual([1, 2, 4]);
    await release(db, cyd);
    await hold(db, acme);
    expect(await run(db, tenant.id, 'tenant')).toBe('held');
    const person = await db.transaction((tx) => requestErasure(tx, cyd, { dueAt: clock.now(), by: 'test' }));
    expect(await run(db, person.id)).toBe('kept');
    expect(await ids(db, comments)).toEqual([1, 2]);
    await release(db, acme);
    expect(await run(db, tenant.id, 'tenant')).toBe('finished');
    expect(await run(db, person.id)).toBe('finished');
    expect(await ids(db, comments)).toEqual([1]);
  });
});
