import { expect, test } from 'vitest';
import { describeDatabases } from '../../testing/databases.ts';
import { t } from '../declare/column.ts';
import { type Model, model } from '../declare/model.ts';
import type { Database } from '../engine/db.ts';
import { insertMany } from '../rows/repository.ts';
import { tableStatements } from '../sql/ddl.ts';
import { heldSql, type HeldTables, whoseIn } from './held-rows.ts';
import type { Subject } from './subject.ts';
import { subjectPlan } from './subject-plan.ts';

// Which rows a legal hold keeps where rows refer to each other in circles, in long chains and by very many ways.

const people = model('circle_people', { id: t.text(20).pk().person() });
/** Teams refer to teams, and teams and projects to each other, by keys of several types. */
const teams = model('circle_teams', {
  id: t.uuid().pk(),
  owner_id: t.text(20).nullable().person(),
  project_id: t.ref<number | null>((): Model => projects as unknown as Model, { onDelete: 'cascade' }).nullable(),
  parent_id: t.ref<string | null>((): Model => teams as unknown as Model, { onDelete: 'cascade' }).nullable(),
});
const projects = model('circle_projects', {
  id: t.int().pk(),
  code: t.text(30).unique(),
  owner_id: t.text(20).nullable().person(),
  team_id: t.ref<string | null>(() => teams, { onDelete: 'cascade' }).nullable(),
  lead: t.ref<string | null>((): Model => projects as unknown as Model, { onDelete: 'restrict', column: 'code' }).nullable(),
});
/** Below the circle, by another key. */
const tickets = model('circle_tickets', {
  id: t.int().pk(),
  owner_id: t.text(20).nullable().person(),
  project_code: t.ref<string | null>(() => projects, { onDelete: 'cascade', column: 'code' }).nullable(),
  team_id: t.ref<string | null>(() => teams, { onDelete: 'set null' }).nullable(),
});
const files = model('circle_files', {
  id: t.int().pk(),
  owner_id: t.text(20).nullable().person(),
  ticket_id: t.ref<number | null>(() => tickets, { onDelete: 'cascade' }).nullable(),
});
const circle: readonly Model[] = [people, teams, projects, tickets, files];

/** Each refers to all before it: there are 2¹⁶ ways from the last to the first. */
const dense: Model[] = [];
for (let n = 0; n < 18; n++)
  dense.push(
    model(`dense_${n}`, {
      id: t.int().pk(),
      owner_id: t.text(20).nullable().person(),
      ...Object.fromEntries(
        dense.map((above, at) => [`r${at}`, t.ref<number | null>(() => above, { onDelete: 'cascade', type: t.int() }).nullable()]),
      ),
    }),
  );

function tablesOf(models: readonly Model[]): HeldTables {
  const plan = subjectPlan('person', models);
  return { models, whose: (each) => whoseIn(each, plan.tables, []) };
}

const uuid = (n: number): string => `00000000-0000-7000-8000-${String(n).padStart(12, '0')}`;
const person = (id: string): Subject => ({ kind: 'person', id });

type Rows = Readonly<Record<string, readonly Readonly<Record<string, unknown>>[]>>;

/** The same, row by row. */
function heldRows(models: readonly Model[], rows: Rows, holds: readonly string[]): Map<string, Set<unknown>> {
  const held = new Map(models.map(({ name }) => [name, new Set<unknown>()]));
  const references = models.flatMap((child) =>
    Object.entries(child.columns).flatMap(([column, { settings }]) => {
      const { reference } = settings;
      if (reference === undefined || typeof reference.target === 'string') return [];
      return { child: child.name, column, parent: reference.target().name, key: reference.column ?? 'id', onDelete: reference.onDelete };
    }),
  );
  const above = (child: string, row: Readonly<Record<string, unknown>>, way: (onDelete: string) => boolean): boolean =>
    references.some(({ child: from, column, parent, key, onDelete }) => {
      if (from !== child || !way(onDelete) || row[column] === null) return false;
      const found = rows[parent]?.find((each) => each[key] === row[column])?.['id'];
      const isNew = found !== undefined && held.get(parent)?.has(found) === false;
      if (isNew) held.get(parent)?.add(found);
      return isNew;
    });
  for (const { name } of models)
    for (const row of rows[name] ?? [])
      if (holds.includes(String(row['owner_id'])) || (name === people.name && holds.includes(String(row['id'])))) {
        held.get(name)?.add(row['id']);
        while (above(name, row, (onDelete) => onDelete === 'set null'));
      }
  let grows = true;
  while (grows) {
    grows = false;
    for (const { name } of models)
      for (const row of rows[name] ?? [])
        if (held.get(name)?.has(row['id']) === true) while (above(name, row, (onDelete) => onDelete !== 'set null')) grows = true;
  }
  return held;
}

