import { kyselyOf, type Tables } from '../kysely/index.ts';
import { expect, test } from 'vitest';
import { describeDatabases } from '../../testing/databases.ts';
import { t } from '../declare/column.ts';
import { constraintViolation, isUniqueViolation } from '../engine/constraint-violation.ts';
import type { Db } from '../engine/db.ts';
import { tableStatements } from '../sql/ddl.ts';
import { model } from '../declare/model.ts';
import { timestamps, versioned } from '../declare/standard-columns.ts';
import { containsSql, startsWithSql } from '../sql/portable-sql.ts';
import { countQueries, observeQueries } from '../engine/query-observer.ts';
import { count, find, findBy, insert, insertMany, list, remove, update } from './repository.ts';

const teams = model('teams', { id: t.uuidv7().pk(), name: t.text(20).unique() });
const people = model(
  'people',
  {
    id: t.uuidv7().pk(),
    team_id: t.ref(() => teams, { onDelete: 'cascade' }),
    name: t.text(20),
    rank: t.int().dbDefault(5),
    nick: t.text().nullable(),
    kind: t.enum(['guest', 'member']).default('guest'),
    ...timestamps(),
  },
  { indexes: [{ columns: ['team_id', 'name'], unique: true, where: 'nick is null' }], checks: { rank_positive: 'rank >= 0' } },
);
const seats = model('seats', { row: t.int().pk(), place: t.text(2).pk(), owner: t.text().nullable() });

const badges = model('badges', { id: t.uuidv7().pk(), person_id: t.ref(() => people) });
const OTHER_TEAM = '018f4a52-0000-7000-8000-000000000000';
const papers = model('papers', { id: t.uuidv7().pk(), title: t.text(), ...versioned() });

type Shop = Tables<{ teams: typeof teams }>;

let now = new Date('2026-01-01T00:00:00.000Z');
const clock = { now: () => now };

const prepare = async (db: Db): Promise<void> => {
  for (const each of [teams, people, badges, seats, papers])
    for (const statement of tableStatements(each.table, db.dialect)) await db.query(statement);
};

