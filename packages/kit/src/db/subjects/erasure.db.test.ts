import { describe, expect, test } from 'vitest';
import { describeDatabases } from '../../testing/databases.ts';
import { t } from '../declare/column.ts';
import type { Model } from '../declare/model.ts';
import { model } from '../declare/model.ts';
import { userStamps } from '../declare/standard-columns.ts';
import type { Database, Db } from '../engine/db.ts';
import { erasures as erasuresMigration } from '../migrations/core/migrations/0005_erasures.ts';
import { failedErasures } from '../migrations/core/migrations/0006_failed_erasures.ts';
import { changes as changesMigration } from '../migrations/core/migrations/0004_changes.ts';
import { migrate } from '../migrations/migrate.ts';
import { openDatabase } from '../open/open-database.ts';
import { insert, insertMany, list } from '../rows/repository.ts';
import { tableStatements } from '../sql/ddl.ts';
import { cancelErasure, findErasure, releaseLegalHold, requestErasure, setLegalHold } from './erasure-state.ts';
import { runErasure } from './run-erasure.ts';
import type { Subject } from './subject.ts';
import { subjectPlan } from './subject-plan.ts';
import { subjectRows } from './subject-rows.ts';

const users = model('users', { id: t.text(20).pk().person(), name: t.text().personal() });
const orders = model('orders', {
  id: t.int().pk(),
  owner_id: t.text(20).nullable().person({ erase: 'anonymise' }),
  tenant_key: t.text(20).tenant(),
  address: t.text().nullable().personal(),
  code: t
    .text()
    .personal({ erased: (key: string) => `erased-${key}` })
    .unique(),
  secret: t.text().sensitive(),
  total: t.int(),
});
/** Nothing says whose they are: the database deletes them with their order. */
const lines = model('order_lines', {
  id: t.int().pk(),
  order_id: t.ref<number>(() => orders, { onDelete: 'cascade' }),
  note: t.text().nullable().personal(),
});
const notes = model('notes', { id: t.int().pk(), user_id: t.ref(() => users, { onDelete: 'cascade' }), text: t.text() });
const marks = model(
  'marks',
  {
    note_id: t
      .int()
      .refersTo(() => notes)
      .person(),
    label: t.text(20),
  },
  { primaryKey: ['note_id', 'label'] },
);
const reports = model('reports', { id: t.int().pk(), title: t.text(), ...userStamps() });
const tree = model('folders', {
  id: t.int().pk(),
  owner_id: t.text(20).person(),
  parent_id: t.ref<number | null>((): Model => tree as unknown as Model).nullable(),
});

const all: readonly Model[] = [users, orders, lines, notes, marks, reports, tree];
const core = { name: 'kit', migrations: [changesMigration, erasuresMigration, failedErasures] };

describe('the plan', () => {
  test('is made from the models: rows below others, keys that refer to them, and who wrote them', () => {
    const { tables, faults } = subjectPlan('person', all);
    expect(faults).toEqual([]);
    const steps = tables.map(
      ({ model: { name }, paths }) => `${name}: ${paths.map(({ column, erase }) => `${column} ${erase}`).join(', ')}`,
    );
    expect(steps.toSorted()).toEqual([
      'folders: owner_id delete',
      'marks: note_id delete',
      'notes: user_id delete',
      'order_lines: order_id anonymise',
      'orders: owner_id anonymise',
      'reports: created_by unlink, updated_by unlink',
      'users: id delete',
    ]);
    const place = (name: string) => tables.findIndex((each) => each.model.name === name);
    expect(place('order_lines')).toBeLessThan(place('orders'));
    expect(place('marks')).toBeLessThan(place('notes'));
    expect(place('users')).toBe(tables.length - 1);
    expect(subjectPlan('tenant', all).tables.map((each) => each.model.name)).toEqual(['order_lines', 'orders']);
  });

  test('says what keeps a person from being erased', () => {
    const people = model('people', { id: t.int().pk().person(), name: t.text() });
    const bills = model('bills', { id: t.int().pk(), payer_id: t.ref<number>(() => people) });
    const letters = model('letters', { id: t.int().pk(), to_id: t.text(20).person({ erase: 'anonymise' }), street: t.text().personal() });
    const stamps = model('stamps', {
      id: t.int().pk(),
      letter_id: t
        .int()
        .refersTo(() => bills)
        .person(),
    });
    expect(subjectPlan('person', [people, bills, letters, stamps]).faults).toEqual([
      '"stamps.letter_id" says .person() and refers to "bills", whose rows belong to no person',
      'rows of "bills" refer to rows of "people" with "payer_id" and keep them from being deleted',
      '"letters.to_id" is not nullable and its row stays: say what it becomes, { erased: … }',
      '"letters.street" is not nullable and its row stays: say what it becomes, { erased: … }',
    ]);
  });
});

