import { existsSync } from 'node:fs';
import { expect, test } from 'vitest';
import type { Module } from '../app/module.ts';
import { createTable, insert, migration, model, t } from '../db/index.ts';
import { coreErrors } from '../errors/core-errors.ts';
import { Controller } from '../http/controller.ts';
import { route } from '../http/route.ts';
import { allowAny } from '../permissions/built-ins.ts';
import { describeDatabases } from './databases.ts';
import { fakeClock } from './fake-clock.ts';
import { sample } from './sample/sample.ts';
import { testApp } from './test-app.ts';

const columns = { id: t.uuidv7().pk(), text: t.text(20), at: t.timestamp().readOnly() };
const notes = model('notes', columns);
const notesModule: Module = { name: 'notes', models: [notes], migrations: [migration('0001_initial', [createTable('notes', columns)])] };

class NoteController extends Controller {
  add = route.post('/', { body: notes.input, permission: allowAny }, async ({ body, db, clock, log }) => {
    await insert(db, notes, { ...body, at: clock.now() });
    log.info('a note was added');
  });
  missing = route.get('/missing', { permission: allowAny }, () => {
    throw coreErrors.not_found();
  });
}
const mount = { '/v1': { '/notes': NoteController } };
const fileOf = (url: string): string => url.replace(/^sqlite:/, '');

test('an application starts on a new database that is gone afterwards', async () => {
  const app = await testApp({ mount });
  const file = fileOf(app.app.db.url);
  expect(existsSync(file)).toBe(true);
  expect((await app.inject('/v1/notes/missing')).statusCode).toBe(404);
  await app.close();
  expect(existsSync(file)).toBe(false);
});

test('two applications in one test never meet', async () => {
  await using first = await testApp({ mount });
  await using second = await testApp({ mount });
  expect(first.app.db.url).not.toBe(second.app.db.url);
});

test('a start that fails leaves nothing behind', async () => {
  let file = '';
  const prepare = ({ db }: { db: { url: string } }): never => {
    file = fileOf(db.url);
    throw new Error('no seed data');
  };
  await expect(testApp({ mount, prepare })).rejects.toThrow('no seed data');
  expect(file).not.toBe('');
  expect(existsSync(file)).toBe(false);
});

test('the address of a listening application is real, and asking twice gives the same', async () => {
  await using app = await testApp({ mount });
  const address = await app.listen();
  expect(await app.listen()).toBe(address);
  expect((await fetch(`${address}/v1/notes/missing`)).status).toBe(404);
});

describeDatabases('testApp', (database) => {
  test('modules are migrated, samples of a model are accepted, and time is the clock of the test', async () => {
    const clock = fakeClock('2030-05-01T00:00:00Z');
    await using app = await testApp({ database: database.db, modules: [notesModule], mount, clock });
    const response = await app.inject({ method: 'POST', url: '/v1/notes', payload: sample(notes.input) as object });
    expect(response.body).toBe('');
    expect(response.statusCode).toBe(204);
    expect(await database.db.query('select at from notes')).toEqual([{ at: new Date('2030-05-01T00:00:00Z') }]);
    expect(app.records).toContainEqual(expect.objectContaining({ msg: 'a note was added', level: 30 }));
  });

  test('a database that was passed in stays open for the test', async () => {
    const app = await testApp({ database: database.db, modules: [notesModule], mount });
    await app.close();
    expect(await database.db.query('select 1 as one')).toEqual([{ one: 1 }]);
  });
});
