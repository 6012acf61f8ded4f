import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { z } from 'zod';
import type { Authenticator } from '../src/auth/request/authenticator.ts';
import type { User } from '../src/auth/people/principal.ts';
import { accounts, createUser } from '../src/contrib/accounts/index.ts';
import { audit } from '../src/contrib/audit/index.ts';
import { job, jobs, runDueJobs, startJob } from '../src/contrib/jobs/index.ts';
import { publish, webhooks } from '../src/contrib/webhooks/index.ts';
import { crudOf, resource } from '../src/crud/index.ts';
import { createTable, migration, model, t } from '../src/db/index.ts';
import { uuidv7 } from '../src/db/values/uuidv7.ts';
import { Controller, isAuthenticated, route } from '../src/index.ts';
import { describeDatabases, fakeClock, testApp } from '../src/testing/index.ts';
import { auditLog } from './audit-log.ts';

const notes = model('notes', { id: t.uuidv7().pk(), owner_id: t.uuid().readOnly(), title: t.text(50) });
const noteResource = resource(notes, { owner: 'owner_id', audit: true });
const noteTables = {
  name: 'notes',
  models: [notes],
  resources: [noteResource],
  migrations: [migration('0001_initial', [createTable('notes', notes.columns)])],
};
const ann: User = { id: uuidv7(), username: 'ann', email: null, is_active: true, is_staff: false, is_superuser: false };
const byHeader: Authenticator = {
  name: 'header',
  securityScheme: {},
  authenticate: () => ({ user: ann, scheme: 'header', scopes: null, credentialId: 'c1' }),
};

const addNote = job('notes.add', {
  input: z.object({ title: z.string() }),
  result: z.object({ count: z.int() }),
  async run({ db, input, commit }) {
    return commit(async (tx) => {
      const own = crudOf(tx, noteResource).as({ user: ann });
      await own.write(tx).create({ title: input.title });
      return { count: (await crudOf(db, noteResource).as({ user: ann }).rows()).length };
    });
  },
});

let later: Promise<void> = Promise.resolve();
class PeopleController extends Controller {
  atomic = route.post('/atomic', { permission: isAuthenticated, atomic: true, status: 204 }, async ({ tx }) => {
    await createUser(tx, { username: 'by-atomic' });
  });
  own = route.post('/own', { permission: isAuthenticated, status: 204 }, async ({ db }) => {
    await db.transaction((tx) => createUser(tx, { username: 'by-own' }));
  });
  outside = route.post('/outside', { permission: isAuthenticated, status: 204 }, async ({ db }) => {
    await createUser(db, { username: 'by-outside' });
  });
  afterwards = route.post('/afterwards', { permission: isAuthenticated, status: 204 }, async ({ db }) => {
    later = delay(100).then(() => createUser(db, { username: 'by-afterwards' })) as Promise<never>;
  });
}

describeDatabases('code without a request at hand', (database) => {
  test('crudOf() works with the database or the transaction of a job, and says what is missing without an app', async () => {
    expect(() => crudOf(database.db, noteResource)).toThrow('crudOf(): no app is open on the database "default".');
    {
      await using _kit = await testApp({ database: database.db, modules: [noteTables, audit(), jobs({ jobs: [addNote] })], mount: {} });
      const started = await database.db.transaction((tx) => startJob(tx, addNote, { title: 'from a job' }, { owner: ann.id }));
      await runDueJobs(database.db);
      const [row] = await database.db.query<{ status: string; title: string; owner_id: string }>(
        'select j.status, n.title, n.owner_id from jobs j, notes n where j.id = $1',
        [started.id],
      );
      expect(row).toEqual({ status: 'succeeded', title: 'from a job', owner_id: ann.id });
      expect(await auditLog(database.db, { action: 'note.created' })).toMatchObject([{ actor_id: ann.id }]);
    }
    expect(() => crudOf(database.db, noteResource)).toThrow('no app is open');
  });

  test('what a handler changes without saying who acts is recorded for the caller of its request', async () => {
    await using kit = await testApp({
      database: database.db,
      authenticators: [byHeader],
      modules: [accounts(), audit()],
      mount: { '/v1': { '/people': PeopleController } },
    });
    const post = (name: string) =>
      kit.inject({ method: 'POST', url: `/v1/people/${name}`, headers: { 'x-request-id': `request-${name}` } });
    for (const name of ['atomic', 'own', 'outside', 'afterwards']) expect((await post(name)).statusCode).toBe(204);
    await later;
    const entries = await auditLog(database.db, { action: 'user.created' });
    const actorOf = (username: string) => {
      const entry = entries.find(({ after }) => (after as { username: string }).username === username);
      return [entry?.actor_name, entry?.credential_id];
    };
    for (const name of ['by-atomic', 'by-own', 'by-outside']) expect(actorOf(name)).toEqual(['ann', 'c1']);
    expect(entries.filter(({ request_id: id }) => id !== null)).toHaveLength(3);
    // The request is over: nobody knows who acts.
    expect(actorOf('by-afterwards')).toEqual([null, null]);
  });

  test('an event has the time of the application, whatever the clock of its database says', async () => {
    const clock = fakeClock(new Date('2031-05-01T12:00:00.000Z'));
    await using _kit = await testApp({ database: database.db, clock, modules: [webhooks()], mount: {} });
    expect(database.db.clock.now().getFullYear()).not.toBe(2031);
    const { id } = await database.db.transaction((tx) => publish(tx, 'order.paid', {}, { broadcast: true }));
    const [event] = await database.db.query<{ timestamp: Date | string }>('select timestamp from webhook_events where id = $1', [id]);
    expect(new Date(event?.timestamp ?? 0)).toEqual(clock.now());
  });
});
