import { afterAll, beforeAll, expect, test } from 'vitest';
import type { User } from '../../src/auth/index.ts';
import { accounts, accountsOf, createUser, users } from '../../src/contrib/accounts/index.ts';
import { PersonalDataController, personalData } from '../../src/contrib/personal/index.ts';
import { buildNextExport, removeExpired } from '../../src/contrib/personal/exports.ts';
import { createTable, find, insert, list, migration, model, t } from '../../src/db/index.ts';
import { releaseLegalHold, setLegalHold } from '../../src/db/subjects/erasure-state.ts';
import { StartUpError } from '../../src/app/check/start-up-error.ts';
import { describeDatabases, fakeClock } from '../../src/testing/index.ts';
import { testApp, type TestApp } from '../../src/testing/test-app.ts';
import { unzip } from './unzip.ts';

const DAY_MS = 86_400_000;
const notes = model(
  'notes',
  { id: t.uuidv7().pk(), owner_id: t.ref(() => users).person(), text: t.text().personal(), at: t.timestamp() },
  { retention: { after: '90 days', by: 'at', then: 'delete' } },
);
const shop = {
  name: 'shop',
  requires: ['accounts'],
  models: [notes],
  migrations: [migration('0001_initial', [createTable('notes', { ...notes.columns, owner_id: t.ref('users') })])],
};

describeDatabases('people and their own data', (database) => {
  const clock = fakeClock('2030-01-01T00:00:00.000Z');
  let kit: TestApp;
  beforeAll(async () => {
    kit = await testApp({
      database: await database.open({ clock }),
      clock,
      modules: [accounts({ passwordCost: { logN: 4, r: 8, p: 1 } }), personalData({ graceDays: 30, exportDays: 7 }), shop],
      mount: { '/v1': { '/personal-data': PersonalDataController } },
    });
  });
  afterAll(() => kit?.close());
  const person = async (name: string): Promise<User> => {
    const { db } = kit.app;
    const user = await createUser(
      db,
      { username: name, email: `${name}@example.com`, password: 'correct horse battery' },
      accountsOf(db).management('test'),
    );
    await insert(db, notes, { owner_id: user.id, text: `note of ${name}`, at: clock.now() });
    return user;
  };
  const call = async (user: User, method: 'GET' | 'POST' | 'DELETE', path: string) => {
    const { statusCode, rawPayload, body } = await kit.as(user).inject({ method, url: `/v1/personal-data/${path}` });
    return { status: statusCode, rawPayload, json: () => JSON.parse(body) as Record<string, unknown> };
  };
  const running = new AbortController();

  test('an export is written once, can be downloaded for its days, and another person does not see it', async () => {
    const [ada, bob] = [await person('ada'), await person('bob')];
    expect((await call(ada, 'GET', 'export')).status).toBe(404);
    expect((await call(ada, 'POST', 'export')).status).toBe(202);
    expect((await call(ada, 'GET', 'export/archive')).status).toBe(409);
    expect(await buildNextExport(kit.app, 7, running.signal)).toBe(true);
    expect(await buildNextExport(kit.app, 7, running.signal)).toBe(false);
    const state = await call(ada, 'GET', 'export');
    expect(state.json()).toMatchObject({ state: 'ready', expires_at: '2030-01-08T00:00:00.000Z' });
    const { status, rawPayload } = await call(ada, 'GET', 'export/archive');
    expect([status, rawPayload.length]).toEqual([200, state.json()['bytes']]);
    const files = unzip(rawPayload);
    expect(JSON.parse(files.get('notes.jsonl') ?? '')).toMatchObject({ owner_id: ada.id, text: 'note of ada' });
    expect([...files.values()].join()).not.toContain('bob');
    expect((await call(bob, 'GET', 'export/archive')).status).toBe(404);
    clock.advance(7 * DAY_MS + 1);
    expect((await call(ada, 'GET', 'export/archive')).status).toBe(404);
    expect(await removeExpired(kit.app.db)).toBe(1);
    expect(await kit.app.db.query('select number from personal_export_parts')).toEqual([]);
  });

  test('an export of a process that was killed is written by another, and has no part of the first', async () => {
    const ada = await person('cyd');
    await call(ada, 'POST', 'export');
    // A process that claimed it, wrote a part and is gone.
    const { db } = kit.app;
    const attempt = '0192aaaa-0000-7000-8000-000000000000';
    await db.query(`update personal_exports set state = 'running', attempt = $2, leased_until = $3 where user_id = $1`, [
      ada.id,
      attempt,
      new Date(clock.now().getTime() + 60_000),
    ]);
    await db.query('insert into personal_export_parts (user_id, attempt, number, data) values ($1, $2, 1, $3)', [
      ada.id,
      attempt,
      Buffer.from('half'),
    ]);
    expect(await buildNextExport(kit.app, 7, running.signal)).toBe(false);
    clock.advance(61_000);
    expect(await buildNextExport(kit.app, 7, running.signal)).toBe(true);
    expect(unzip((await call(ada, 'GET', 'export/archive')).rawPayload).get('notes.jsonl')).toContain('note of cyd');
  });

  test('an erasure waits for its grace, can be taken back, and a hold refuses it', async () => {
    const ada = await person('dan');
    const { db } = kit.app;
    const subject = { kind: 'person', id: ada.id } as const;
    expect((await call(ada, 'DELETE', 'erasure')).status).toBe(404);
    await db.transaction((tx) => setLegalHold(tx, subject, { reason: 'case 7', by: null }));
    expect((await call(ada, 'POST', 'erasure')).status).toBe(409);
    await db.transaction((tx) => releaseLegalHold(tx, subject));
    const asked = await call(ada, 'POST', 'erasure');
    expect([asked.status, asked.json()['due_at']]).toEqual([202, new Date(clock.now().getTime() + 30 * DAY_MS).toISOString()]);
    expect((await call(ada, 'GET', 'erasure')).json()).toMatchObject({ state: 'waiting' });
    expect((await call(ada, 'DELETE', 'erasure')).status).toBe(204);
    expect((await call(ada, 'GET', 'erasure')).status).toBe(404);
  });

  test('the worker erases a person whose grace is over, and removes rows whose retention is over', async () => {
    const [eve, fay] = [await person('eve'), await person('fay')];
    const { db } = kit.app;
    await insert(db, notes, { owner_id: fay.id, text: 'old', at: new Date(clock.now().getTime() - 60 * DAY_MS) });
    await call(eve, 'POST', 'erasure');
    clock.advance(31 * DAY_MS);
    await kit.app.start();
    await expect.poll(() => find(db, users, eve.id), { timeout: 60_000 }).toBeUndefined();
    await expect.poll(async () => (await list(db, notes, { where: { text: 'old' } })).length, { timeout: 60_000 }).toBe(0);
    expect((await list(db, notes, { where: { owner_id: eve.id } })).length).toBe(0);
    expect((await list(db, notes, { where: { owner_id: fay.id } })).length).toBe(1);
  });
});

test('E038: an app whose models do not let an erasure end does not start', async () => {
  const bills = model('bills', { id: t.uuidv7().pk(), payer_id: t.ref(() => users) });
  const started = testApp({
    database: 'sqlite::memory:',
    modules: [
      accounts(),
      personalData(),
      {
        name: 'bills',
        models: [bills],
        migrations: [migration('0001_initial', [createTable('bills', { ...bills.columns, payer_id: t.ref('users') })])],
      },
    ],
    mount: {},
  });
  await expect(started).rejects.toThrow(StartUpError);
  await expect(started).rejects.toThrow('E038');
});