const ada: Subject = { kind: 'person', id: 'ada' };

describeDatabases('export and erase', (database) => {
  let isFilled = false;
  const fill = async (): Promise<Database> => {
    const { db } = database;
    for (const table of ['kit_erasures', 'kit_legal_holds', 'kit_retention', 'kit_changes', 'kit_migrations'])
      await db.query(`drop table if exists ${table}${db.dialect === 'postgres' ? ' cascade' : ''}`);
    if (isFilled) await db.query('update folders set parent_id = null');
    isFilled = true;
    for (const { name } of all.toReversed()) await db.query(`drop table if exists ${name}${db.dialect === 'postgres' ? ' cascade' : ''}`);
    await migrate(db, [core]);
    for (const { table } of all) for (const sql of tableStatements(table, db.dialect)) await db.query(sql);
    for (const [index, id] of ['ada', 'bob'].entries()) {
      const at = index * 100;
      await insert(db, users, { id, name: `${id} marker` });
      const ids = Array.from({ length: 25 }, (_, n) => at + n);
      await insertMany(
        db,
        orders,
        ids.map((n) => ({
          id: n,
          owner_id: id,
          tenant_key: id === 'ada' ? 'acme' : 'other',
          address: `${id} marker`,
          code: `${id} marker ${n}`,
          secret: 'hidden',
          total: n,
        })),
      );
      await insertMany(
        db,
        lines,
        ids.map((n) => ({ id: n, order_id: n, note: `${id} marker` })),
      );
      await insertMany(
        db,
        notes,
        ids.map((n) => ({ id: n, user_id: id, text: `${id} marker` })),
      );
      await insertMany(
        db,
        marks,
        ids.map((n) => ({ note_id: n, label: `${id} marker` })),
      );
      await insertMany(
        db,
        reports,
        ids.map((n) => ({ id: n, title: 'about the shop', created_by: id, updated_by: 'bob' })),
      );
      for (const n of ids) await insert(db, tree, { id: n, owner_id: id, parent_id: n === at ? null : n - 1 });
      await db.query(
        `insert into kit_changes (position, xid, token, resource, key, kind, prior, at) values ($1, 0, 1, 'notes', $2, 'changed', $3, $4)`,
        [BigInt(index + 1), JSON.stringify(at), JSON.stringify({ text: `${id} marker` }), db.clock.now()],
      );
    }
    return db;
  };
  const request = (db: Database, subject: Subject, dueAt = db.clock.now()) =>
    db.transaction((tx) => requestErasure(tx, subject, { dueAt, by: 'test' }));
  const planned = (db: Database, subject = ada) => ({ database: db, planned: [{ database: db, plan: subjectPlan(subject.kind, all) }] });
  /** Everything that the tables contain, as text. */
  const content = async (db: Database): Promise<string> => {
    const rows = await Promise.all([...all.map(({ name }) => name), 'kit_changes'].map((name) => db.query(`select * from ${name}`)));
    return JSON.stringify(rows, (_key, value: unknown) => (typeof value === 'bigint' ? String(value) : value));
  };
  const of = (text: string, marker: string) => text.split(marker).length - 1;

  test('an export has the rows of the person alone, without secrets and without rows that only mention them', async () => {
    const db = await fill();
    const exported = new Map<string, number>();
    let text = '';
    for await (const { table, rows } of subjectRows(db, subjectPlan('person', all), 'ada')) {
      exported.set(table, (exported.get(table) ?? 0) + rows.length);
      text += JSON.stringify(rows);
    }
    expect(Object.fromEntries(exported)).toEqual({ users: 1, orders: 25, order_lines: 25, notes: 25, marks: 25, folders: 25 });
    expect(text).not.toContain('bob');
    expect(text).not.toContain('hidden');
    for await (const _ of subjectRows(db, subjectPlan('person', all), '')) expect.unreachable('nobody has the empty id');
  });

  test('after an erasure no row has the person, and the others are unchanged; the proof counts every row once', async () => {
    const db = await fill();
    const before = of(await content(db), 'bob marker');
    const { id } = await request(db, ada);
    const done: number[] = [];
    expect(await runErasure(id, { ...planned(db), batch: 10, onProgress: ({ rows }) => done.push(rows) })).toBe('finished');
    const text = await content(db);
    expect(of(text, 'ada')).toBe(0);
    expect(of(text, 'bob marker')).toBe(before);
    expect((await list(db, orders, { where: { owner_id: null } })).map((order) => order.code)).toContain('erased-3');
    expect((await findErasure(db, id))?.counts).toEqual({
      users: { delete: 1 },
      orders: { anonymise: 25 },
      order_lines: { anonymise: 25 },
      notes: { delete: 25 },
      marks: { delete: 25 },
      folders: { delete: 25 },
      reports: { unlink: 25 },
    });
    expect(Math.max(...done)).toBe(10);
    expect(await runErasure(id, planned(db))).toBe('finished');
  });

  test('a tenant is erased alone', async () => {
    const db = await fill();
    const acme: Subject = { kind: 'tenant', id: 'acme' };
    const { id } = await request(db, acme);
    expect(await runErasure(id, planned(db, acme))).toBe('finished');
    expect((await list(db, orders)).map((order) => order.tenant_key)).toEqual(Array.from({ length: 25 }, () => 'other'));
    expect((await findErasure(db, id))?.counts).toEqual({ order_lines: { delete: 25 }, orders: { delete: 25 } });
  });

  test('what fails or stops goes on where it was; two processes at once do every row once', async () => {
    const db = await fill();
    const { id } = await request(db, ada);
    let batches = 0;
    const failing = {
      ...planned(db),
      batch: 7,
      beforeErase: async () => {
        batches += 1;
        if (batches % 4 === 0) throw new Error('the store of files is away');
      },
    };
    await expect(runErasure(id, failing)).rejects.toThrow('the store of files is away');
    const stop = new AbortController();
    expect(await runErasure(id, { ...planned(db), batch: 7, signal: stop.signal, onProgress: () => stop.abort() })).toBe('stopped');
    const other = await openDatabase(database.url);
    try {
      const both = await Promise.all([runErasure(id, { ...planned(db), batch: 5 }), runErasure(id, { ...planned(other), batch: 5 })]);
      expect(both).toEqual(['finished', 'finished']);
    } finally {
      await other.close();
    }
    expect(of(await content(db), 'ada')).toBe(0);
    expect((await findErasure(db, id))?.counts).toMatchObject({ notes: { delete: 25 }, orders: { anonymise: 25 }, users: { delete: 1 } });
  });

  test('a row that is written meanwhile goes, too', async () => {
    const db = await fill();
    const { id } = await request(db, ada);
    let isWritten = false;
    const beforeErase = async (tx: Db, { name }: Model) => {
      if (name !== 'orders' || isWritten) return;
      isWritten = true;
      await insert(tx, marks, { note_id: 3, label: 'late' });
      await insert(tx, notes, { id: 900, user_id: 'ada', text: 'late' });
    };
    await runErasure(id, { ...planned(db), beforeErase });
    expect(of(await content(db), 'late')).toBe(0);
  });

  test('a grace period can be cancelled, a legal hold stops an erasure that has begun', async () => {
    const db = await fill();
    const later = await request(db, ada, new Date(db.clock.now().getTime() + 3_600_000));
    expect(await runErasure(later.id, planned(db))).toBe('waiting');
    expect(await db.transaction((tx) => cancelErasure(tx, ada))).toBe(true);
    expect(await db.transaction((tx) => cancelErasure(tx, ada))).toBe(false);
    const { id } = await request(db, ada);
    expect(id).not.toBe(later.id);
    expect((await request(db, ada)).id).toBe(id);
    const hold = () => db.transaction((tx) => setLegalHold(tx, ada, { reason: 'case 7', by: null }));
    let held: Promise<void> | undefined;
    expect(await runErasure(id, { ...planned(db), batch: 5, onProgress: () => void (held ??= hold()) })).toBe('held');
    await held;
    expect(await db.transaction((tx) => cancelErasure(tx, ada))).toBe(false);
    expect(of(await content(db), 'ada')).toBeGreaterThan(0);
    await db.transaction((tx) => releaseLegalHold(tx, ada));
    expect(await runErasure(id, planned(db))).toBe('finished');
    expect(of(await content(db), 'ada')).toBe(0);
  });
});
