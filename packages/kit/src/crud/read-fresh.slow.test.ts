import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { freePort } from '../../../../test/provision/free-port.ts';
import { startPostgresServer, type PostgresServer } from '../../../../test/provision/postgres-server.ts';
import type { AppOptions } from '../app/declare/options.ts';
import type { Authenticator } from '../auth/request/authenticator.ts';
import { grants, objectActions, objectGrants } from '../contrib/grants/index.ts';
import { createTable, migration, model, openDatabase, t, type Database } from '../db/index.ts';
import { Controller, route } from '../index.ts';
import { HealthController, responseCache } from '../middleware/index.ts';
import { allowAny, isAuthenticated } from '../permissions/index.ts';
import { createPostgresDatabase, testApp, type DatabasePlace, type TestApp } from '../testing/index.ts';
import { count, CrudController, one, resource } from './index.ts';

const teams = model('teams', { id: t.int().pk(), owner: t.text(20) });
const ofNotes = { id: t.int().pk(), owner: t.text(20).readOnly(), team_id: t.ref('teams', { type: t.int() }), title: t.text(40) };
const notes = model('notes', { ...ofNotes, team_id: t.ref(() => teams, { type: t.int() }) });
const teamResource = resource(teams, { unscoped: true });
const options = {
  permission: isAuthenticated,
  readFrom: 'replica',
  filters: { title: ['eq'] },
  stats: { metrics: { notes: count() } },
  export: ['jsonl'],
} as const;
class Teams extends CrudController(teamResource, { permission: isAuthenticated }) {}
class Notes extends CrudController(resource(notes, { owner: 'owner', relations: { team: one(() => teams, 'team_id') } }), options) {}
const byTeam = resource(model('shared_notes', notes.columns), {
  rows: ({ user }) => ({ team: { is: { owner: user?.id ?? '' } } }),
  relations: { team: one(() => teams, 'team_id') },
});
class SharedNotes extends CrudController(byTeam, { ...options, operations: { create: false } }) {}
class Reports extends Controller {
  where = route.get('/', { permission: allowAny, readFrom: 'replica' }, async ({ db, reply }) => {
    const [row] = await db.query<{ standby: boolean }>('select pg_is_in_recovery() as standby');
    reply.header('x-standby', String(row?.standby));
  });
}

const byHeader: Authenticator = {
  name: 'header',
  securityScheme: {},
  authenticate: ({ headers }) => {
    const { user: id } = headers;
    const user = { id: String(id), username: String(id), email: null, is_active: true, is_staff: false, is_superuser: false };
    return id === undefined ? null : { user, scheme: 'header', scopes: null };
  },
};

const tables = ['teams', 'notes', 'shared_notes'] as const;
const AN_HOUR = 3_600_000;
const SOON = { timeout: 60_000, interval: 50 };

