import { mkdtempSync, rmSync } from 'node:fs';
import { Agent, get } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Authenticator } from '../../auth/request/authenticator.ts';
import { createTable, type Database, migration, model, openDatabase, t } from '../../db/index.ts';
import { engineOf } from '../../db/engine/handle.ts';
import type { SqliteEngine } from '../../db/engine/sqlite/engine.ts';
import { HealthController } from '../../middleware/index.ts';
import { isAuthenticated } from '../../permissions/index.ts';
import { testApp, type TestApp } from '../../testing/index.ts';
import { scaled } from '../../../../../test/provision/scale.ts';
import { count, CrudController, one, resource, sum } from '../index.ts';

const ROWS = scaled(30_000, 200_000);
const ANN = '0190a1b2-0000-7000-8000-00000000000a';
const BOB = '0190a1b2-0000-7000-8000-00000000000b';
/** Of Bob. */
const KEY = '0190a1b2-0000-7000-8000-0000000000ff';
const PROJECT = '0190a1b2-0000-7000-8000-0000000000aa';

const projects = model('projects', { id: t.uuidv7().pk(), name: t.text(40) });
const columns = {
  id: t.uuidv7().pk(),
  owner_id: t.uuid().readOnly(),
  project_id: t.ref(() => projects),
  title: t.text(100),
  body: t.text(),
  rank: t.int(),
};
const indexes = [{ columns: ['owner_id', '-id'] }];
const notes = model('notes', columns, { indexes });
const projectResource = resource(projects, { unscoped: true });
const noteResource = resource(notes, {
  owner: 'owner_id',
  relations: { project: one(() => projects, 'project_id') },
});
const options = {
  permission: isAuthenticated,
  filters: { title: ['contains'], 'project.name': ['contains'] },
  search: ['title', 'body'],
  ordering: { by: ['title'] },
  stats: { by: ['rank'], metrics: { rows: count(), ranks: sum('rank') } },
  export: { formats: ['jsonl'], rowsMax: 1_000_000 },
} as const;
class NotesController extends CrudController(noteResource, options) {}
class CountedController extends CrudController(noteResource, { ...options, page: { count: 'exact' } }) {}
class ProjectsController extends CrudController(projectResource, { permission: isAuthenticated }) {}

const byHeader: Authenticator = {
  name: 'header',
  securityScheme: {},
  authenticate: ({ headers }) =>
    headers['x-user'] === undefined
      ? null
      : {
          user: { id: String(headers['x-user']), username: 'u', email: null, is_active: true, is_staff: false, is_superuser: false },
          scheme: 'header',
          scopes: null,
        },
};

/** All but the last are in every row. */
const WORDS = 'name of the row some longer text about nothing-of-this';

const slow: [string, string][] = [
  ['a search without a match', `/v1/notes?search=${WORDS.replaceAll(' ', '+')}`],
  ['contains', '/v1/notes?title__contains=nothing-of-this'],
  ['an order without an index', '/v1/notes?ordering=title'],
  ['a count', '/v1/counted?limit=1'],
  ['statistics', '/v1/notes/stats?group_by=rank'],
  ['a filter of a relation', '/v1/notes?project__name__contains=nothing-of-this'],
  ['an export', '/v1/notes/export?format=jsonl'],
];

