import { existsSync } from 'node:fs';
import { expect, test } from 'vitest';
import { z } from 'zod';
import type { Module } from '../app/declare/module.ts';
import type { Authenticator } from '../auth/request/authenticator.ts';
import { createTable, insert, migration, model, t } from '../db/index.ts';
import { coreErrors } from '../errors/core-errors.ts';
import { Controller } from '../http/compile/controller.ts';
import { route } from '../http/declare/route.ts';
import { allowAny, hasScopes, isAuthenticated } from '../permissions/built-ins.ts';
import { describeDatabases } from './databases.ts';
import { expectQueries } from './expect-queries.ts';
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

class WhoController extends Controller {
  me = route.get('/me', { permission: isAuthenticated, response: z.object({ id: z.string(), staff: z.boolean() }) }, ({ user }) => ({
    id: user.id,
    staff: user.is_staff,
  }));
  scoped = route.post('/scoped', { permission: hasScopes(), scope: 'things:write' }, () => undefined);
  each = route.get('/each', { permission: allowAny }, async ({ db }) => {
    for (let id = 1; id <= 6; id += 1) await db.query('select $1 as id', [id]);
  });
}
const who = { '/v1': { '/who': WhoController } };
const cookies: Authenticator = {
  name: 'cookie',
  securityScheme: { type: 'apiKey', in: 'cookie', name: 'session' },
  authenticate: ({ headers }) =>
    headers.cookie === undefined
      ? null
      : {
          user: { id: 'by cookie', username: 'c', email: null, is_active: true, is_staff: false, is_superuser: false },
          scheme: 'cookie',
          scopes: null,
        },
  verifyCsrf() {
    throw coreErrors.permission_denied();
  },
};

test('as(user) sends requests of that user, whatever the authenticators of the app are', async () => {
  for (const authenticators of [[], [cookies]]) {
    await using app = await testApp({ mount: who, authenticators });
    const ada = app.as({ id: 'ada' });
    const sue = app.as({ id: 'sue', is_staff: true }, { scopes: ['things:write'] });
    expect((await ada.get('/v1/who/me')).json()).toEqual({ id: 'ada', staff: false });
    expect((await sue.get('/v1/who/me')).json()).toEqual({ id: 'sue', staff: true });
    expect([(await ada.post('/v1/who/scoped')).statusCode, (await sue.post('/v1/who/scoped')).statusCode]).toEqual([403, 204]);
    // No other caller is admitted, and the app's own credentials keep their rules.
    expect((await app.inject('/v1/who/me')).statusCode).toBe(401);
    expect((await app.inject({ url: '/v1/who/me', headers: { 'x-kit-test-caller': 'ada' } })).statusCode).toBe(401);
    const cookie = { method: 'POST' as const, url: '/v1/who/scoped', headers: { cookie: 'session=1' } };
    expect((await app.inject(cookie)).json()).toMatchObject({
      code: authenticators.length > 0 ? 'permission_denied' : 'not_authenticated',
    });
    // @ts-expect-error -- a user has an id
    expect(() => app.as('ada')).toThrow('as() takes a user');
  }
});

test('expectQueries fails with the statements that ran, and returns what the work returned', async () => {
  await using app = await testApp({ mount: who });
  expect(await expectQueries(6, () => app.inject('/v1/who/each'))).toMatchObject({ statusCode: 204 });
  await expect(expectQueries(1, () => app.inject('/v1/who/each'))).rejects.toThrow(
    /Expected 1 statement, and 6 ran:\n1\. select \? as id\n2\. /,
  );
});

test('strictQueries fails a request that runs one statement again and again', async () => {
  await using loose = await testApp({ mount: who });
  await using strict = await testApp({ mount: who, strictQueries: true });
  await using lenient = await testApp({ mount: who, strictQueries: 10 });
  const statuses = await Promise.all([loose, strict, lenient].map(async (app) => (await app.inject('/v1/who/each')).statusCode));
  expect(statuses).toEqual([204, 500, 204]);
  expect(strict.records.some(({ msg }) => msg.includes('ran the same statement'))).toBe(true);
});
