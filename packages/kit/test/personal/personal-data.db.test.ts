import { afterAll, beforeAll, expect, test } from 'vitest';
import type { User } from '../../src/auth/index.ts';
import { accounts, accountsOf, createUser, users } from '../../src/contrib/accounts/index.ts';
import { metrics } from '../../src/contrib/metrics/index.ts';
import { PersonalDataController, personalData } from '../../src/contrib/personal/index.ts';
import { buildNextExport, storedExports } from '../../src/contrib/personal/exports.ts';
import { tenants } from '../../src/contrib/tenants/index.ts';
import { createTable, find, insert, list, migration, model, t } from '../../src/db/index.ts';
import { eraseDue } from '../../src/crud/subjects/erase-due.ts';
import type { ExportAttempt } from '../../src/crud/subjects/stored-exports.ts';
import { releaseLegalHold, requestErasure, setLegalHold } from '../../src/db/subjects/erasure-state.ts';
import { erasures } from '../../src/db/subjects/models.ts';
import { StartUpError } from '../../src/app/check/start-up-error.ts';
import { allowAny, isAuthenticated } from '../../src/permissions/index.ts';
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
  beforeErase: (_tx: unknown, _model: unknown, rows: readonly object[]) =>
    rows.some((row) => 'text' in row && row.text === unerasable.text)
      ? Promise.reject(new Error('the store of files is away'))
      : Promise.resolve(),
};
/** A note with this text cannot be erased. */
const unerasable = { text: '' };

describeDatabases('people and their own data', (database) => {
  const clock = fakeClock('2030-01-01T00:00:00.000Z');
  let kit: TestApp;
  beforeAll(async () => {
    kit = await testApp({
      database: await database.open({ clock }),
      clock,
      modules: [
        accounts({ passwordCost: { logN: 4, r: 8, p: 1 } }),
        personalData({ graceDays: 30, exportDays: 7 }),
        metrics({ path: '/metrics', permission: allowAny, process: false }),
        shop,
      ],
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
    expect(await storedExports.removeExpired(kit.app.db)).toBe(1);
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

  test('an erasure that fails, and one that a hold keeps, do not keep others from theirs; it is tried again', async () => {
    const [gil, hal, ivy] = [await person('gil'), await person('hal'), await person('ivy')];
    const { db } = kit.app;
    for (const user of [gil, hal, ivy]) {
      expect((await call(user, 'POST', 'erasure')).status).toBe(202);
      clock.advance(1000);
    }
    unerasable.text = 'note of gil';
    await db.transaction((tx) => setLegalHold(tx, { kind: 'person', id: hal.id }, { reason: 'case 8', by: null }));
    clock.advance(31 * DAY_MS);
    const erase = () => eraseDue(kit.app, 'person', 1);
    const of = async (user: User) => (await list(db, erasures, { where: { subject_id: user.id } }))[0];
    const counted = async () => {
      const { body } = await kit.app.inject('/metrics');
      return ['failing', 'held'].map((of) => Number(new RegExp(`^kit_erasures_${of}\\{kind="person"\\} (\\d+)$`, 'm').exec(body)?.[1]));
    };
    expect(await counted()).toEqual([0, 1]);
    // The first one fails, the second one is held, and there is room for one.
    expect(await erase()).toBe(0);
    expect(await counted()).toEqual([1, 1]);
    // One that failed and is held now does not fail: nothing is tried.
    await db.transaction((tx) => setLegalHold(tx, { kind: 'person', id: gil.id }, { reason: 'case 9', by: null }));
    expect(await counted()).toEqual([0, 2]);
    await db.transaction((tx) => releaseLegalHold(tx, { kind: 'person', id: gil.id }));
    expect(await counted()).toEqual([1, 1]);
    expect(await of(gil)).toMatchObject({ failures: 1, last_error: 'the store of files is away' });
    expect(await erase()).toBe(1);
    expect(await find(db, users, ivy.id)).toBeUndefined();
    expect(await erase()).toBe(0);
    unerasable.text = '';
    clock.advance(60_001);
    expect(await erase()).toBe(1);
    expect(await of(gil)).toMatchObject({ state: 'finished', failures: 0, last_error: null });
    expect(await find(db, users, hal.id)).toBeDefined();
    expect(await counted()).toEqual([0, 1]);
    await db.transaction((tx) => releaseLegalHold(tx, { kind: 'person', id: hal.id }));
    expect(await erase()).toBe(1);
    expect(await counted()).toEqual([0, 0]);
  });

  test('an archive that was written before goes with its person, and one that is under way ends without a trace', async () => {
    const { db } = kit.app;
    const [jan, kim] = [await person('jan'), await person('kim')];
    await call(jan, 'POST', 'export');
    expect(await buildNextExport(kit.app, 7, running.signal)).toBe(true);
    await call(kim, 'POST', 'export');
    const claimed = await storedExports.claimNext(db);
    const erase = async (user: User) => {
      await db.transaction((tx) => requestErasure(tx, { kind: 'person', id: user.id }, { dueAt: clock.now(), by: 'test' }));
      expect(await eraseDue(kit.app, 'person', 1)).toBe(1);
    };
    expect((await db.query('select number from personal_export_parts where user_id = $1', [jan.id])).length).toBeGreaterThan(0);
    await erase(jan);
    await erase(kim);
    await storedExports.write(kit.app, claimed as ExportAttempt, { days: 7, signal: running.signal });
    for (const table of ['personal_exports', 'personal_export_parts'])
      expect(await db.query(`select user_id from ${table} where user_id in ($1, $2)`, [jan.id, kim.id])).toEqual([]);
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

test('E038: nor does one whose models do not let a tenant end', async () => {
  const places = model('places', { id: t.uuidv7().pk(), tenant_id: t.uuid().tenant() });
  const visits = model('visits', { id: t.uuidv7().pk(), place_id: t.ref(() => places) });
  const module = {
    name: 'places',
    models: [places, visits],
    migrations: [
      migration('0001_initial', [
        createTable('places', places.columns),
        createTable('visits', { ...visits.columns, place_id: t.ref('places') }),
      ]),
    ],
  };
  const started = testApp({ database: 'sqlite::memory:', modules: [accounts(), tenants({ create: isAuthenticated }), module], mount: {} });
  await expect(started).rejects.toThrow('A tenant cannot be erased: rows of "visits" refer to rows of "places" with "place_id"');
});