describe('readFrom with a standby', () => {
  let server: PostgresServer;
  let replica: { readonly url: string; stop(): Promise<void> };
  let place: DatabasePlace;
  let primary: Database;
  let standby: Database;
  let kit: TestApp | undefined;
  const urlOn = (url: string): string => Object.assign(new URL(url), { pathname: new URL(place.url).pathname }).href;

  beforeAll(async () => {
    server = await startPostgresServer();
    place = await createPostgresDatabase(server.url);
    primary = await openDatabase(place.url);
    await primary.query('create table teams (id integer primary key, owner text)');
    for (const table of tables.slice(1))
      await primary.query(`create table ${table} (id integer primary key, owner text, team_id integer, title text)`);
    await primary.query(`insert into teams values (1, 'ann')`);
    for (const table of tables.slice(1)) await primary.query(`insert into ${table} values (1, 'ann', 1, 'old'), (2, 'bob', 1, 'old')`);
    replica = await server.standby();
    standby = await openDatabase(urlOn(replica.url), { name: 'replica' });
  });
  afterEach(async () => {
    await kit?.close();
    kit = undefined;
    await standby.query('select pg_wal_replay_resume()').catch(() => undefined);
  });
  afterAll(async () => {
    await standby?.close();
    await primary?.close();
    await server?.stop();
  });

  async function start(more: Partial<AppOptions> & { readonly replicaUrl?: string } = {}): Promise<TestApp> {
    const { replicaUrl = urlOn(replica.url), ...given } = more;
    kit = await testApp({
      database: { default: place.url, replica: replicaUrl },
      replicaLagMsMax: AN_HOUR,
      authenticators: [byHeader],
      resources: [teamResource],
      mount: {
        '/v1': { '/teams': Teams, '/notes': Notes, '/shared': SharedNotes, '/reports': Reports },
        '/': { '/health': HealthController },
      },
      ...given,
    });
    return kit;
  }

  const ofAnn = { user: 'ann' };
  const isStandby = async (app: TestApp, headers: Record<string, string> = ofAnn): Promise<boolean> =>
    (await app.inject({ url: '/v1/reports', headers })).headers['x-standby'] === 'true';
  const untilRead = (app: TestApp): Promise<void> => vi.waitFor(async () => expect(await isStandby(app)).toBe(true), SOON);

  /** What the primary says from now on is not on the standby. */
  async function apart(title: string): Promise<void> {
    await standby.query('select pg_wal_replay_pause()');
    await vi.waitFor(
      async () => expect(await standby.query('select pg_get_wal_replay_pause_state() as state')).toEqual([{ state: 'paused' }]),
      SOON,
    );
    await primary.query('update notes set title = $1', [title]);
    await primary.query('update shared_notes set title = $1', [title]);
  }
  const titleOnStandby = async (): Promise<unknown> =>
    (await standby.query<{ title: string }>('select title from notes where id = 1'))[0]?.title;

  test('lists, QUERY, statistics and exports are read there while it is fresh; records by their key are not', async () => {
    const app = await start();
    await untilRead(app);
    const old = await titleOnStandby();
    await apart('apart 1');
    const url = '/v1/notes';
    expect((await app.inject({ url, headers: ofAnn })).json()).toMatchObject({ items: [{ id: 1, title: old }] });
    const query = await app.inject({ method: 'POST', url: `${url}/query`, headers: ofAnn, payload: { where: { title: old } } });
    expect(query.json()).toMatchObject({ items: [{ id: 1 }] });
    expect((await app.inject({ url: `${url}/stats?title=${String(old)}`, headers: ofAnn })).json()).toMatchObject({
      items: [{ notes: 1 }],
    });
    expect((await app.inject({ url: `${url}/export`, headers: ofAnn })).payload).toContain(`"title":"${String(old)}"`);
    expect((await app.inject({ url: `${url}/1`, headers: ofAnn })).json()).toMatchObject({ title: 'apart 1' });
  });

  test('rows that another table decides about are read from the primary, so that no right is older than the request', async () => {
    const app = await start();
    await untilRead(app);
    await apart('apart 2');
    expect((await app.inject({ url: '/v1/shared', headers: ofAnn })).json()).toMatchObject({
      items: [{ title: 'apart 2' }, { title: 'apart 2' }],
    });
    await primary.query(`update teams set owner = 'eve'`);
    onTestFinished(() => void primary.query(`update teams set owner = 'ann'`));
    expect((await app.inject({ url: '/v1/shared', headers: ofAnn })).json()).toMatchObject({ items: [] });
  });

  test('who wrote reads what was written; others may read the standby', async () => {
    const app = await start();
    await untilRead(app);
    const old = await titleOnStandby();
    await apart('apart 3');
    expect((await app.inject({ method: 'PATCH', url: '/v1/notes/1', headers: ofAnn, payload: { title: 'mine' } })).statusCode).toBe(200);
    expect((await app.inject({ url: '/v1/notes', headers: ofAnn })).json()).toMatchObject({ items: [{ title: 'mine' }] });
    expect((await app.inject({ url: '/v1/notes', headers: { user: 'bob' } })).json()).toMatchObject({ items: [{ title: old }] });
    // Only as long as the standby may be behind.
    await kit?.close();
    await standby.query('select pg_wal_replay_resume()');
    const impatient = await start({ replicaLagMsMax: 2_000 });
    await impatient.inject({ method: 'PATCH', url: '/v1/notes/1', headers: ofAnn, payload: { title: 'mine again' } });
    expect(await isStandby(impatient)).toBe(false);
    await untilRead(impatient);
  });

  test('one that is further behind than it may be is not read, until it has caught up', async () => {
    const app = await start({ replicaLagMsMax: 1_000 });
    await untilRead(app);
    await apart('apart 4');
    await vi.waitFor(async () => expect(await isStandby(app)).toBe(false), SOON);
    await delay(1_500);
    for (let n = 0; n < 20; n++)
      expect((await app.inject({ url: '/v1/notes', headers: ofAnn })).json()).toMatchObject({ items: [{ title: 'apart 4' }] });
    await standby.query('select pg_wal_replay_resume()');
    await untilRead(app);
  });

  test('a primary that nobody writes to leaves its standby fresh', async () => {
    const app = await start({ replicaLagMsMax: 1_000 });
    await untilRead(app);
    await delay(1_500);
    await untilRead(app);
  });

  test('without the standby the app starts, is ready, and reads the primary', async () => {
    const app = await start({ replicaUrl: `postgres://kit@127.0.0.1:${await freePort()}/none` });
    expect((await app.inject('/health/ready')).statusCode).toBe(200);
    for (let n = 0; n < 5; n++) {
      expect((await app.inject({ url: '/v1/notes', headers: ofAnn })).statusCode).toBe(200);
      expect(await isStandby(app)).toBe(false);
      await delay(300);
    }
  });

  test('another database than a copy of the primary is never read', async () => {
    const other = await startPostgresServer();
    onTestFinished(() => other.stop());
    const app = await start({ replicaUrl: other.url });
    for (let n = 0; n < 5; n++) {
      expect((await app.inject({ url: '/v1/notes', headers: ofAnn })).statusCode).toBe(200);
      await delay(300);
    }
  });

  // The last one: it ends the standby.
  test('a standby that goes away while it is read costs no request', async () => {
    const app = await start();
    await untilRead(app);
    await replica.stop();
    for (let n = 0; n < 5; n++) expect((await app.inject({ url: '/v1/notes', headers: ofAnn })).statusCode).toBe(200);
    expect((await app.inject('/health/ready')).statusCode).toBe(200);
  });
});

