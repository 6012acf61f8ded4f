import { crudTests, testApp } from 'kit/testing';
import { expect, test } from 'vitest';
import { appOptions } from '../src/app.ts';
import { NoteController } from '../src/notes.ts';

const ada = { id: '01890000-0000-7000-8000-000000000001' };
const bob = { id: '01890000-0000-7000-8000-000000000002' };

test('a note is created, and only its owner sees it', async () => {
  await using app = await testApp(appOptions);
  const created = await app.as(ada).post('/v1/notes', { title: 'Milk' });
  expect(created.statusCode).toBe(201);
  const url = `/v1/notes/${created.json<{ id: string }>().id}`;
  expect((await app.as(ada).get(url)).json()).toMatchObject({ title: 'Milk', pinned: false, version: 1 });
  expect((await app.as(bob).get(url)).statusCode).toBe(404);
  expect((await app.inject(url)).statusCode).toBe(401);
});

test('the seed of the app fills a database', async () => {
  await using app = await testApp({ ...appOptions, runSeeds: true });
  const [user] = await app.app.db.query<{ id: string }>("select id from users where username = 'ada'");
  const notes = await app.as({ id: user?.id ?? '' }).get('/v1/notes?pinned=true');
  expect(notes.json()).toMatchObject({ items: [{ title: 'Milk' }] });
});

// What generic CRUD guarantees, tried on this resource. With KIT_TEST_POSTGRES_URL on PostgreSQL, too.
crudTests(NoteController, {
  app: (database) => testApp({ ...appOptions, database: database.db }),
  callers: { owner: ada, stranger: bob },
});