describe('reads that may be long on SQLite', () => {
  let folder: string;
  let database: Database;
  let kit: TestApp;
  let address: string;
  const agent = new Agent({ keepAlive: true });

  const timed = (path: string, user: string, signal?: AbortSignal) => {
    const began = performance.now();
    return new Promise<{ readonly status: number; readonly text: string; readonly ms: number }>((done, failed) => {
      get(`${address}${path}`, { headers: { 'x-user': user }, agent: signal === undefined ? agent : false, signal }, (message) => {
        let text = '';
        message.setEncoding('utf8');
        message.on('data', (chunk: string) => (text = (text + chunk).slice(0, 1_000)));
        message.on('error', failed);
        message.on('end', () => done({ status: message.statusCode ?? 0, text, ms: performance.now() - began }));
      }).on('error', failed);
    });
  };
  const pids = () => (engineOf(database) as SqliteEngine).readerPids;

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'kit-long-reads-'));
    database = await openDatabase(`sqlite:${join(folder, 'app.db')}`);
    kit = await testApp({
      database,
      authenticators: [byHeader],
      modules: [
        {
          name: 'notes',
          models: [projects, notes],
          migrations: [
            migration('0001_notes', [
              createTable('projects', projects.columns),
              createTable('notes', { ...columns, project_id: t.ref('projects') }, { indexes }),
            ]),
          ],
        },
      ],
      mount: {
        '/': { '/': new HealthController() },
        '/v1': { '/notes': NotesController, '/counted': CountedController, '/projects': ProjectsController },
      },
    });
    await database.query('insert into projects (id, name) values ($1, $2)', [PROJECT, 'the project']);
    const text = `with recursive each(n) as (select 1 union all select n + 1 from each where n < ${ROWS})
      insert into notes (id, owner_id, project_id, title, body, rank)
      select printf('0190a1b2-0000-7000-9000-%012x', n), $1, $2, 'name of the row ' || (n * 7919 % ${ROWS}), 'some longer text about things ' || n, n % 10 from each`;
    await database.query(text, [ANN, PROJECT]);
    await database.query("insert into notes (id, owner_id, project_id, title, body, rank) values ($1, $2, $3, 'mine', 'x', 1)", [
      KEY,
      BOB,
      PROJECT,
    ]);
    address = await kit.listen();
  });
  afterAll(async () => {
    agent.destroy();
    await kit.close();
    await database.close();
    rmSync(folder, { recursive: true, force: true });
  });

  /** Health and Bob's row, one after the other, while `work` goes on. */
  const probes = async (work: Promise<unknown>) => {
    const found = { health: [] as number[], rows: [] as number[] };
    const state = { isOver: false };
    const over = work.finally(() => (state.isOver = true));
    while (!state.isOver) {
      const health = await timed('/live', BOB);
      const row = await timed(`/v1/notes/${KEY}`, BOB);
      expect([health.status, row.status]).toEqual([200, 200]);
      found.health.push(health.ms);
      found.rows.push(row.ms);
    }
    await over;
    return { health: p99(found.health), rows: p99(found.rows) };
  };

  test('records by their keys, pages that an index serves, and writes start no process', async () => {
    for (const path of [`/v1/notes/${KEY}`, '/v1/notes', '/v1/notes?limit=50', '/v1/projects', `/v1/projects/${PROJECT}`])
      expect(await timed(path, BOB)).toMatchObject({ status: 200 });
    const page = JSON.parse((await kit.inject({ url: '/v1/notes?limit=2', headers: { 'x-user': ANN } })).body) as { next: string };
    expect((await kit.inject({ url: `/v1/notes${page.next}`, headers: { 'x-user': ANN } })).statusCode).toBe(200);
    const made = await kit.inject({ method: 'POST', url: '/v1/projects', headers: { 'x-user': BOB }, payload: { name: 'another' } });
    expect(made.statusCode).toBe(201);
    expect(pids()).toEqual([]);
  });

  test.each(slow)('%s delays neither health checks nor the row of another user', async (_name, path) => {
    const quiet = await probes(Promise.all([1, 2, 3].map(() => timed('/v1/notes', BOB))));
    const began = performance.now();
    const attack = Promise.all([1, 2].map(() => timed(path, ANN)));
    const found = await probes(attack);
    for (const { status, text } of await attack) expect(status === 200 || text.includes('statement_timeout')).toBe(true);
    const lasted = performance.now() - began;
    expect(pids().length).toBeGreaterThan(0);
    // A busy machine slows all three: what blocks the event loop takes as long as the attack.
    expect(found.health).toBeLessThanOrEqual(Math.max(100, 3 * quiet.health, lasted / 4));
    expect(found.rows).toBeLessThanOrEqual(Math.max(3 * quiet.rows + 250, lasted / 4));
  });

  test('a search gives the rows that it gives in this process', async () => {
    const own = await database.query<{ id: string }>(
      "select id from notes where owner_id = $1 and title like '%row 77%' order by id desc limit 50",
      [ANN],
    );
    const { body } = await kit.inject({ url: '/v1/notes?title__contains=ROW+77&limit=50', headers: { 'x-user': ANN } });
    expect((JSON.parse(body) as { items: { id: string }[] }).items.map(({ id }) => id)).toEqual(own.map(({ id }) => id));
  });

  test('a search that follows a write sees it', async () => {
    for (let round = 0; round < 20; round += 1) {
      const name = `written-${round}`;
      const payload = { project_id: PROJECT, title: name, body: 'x', rank: 1 };
      expect((await kit.inject({ method: 'POST', url: '/v1/notes', headers: { 'x-user': BOB }, payload })).statusCode).toBe(201);
      const { body } = await kit.inject({ url: `/v1/notes?search=${name}`, headers: { 'x-user': BOB } });
      expect((JSON.parse(body) as { items: unknown[] }).items).toHaveLength(1);
    }
  });

  test('clients that go away leave readers that serve the next', async () => {
    for (let round = 0; round < 10; round += 1) {
      const left = new AbortController();
      const read = timed(slow[round % slow.length]?.[1] ?? '', ANN, left.signal).catch(() => 'left');
      await timed('/live', BOB);
      left.abort();
      await read;
    }
    expect(await timed('/v1/notes?search=mine', BOB)).toMatchObject({ status: 200 });
    await expect.poll(() => pids().length).toBeLessThanOrEqual(4);
  });
});

function p99(values: number[]): number {
  return values.sort((a, b) => a - b)[Math.floor(values.length * 0.99)] ?? 0;
}
