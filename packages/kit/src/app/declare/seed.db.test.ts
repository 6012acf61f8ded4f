import { expect, test } from 'vitest';
import { createTable, list, migration, model, t } from '../../db/index.ts';
import { describeDatabases } from '../../testing/databases.ts';
import { testApp } from '../../testing/test-app.ts';
import { runSeeds } from '../data/run-seeds.ts';
import { seed, type SeedContext } from './seed.ts';

const people = model('seeded_people', { id: t.uuidv7().pk(), name: t.text(40), born: t.date().nullable(), tags: t.array(t.text()) });
const pets = model('seeded_pets', { id: t.uuidv7().pk(), owner_id: t.ref(() => people), name: t.text(40) });
const tables = migration('0001_initial', [
  createTable('seeded_people', people.columns),
  createTable('seeded_pets', { ...pets.columns, owner_id: t.ref('seeded_people') }),
]);

const ada = seed('people', ({ put, id }) => put(people, { id: id('ada'), name: 'Ada', born: '1815-12-10', tags: ['math'] }));
const cat = seed('pets', ({ put, id }) => put(pets, { name: 'Cat', owner_id: id('ada') }, { by: ['name', 'owner_id'] }));

describeDatabases('seeds', (database) => {
  const start = async (seeds = [cat]) => {
    const app = await testApp({
      database: database.db,
      modules: [{ name: 'seeded', models: [people, pets], migrations: [tables], seeds: [ada] }],
      seeds,
      mount: {},
    });
    await app.app.db.query('delete from seeded_pets');
    await app.app.db.query('delete from seeded_people');
    return app;
  };

  test('create their rows, those of modules first; a second run finds them, a third changes back what was changed', async () => {
    await using app = await start();
    const { db } = app.app;
    const counts = async () =>
      (await runSeeds(app.app)).map(({ name, created, changed, unchanged }) => [name, created, changed, unchanged]);
    expect(await counts()).toEqual([
      ['people', 1, 0, 0],
      ['pets', 1, 0, 0],
    ]);
    expect(await counts()).toEqual([
      ['people', 0, 0, 1],
      ['pets', 0, 0, 1],
    ]);
    await db.query("update seeded_people set name = 'Eve'");
    expect(await counts()).toEqual([
      ['people', 0, 1, 0],
      ['pets', 0, 0, 1],
    ]);
    expect(await list(db, people)).toMatchObject([{ name: 'Ada', born: '1815-12-10', tags: ['math'] }]);
    expect(await list(db, pets)).toHaveLength(1);
  });

  test('a seed that fails writes nothing, and names itself', async () => {
    const failing = seed('failing', async ({ put, id }: SeedContext) => {
      await put(people, { id: id('bob'), name: 'Bob', tags: [] });
      throw new Error('no network');
    });
    await using app = await start([failing]);
    await expect(runSeeds(app.app, ['failing'])).rejects.toThrow('The seed "failing" failed, and nothing of it was written: no network');
    expect(await list(app.app.db, people)).toEqual([]);
  });

  test('a row that would be created again at every run is rejected, and so is one that several rows match', async () => {
    const anonymous = seed('anonymous', ({ put }) => put(people, { name: 'Ada', tags: [] }));
    const twins = seed('twins', async ({ put, id }) => {
      for (const name of ['x', 'y']) await put(people, { id: id(name), name: 'Twin', tags: [] });
      await put(people, { name: 'Twin', tags: [] }, { by: ['name'] });
    });
    await using app = await start([anonymous, twins]);
    await expect(runSeeds(app.app, ['anonymous'])).rejects.toThrow(/has no id, so a second run would create the row again/);
    await expect(runSeeds(app.app, ['twins'])).rejects.toThrow(/several rows have the same name/);
    await expect(runSeeds(app.app, ['twinz'])).rejects.toThrow('There is no seed "twinz". Did you mean "twins"?');
  });

  test('testApp runs them before prepare', async () => {
    await using _empty = await start();
    await using app = await testApp({
      database: database.db,
      modules: [{ name: 'seeded', models: [people, pets], migrations: [tables], seeds: [ada] }],
      mount: {},
      runSeeds: ['people'],
      prepare: ({ db }) => db.query("update seeded_people set name = name || '!'"),
    });
    expect(await list(app.app.db, people)).toMatchObject([{ name: 'Ada!' }]);
  });
});

test('ids are the same on every machine, and a name is checked', async () => {
  const seen: string[] = [];
  await using app = await testApp({ mount: {}, seeds: [seed('ids', ({ id }) => void seen.push(id('ada'), id('bob')))] });
  await runSeeds(app.app);
  expect(seen).toEqual(['7677f88b-f335-8d79-9461-f9831c04875c', '0f30129e-2361-8455-9077-a05c02daa0e9']);
  expect(() => seed('My Seed', () => undefined)).toThrow(/a name such as "demo"/);
});