describeDatabases('legal holds and circles', (database) => {
  /** Without foreign keys: rows of a circle could not be inserted one after the other. */
  const create = async (models: readonly Model[], rows: Rows): Promise<Database> => {
    const { db } = database;
    for (const { table } of models) {
      await db.query(`drop table if exists ${table.name}`);
      const columns = Object.fromEntries(
        Object.entries(table.columns).map(([name, column]) => [
          name,
          Object.fromEntries(Object.entries(column).filter(([key]) => key !== 'references')) as unknown as typeof column,
        ]),
      );
      for (const sql of tableStatements({ ...table, columns }, db.dialect)) await db.query(sql);
    }
    for (const each of models)
      for (let at = 0; at < (rows[each.name]?.length ?? 0); at += 500)
        await insertMany(db, each, rows[each.name]?.slice(at, at + 500) ?? []);
    return db;
  };
  const select = async (db: Database, models: readonly Model[], each: Model, holds: readonly Subject[]) => {
    const values: unknown[] = [];
    const condition = heldSql(holds, tablesOf(models), each, 'r', values);
    if (condition === undefined) return { ids: [], text: '', values };
    const found = await db.query<{ id: unknown }>(`select r.id from ${each.name} r where ${condition} order by r.id`, values);
    return { ids: found.map(({ id }) => id), text: condition, values };
  };

  test('each row that a held row refers to is found, by whatever way, and no other', async () => {
    // A fixed sequence of numbers that look random.
    let seed = 7;
    const next = (below: number): number => (seed = (seed * 48_271) % 2_147_483_647) % below;
    const maybe = <T>(share: number, value: () => T): T | null => (next(100) < share ? value() : null);
    let kept = 0;
    let free = 0;
    for (let round = 0; round < 8; round++) {
      const size = 40;
      const owner = () => maybe(40, () => `p${next(12)}`);
      const numbers = Array.from({ length: size }, (_, n) => n);
      const rows: Rows = {
        circle_people: Array.from({ length: 12 }, (_, n) => ({ id: `p${n}` })),
        circle_teams: numbers.map((n) => ({
          id: uuid(n),
          owner_id: owner(),
          project_id: maybe(40, () => next(size)),
          parent_id: maybe(40, () => uuid(next(size))),
        })),
        circle_projects: numbers.map((n) => ({
          id: n,
          code: `code ${n}`,
          owner_id: owner(),
          team_id: maybe(40, () => uuid(next(size))),
          lead: maybe(20, () => `code ${next(size)}`),
        })),
        circle_tickets: numbers.map((n) => ({
          id: n,
          owner_id: owner(),
          project_code: maybe(50, () => `code ${next(size)}`),
          team_id: maybe(30, () => uuid(next(size))),
        })),
        circle_files: numbers.map((n) => ({ id: n, owner_id: owner(), ticket_id: maybe(60, () => next(size)) })),
      };
      const db = await create(circle, rows);
      const holds = Array.from({ length: 1 + (round % 3) }, (_, n) => `p${(round + n * 5) % 12}`);
      const expected = heldRows(circle, rows, holds);
      for (const each of circle) {
        const { ids } = await select(db, circle, each, holds.map(person));
        expect(new Set(ids), `${each.name} in round ${round}`).toEqual(expected.get(each.name));
        kept += ids.length;
        free += (rows[each.name]?.length ?? 0) - ids.length;
      }
    }
    expect(Math.min(kept, free)).toBeGreaterThan(100);
  });

  test('a chain of thousands of rows that leads around a circle again and again is followed to its end, a ring once around', async () => {
    const LENGTH = 3000;
    const at = (n: number) => n % LENGTH;
    const rows: Rows = {
      circle_people: [{ id: 'ada' }, { id: 'bob' }],
      // A team is in a project, which is of the next team, and the last one is of the first; others are a tree that is as deep, and belong to nobody.
      circle_teams: [
        ...Array.from({ length: LENGTH }, (_, n) => ({ id: uuid(n), owner_id: n === 17 ? 'ada' : 'bob', project_id: n, parent_id: null })),
        ...Array.from({ length: LENGTH }, (_, n) => ({
          id: uuid(LENGTH + n),
          owner_id: null,
          project_id: null,
          parent_id: n === 0 ? null : uuid(LENGTH + n - 1),
        })),
      ],
      circle_projects: Array.from({ length: LENGTH }, (_, n) => ({
        id: n,
        code: `code ${n}`,
        owner_id: null,
        team_id: uuid(at(n + 1)),
        lead: null,
      })),
      circle_tickets: [{ id: 1, owner_id: 'cyd', project_code: null, team_id: uuid(2 * LENGTH - 1) }],
      circle_files: [],
    };
    const db = await create(circle, rows);
    expect((await select(db, circle, projects, [person('ada')])).ids).toHaveLength(LENGTH);
    expect((await select(db, circle, teams, [person('ada')])).ids).toHaveLength(LENGTH);
    // The ticket of cyd would lose its team, and the team the ones above it.
    expect((await select(db, circle, teams, [person('cyd')])).ids).toHaveLength(LENGTH);
    expect((await select(db, circle, teams, [person('nobody')])).ids).toEqual([]);
  });

  test('the statement grows with the tables and the holds, not with the ways between the tables', async () => {
    const row = (n: number, id: number): Record<string, unknown> => {
      const columns = Array.from({ length: n }, (_, at) => [`r${at}`, at === n - 1 ? id : null] as const);
      return { id, owner_id: n === 17 && id === 1 ? 'ada' : 'bob', ...Object.fromEntries(columns) };
    };
    const rows: Rows = Object.fromEntries(dense.map(({ name }, n) => [name, [row(n, 1), row(n, 2)]]));
    const db = await create(dense, rows);
    const [first] = dense;
    const few = await select(db, dense, first as Model, [person('ada')]);
    expect(few.ids).toEqual([1]);
    expect(few.text.length).toBeLessThan(40_000);
    expect(few.values).toEqual(['ada']);
    const many = await select(db, dense, first as Model, [person('ada'), ...Array.from({ length: 1000 }, (_, n) => person(`q${n}`))]);
    expect(many.ids).toEqual([1]);
    expect(many.values).toHaveLength(1001);
  });
});