describeDatabases(
  'repository',
  (database) => {
    test('the order in which a caller names columns makes no statement of its own', async () => {
      const team = await insert(database.db, teams, { name: 'order' });
      const person = await insert(database.db, people, { team_id: team.id, name: 'ada' });
      const { queries } = await countQueries(async () => {
        await update(database.db, people, person.id, { name: 'a', rank: 1, nick: 'x' });
        await update(database.db, people, person.id, { nick: 'y', rank: 2, name: 'b' });
        expect(await findBy(database.db, people, { name: 'b', rank: 2 })).toMatchObject({ nick: 'y' });
        expect(await findBy(database.db, people, { rank: 2, name: 'b' })).toMatchObject({ nick: 'y' });
      });
      expect(new Set(queries.map(({ sql }) => sql)).size).toBe(2);
      await expect(update(database.db, people, person.id, { nmae: 'x' } as object)).rejects.toThrow('no column "nmae"');
    });

    test('a version counts updates in the database: of twenty at once each gets a number of its own', async () => {
      const { id, version } = await insert(database.db, papers, { title: 'draft' });
      expect(version).toBe(1);
      const updated = await Promise.all(Array.from({ length: 20 }, (_, n) => update(database.db, papers, id, { title: `draft ${n}` })));
      expect(updated.map((row) => row?.version ?? 0).toSorted((a, b) => a - b)).toEqual(Array.from({ length: 20 }, (_, n) => n + 2));
      await expect(update(database.db, papers, id, { version: 7 })).rejects.toThrow('counts updates');
      expect(await find(database.db, papers, id)).toMatchObject({ version: 21 });
    });

    test('defaults of code and of the database fill what an insert leaves out or sets to null', async () => {
      now = new Date('2026-01-01T00:00:00.000Z');
      const team = await insert(database.db, teams, { name: 'defaults' });
      const person = await insert(database.db, people, { team_id: team.id, name: 'ann', rank: null });
      expect(person).toEqual({
        id: expect.any(String),
        team_id: team.id,
        name: 'ann',
        rank: 5,
        nick: null,
        kind: 'guest',
        created_at: now,
        updated_at: now,
      });
    });

    test('a new row is as old as its last update, however long writing it takes', async () => {
      const ticking = await database.open({ clock: { now: () => (now = new Date(now.getTime() + 1)) } });
      const team = await insert(ticking, teams, { name: 'one moment' });
      const person = await insert(ticking, people, { team_id: team.id, name: 'ada' });
      expect(person.updated_at).toEqual(person.created_at);
    });

    test('an update changes what it names, sets updated_at by the clock and returns the row; undefined when there is none', async () => {
      now = new Date('2026-01-01T00:00:00.000Z');
      const team = await insert(database.db, teams, { name: 'updates' });
      const { id } = await insert(database.db, people, { team_id: team.id, name: 'bob' });
      now = new Date('2026-01-02T00:00:00.000Z');
      const changed = await update(database.db, people, id, { nick: 'b', name: undefined });
      expect(changed).toMatchObject({ name: 'bob', nick: 'b', created_at: new Date('2026-01-01T00:00:00.000Z'), updated_at: now });
      expect(await update(database.db, people, id, {})).toEqual(changed);
      expect(await update(database.db, people, team.id, { nick: 'x' })).toBeUndefined();
      expect((await update(database.db, people, id, { nick: null }))?.nick).toBeNull();
    });

    test('a key that no row can have finds, changes and removes nothing, on both', async () => {
      for (const key of ['not-a-uuid', '', "' or 1=1 --", '\0']) {
        expect(await find(database.db, teams, key)).toBeUndefined();
        expect(await update(database.db, teams, key, { name: 'x' })).toBeUndefined();
        expect(await remove(database.db, teams, key)).toBe(false);
      }
      expect(await findBy(database.db, people, { rank: 2 ** 40 })).toBeUndefined();
      expect(await count(database.db, teams, { id: 'nope' })).toBe(0);
    });

    test('keys in capitals find the row', async () => {
      const { id } = await insert(database.db, teams, { name: 'capitals' });
      expect((await find(database.db, teams, id.toUpperCase()))?.id).toBe(id);
    });

    test('composite keys are objects', async () => {
      await insert(database.db, seats, { row: 1, place: 'a' });
      await insert(database.db, seats, { row: 1, place: 'b' });
      expect(await find(database.db, seats, { row: 1, place: 'b' })).toEqual({ row: 1, place: 'b', owner: null });
      expect(await update(database.db, seats, { row: 1, place: 'a' }, { owner: 'ann' })).toEqual({ row: 1, place: 'a', owner: 'ann' });
      expect(await remove(database.db, seats, { row: 1, place: 'b' })).toBe(true);
      expect(await list(database.db, seats)).toEqual([{ row: 1, place: 'a', owner: 'ann' }]);
      await expect(find(database.db, seats, 1)).rejects.toThrow('has several columns');
    });

    test('lists filter by equality (null is NULL), order, and take a window', async () => {
      const team = await insert(database.db, teams, { name: 'lists' });
      await insertMany(
        database.db,
        people,
        Array.from({ length: 7 }, (_, index) => ({
          team_id: team.id,
          name: `p${index}`,
          rank: index % 3,
          nick: index % 2 === 0 ? null : `n${index}`,
        })),
      );
      const page = await list(database.db, people, { where: { team_id: team.id }, orderBy: ['-rank', 'name'], limit: 3, offset: 1 });
      expect(page.map((row) => row.name)).toEqual(['p5', 'p1', 'p4']);
      expect(await count(database.db, people, { team_id: team.id, nick: null })).toBe(4);
      expect(await list(database.db, people, { where: { team_id: team.id }, offset: 5 })).toHaveLength(2);
    });

    test('many rows are written in one transaction, in the order given, or not at all', async () => {
      const rows = Array.from({ length: 250 }, (_, index) => ({ name: `bulk ${index}` }));
      const written = await insertMany(database.db, teams, rows);
      expect(written.map((row) => row.name)).toEqual(rows.map((row) => row.name));
      const clash = [...Array.from({ length: 150 }, (_, index) => ({ name: `clash ${index}` })), { name: 'bulk 1' }];
      await expect(insertMany(database.db, teams, clash)).rejects.toThrow(/unique/i);
      expect(await database.db.query(`select name from teams where name like 'clash%'`)).toEqual([]);
      expect(await insertMany(database.db, teams, [])).toEqual([]);
    });

    test('a misspelt column is an error of the program, never silence', async () => {
      await expect(insert(database.db, teams, { nmae: 'x' } as never)).rejects.toThrow('no column "nmae"');
      await expect(list(database.db, teams, { where: { nmae: 'x' } as never })).rejects.toThrow(
        'where.nmae (table "teams") refers to an unknown column',
      );
      await expect(insert(database.db, teams, {} as never)).rejects.toMatchObject({
        code: 'value_not_storable',
        detail: 'name must not be null.',
      });
    });

    test('a broken rule says which one, without values', async () => {
      const team = await insert(database.db, teams, { name: 'rules' });
      const caught = async (work: Promise<unknown>): Promise<unknown> => constraintViolation(await work.catch((error: unknown) => error));
      const unique = await insert(database.db, teams, { name: 'rules' }).catch((error: unknown) => error);
      expect(constraintViolation(unique)).toMatchObject({ kind: 'unique', table: 'teams', columns: ['name'] });
      expect(isUniqueViolation(unique, 'name')).toBe(true);
      expect(isUniqueViolation(unique, 'id')).toBe(false);
      const person = await insert(database.db, people, { team_id: team.id, name: 'a' });
      expect(await caught(insert(database.db, people, { team_id: team.id, name: 'a' }))).toMatchObject({ kind: 'unique' });
      expect(await caught(insert(database.db, people, { team_id: OTHER_TEAM, name: 'a' }))).toMatchObject({
        kind: 'foreign_key',
        columns: ['team_id'],
      });
      expect(await caught(update(database.db, people, person.id, { team_id: OTHER_TEAM }))).toMatchObject({
        kind: 'foreign_key',
        columns: ['team_id'],
      });
      expect(await caught(database.db.query(`update people set kind = 'boss'`))).toMatchObject({ kind: 'check' });
      expect(
        await caught(database.db.transaction((tx) => insert(tx, people, { team_id: OTHER_TEAM, name: 'inside a transaction' }))),
      ).toMatchObject({ kind: 'foreign_key', table: 'people', columns: ['team_id'] });
      await insert(database.db, badges, { person_id: person.id });
      expect(await caught(remove(database.db, people, person.id))).toMatchObject({ kind: 'restrict' });
      expect(await caught(insert(database.db, people, { team_id: team.id, name: 'b', rank: -1 }))).toMatchObject({
        kind: 'check',
        constraint: 'people_rank_positive_check',
      });
      expect(await caught(database.db.query('update people set name = null'))).toMatchObject({ kind: 'not_null', columns: ['name'] });
      expect(constraintViolation(new Error('x'))).toBeUndefined();
    });

    test('searching ignores case and wildcards alike on both', async () => {
      await insertMany(database.db, teams, [{ name: 'Find_me' }, { name: 'find%you' }, { name: 'FINDXME' }]);
      const search = async (sql: string, value: string): Promise<string[]> =>
        (await database.db.query<{ name: string }>(`select name from teams where ${sql} order by name`, [value])).map((row) => row.name);
      const { dialect } = database.db;
      expect(await search(containsSql('name', '$1', dialect), 'd_M')).toEqual(['Find_me']);
      expect(await search(containsSql('name', '$1', dialect), 'FIND')).toEqual(['FINDXME', 'Find_me', 'find%you']);
      expect(await search(containsSql('name', '$1', dialect, { caseSensitive: true }), 'find')).toEqual(['find%you']);
      expect(await search(startsWithSql('name', '$1', dialect), 'find%')).toEqual(['find%you']);
    });

    test('statements are counted per async context, also inside transactions, without their values', async () => {
      const team = await insert(database.db, teams, { name: 'counted' });
      const counted = await countQueries(async () => {
        await find(database.db, teams, team.id);
        await database.db.transaction(async (tx) => {
          await find(tx, teams, team.id);
          await kyselyOf<Shop>(tx).selectFrom('teams').select('id').where('name', '=', 'secret value').execute();
        });
        await database.db.query('select nothing from nowhere').catch(() => undefined);
      });
      expect(counted.queries.map(({ failed, rowCount }) => ({ failed, rowCount }))).toEqual([
        { failed: false, rowCount: 1 },
        { failed: false, rowCount: 1 },
        { failed: false, rowCount: 0 },
        { failed: true, rowCount: 0 },
      ]);
      expect(JSON.stringify(counted.queries)).not.toContain('secret value');
      const [left, right] = await Promise.all([
        countQueries(async () => Promise.all([find(database.db, teams, team.id), find(database.db, teams, team.id)])),
        countQueries(async () => find(database.db, teams, team.id)),
      ]);
      expect([left.count, right.count]).toEqual([2, 1]);
      const outer: string[] = [];
      await observeQueries(
        (event) => outer.push(event.using),
        () => countQueries(() => find(database.db, teams, team.id)),
      );
      expect(outer).toEqual(['default']);
    });

    test('a long answer is streamed in chunks; stopping early frees the connection', async () => {
      const name = (index: number): string => `stream ${String(index).padStart(4, '0')}`;
      await insertMany(
        database.db,
        teams,
        Array.from({ length: 500 }, (_, index) => ({ name: name(index) })),
      );
      const chunks: number[] = [];
      const names: string[] = [];
      for await (const rows of database.db.stream<{ name: string }>(
        'select name from teams where name like $1 order by name',
        ['stream%'],
        200,
      )) {
        chunks.push(rows.length);
        names.push(...rows.map((row) => row.name));
      }
      expect(chunks).toEqual([200, 200, 100]);
      expect(names).toEqual(Array.from({ length: 500 }, (_, index) => name(index)));
      for (let round = 0; round < 15; round++) {
        for await (const rows of database.db.stream('select name from teams', [], 10)) {
          expect(rows).toHaveLength(10);
          break;
        }
      }
      const inside = await database.db.transaction(async (tx) => {
        let seen = 0;
        for await (const rows of tx.stream('select name from teams where name like $1', ['stream%'], 100)) seen += rows.length;
        return seen;
      });
      expect(inside).toBe(500);
      let streamed = 0;
      for await (const row of kyselyOf<Shop>(database.db).selectFrom('teams').select('name').where('name', 'like', 'stream%').stream(50))
        streamed += row['name'] === '' ? 0 : 1;
      expect(streamed).toBe(500);
    });

    test('while a stream is open, other reads see new commits', async () => {
      const seen: number[] = [];
      for await (const rows of database.db.stream('select name from teams', [], 100)) {
        await insert(database.db, teams, { name: `during ${seen.length} ${rows.length}` });
        seen.push((await database.db.query(`select name from teams where name like 'during%'`)).length);
        if (seen.length === 3) break;
      }
      expect(seen).toEqual([1, 2, 3]);
    });
  },
  { prepare, database: { clock } },
);