describe('readFrom', () => {
  const base = {
    database: { default: 'sqlite::memory:', replica: 'sqlite::memory:' },
    authenticators: [byHeader],
    modules: [
      {
        name: 'notes',
        models: [teams, notes],
        migrations: [migration('0001_initial', [createTable('teams', teams.columns), createTable('notes', ofNotes)])],
      },
    ],
    resources: [teamResource],
    mount: { '/v1': { '/notes': Notes } },
  } satisfies AppOptions;

  test('on SQLite reads the database itself', async () => {
    const app = await testApp(base);
    onTestFinished(() => app.close());
    expect((await app.inject({ url: '/v1/notes', headers: { user: 'ann' } })).json()).toMatchObject({ items: [] });
  });

  const get = { permission: allowAny, readFrom: 'replica' } as const;
  class Writes extends Controller {
    make = route.post('/', { ...get, csrf: false, throttles: [] }, () => undefined);
  }
  class Reads extends Controller {
    read = route.get('/', get, () => undefined);
  }
  class InTransaction extends Controller {
    read = route.get('/', { ...get, atomic: true }, () => undefined);
  }
  class Misspelt extends Controller {
    read = route.get('/', { ...get, readFrom: 'replika' }, () => undefined);
  }
  class OfPrimary extends Controller {
    read = route.get('/', { ...get, readFrom: 'default' }, () => undefined);
  }

  const noteActions = objectActions(notes, { actions: ['view', 'change', 'delete'] });
  class Granted extends CrudController(resource(notes, { owner: 'owner', access: grants(notes) }), options) {}

  test.each([
    [
      'rows that grants decide about',
      { modules: [...base.modules, objectGrants({ objects: [noteActions] })], mount: { '/v1': { '/x': Granted } } },
      /has readFrom, but grants decide about its rows/,
    ],
    [
      'a database that the app does not have',
      { mount: { '/v1': { '/x': Misspelt } } },
      /readFrom is "replika", a database that the app does not have/,
    ],
    [
      'the database that the app writes to',
      { mount: { '/v1': { '/x': OfPrimary } } },
      /readFrom is "default", a database that the app writes to/,
    ],
    ['a route that writes', { mount: { '/v1': { '/x': Writes } } }, /readFrom is for reads, and this is POST/],
    ['a route with a transaction', { mount: { '/v1': { '/x': InTransaction } } }, /readFrom is for reads without a transaction/],
    [
      'responses that are kept',
      { mount: { '/v1': { '/x': Reads } }, middleware: [responseCache({ routes: () => true })] },
      /responses that are kept/,
    ],
  ] as const)('is a fault at start-up with %s', async (_, given, message) => {
    await expect(testApp({ ...base, ...given })).rejects.toThrow(message);
  });
});
