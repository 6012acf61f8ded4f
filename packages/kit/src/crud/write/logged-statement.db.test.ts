import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { Follower, type LiveApp, send, startLive } from '../../../test/crud/live.ts';
import { coreTables } from '../../app/data/migration-modules.ts';
import type { Module } from '../../app/declare/module.ts';
import { createTable, type Database, migration, model, type QueryEvent, softDelete, t, timestamps, versioned } from '../../db/index.ts';
import { migrate } from '../../db/migrations/migrate.ts';
import { isAuthenticated } from '../../permissions/index.ts';
import { describeDatabases } from '../../testing/databases.ts';
import { CrudController, resource } from '../index.ts';

const memos = model('memos', {
  id: t.uuidv7().pk(),
  owner_id: t.uuid().readOnly(),
  title: t.text(80).unique(),
  count: t.bigint().dbDefault(0n),
  price: t.decimal(12, 2).nullable(),
  ratio: t.float().nullable(),
  due_at: t.timestamp().nullable(),
  day: t.date().nullable(),
  done: t.bool().dbDefault(false),
  extra: t.json().nullable(),
  secret: t.text(40).nullable().sensitive(),
  state: t.enum(['open', 'paid']).dbDefault('open'),
  ...timestamps(),
  ...versioned(),
});
const parts = model('parts', { id: t.bigint().pk(), title: t.text(80), ...softDelete() });

const moves = { pay: { from: ['open'], to: 'paid' } } as const;
class MemoController extends CrudController(
  resource(memos, { owner: 'owner_id', version: 'version', state: 'state', transitions: moves }),
  { permission: isAuthenticated, live: true },
) {}
class PartController extends CrudController(resource(parts, { unscoped: true, softDelete: true, input: ['id', 'title'] }), {
  permission: isAuthenticated,
  live: true,
}) {}

const memoModule: Module = {
  name: 'memos',
  models: [memos, parts],
  migrations: [migration('0001_memos', [createTable('memos', memos.columns), createTable('parts', parts.columns)])],
};

describeDatabases('a write of one row that is logged', (database) => {
  let db: Database;
  let live: LiveApp;
  let url: string;
  const statements: string[] = [];
  const follower = new Follower('ann');
  beforeAll(async () => {
    db = await database.open({ onQuery: ({ sql }: QueryEvent) => void statements.push(sql) });
    await migrate(db, [coreTables, memoModule]);
    live = await startLive(db, { mount: { '/v1': { '/memos': MemoController, '/parts': PartController } }, modules: [memoModule] });
    url = live.url.replace('tickets', 'memos');
    await follower.connect(url);
  });
  afterAll(async () => {
    await follower.disconnect();
    await live.app.close();
  });
  beforeEach(async () => {
    // What it has not read yet would be gone.
    await follower.settled(url);
    await db.query('delete from kit_changes');
  });

  type Logged = { readonly key: string; readonly kind: string; readonly prior: Record<string, string | null> | null };
  async function logged(): Promise<Logged[]> {
    const rows = await db.query<Omit<Logged, 'prior'> & { readonly prior: unknown }>(
      'select key, kind, prior from kit_changes order by position',
    );
    return rows.map(({ key, kind, prior }) => ({
      key,
      kind,
      prior: (typeof prior === 'string' ? JSON.parse(prior) : prior) as Logged['prior'],
    }));
  }
  const whole = {
    title: 'one',
    count: '9007199254740993',
    price: '1.50',
    ratio: 0.1,
    due_at: '2026-01-02T03:04:05.678Z',
    day: '2026-01-02',
    done: true,
    extra: { a: [1] },
    secret: 'hunter2',
  };

  test('is in the log once, with the row before it, and comes back as it was written', async () => {
    const { status, body } = await send(url, 'ann', 'POST', whole);
    expect(status).toBe(201);
    const { secret: _, ...shown } = whole;
    expect(body).toMatchObject({ ...shown, version: 1 });
    const { id } = body as { id: string };
    const changed = await send(`${url}/${id}`, 'ann', 'PATCH', { title: 'two', price: '2.00' });
    expect(changed.body).toMatchObject({ ...shown, title: 'two', price: '2.00', version: 2 });
    expect((await send(`${url}/${id}/pay`, 'ann', 'POST')).body).toMatchObject({ state: 'paid', version: 3 });
    expect((await send(`${url}/${id}`, 'ann', 'DELETE')).status).toBe(204);
    const found = await logged();
    expect(found.map(({ key, kind, prior }) => [JSON.parse(key), kind, prior && [prior['title'], prior['state']]])).toEqual([
      [id, 'created', null],
      [id, 'changed', ['one', 'open']],
      [id, 'changed', ['two', 'open']],
      [id, 'changed', ['two', 'paid']],
    ]);
    expect(JSON.stringify(found)).not.toMatch(/hunter2|"secret"|"extra"/);
    await follower.settled(url);
  });

  test('logs nothing when it is refused: another version, another state, another owner, a value that is taken', async () => {
    const { body } = await send(url, 'ann', 'POST', { title: 'kept' });
    const { id } = body as { id: string };
    await follower.settled(url);
    await db.query('delete from kit_changes');
    const stale = await fetch(`${url}/${id}`, {
      method: 'PATCH',
      headers: { 'x-user': 'ann', 'content-type': 'application/json', 'if-match': '"7"' },
      body: '{"title":"x"}',
    });
    expect(stale.status).toBe(412);
    expect((await send(`${url}/${id}`, 'bob', 'PATCH', { title: 'x' })).status).toBe(404);
    expect((await send(`${url}/${id}`, 'bob', 'DELETE')).status).toBe(404);
    expect((await send(url, 'ann', 'POST', { title: 'kept' })).status).toBe(409);
    expect(await logged()).toEqual([]);
    await send(`${url}/${id}/pay`, 'ann', 'POST');
    await follower.settled(url);
    await db.query('delete from kit_changes');
    expect((await send(`${url}/${id}/pay`, 'ann', 'POST')).status).toBe(409);
    expect(await logged()).toEqual([]);
  });

  test('says of columns whose values it does not have only that they changed, and lists without them are told nothing', async () => {
    const { id } = (await send(url, 'ann', 'POST', { title: 'noted', extra: { a: 1 } })).body as { id: string };
    const [named, extra] = [new Follower('ann', '?fields=id,title'), new Follower('ann', '?fields=id,extra')];
    for (const each of [named, extra]) {
      await each.connect(url);
      await each.settled(url);
    }
    const known = (await logged()).length;
    for (const values of [{ extra: { a: 1 }, price: '3.00' }, { secret: 'x' }, { extra: { a: 2 } }, { title: 'noted, too' }])
      expect((await send(`${url}/${id}`, 'ann', 'PATCH', values)).status).toBe(200);
    for (const each of [named, extra, follower]) await each.settled(url);
    expect((await logged()).slice(known).map(({ prior }) => [prior?.['~extra'], prior?.['~secret']])).toEqual([
      ['false', 'false'],
      ['false', 'true'],
      ['true', 'false'],
      ['false', 'false'],
    ]);
    for (const each of [named, extra]) {
      const told = each.log.slice(each.log.findIndex(({ event }) => event === 'ready') + 1);
      expect(told.filter(({ event }) => event === 'upsert')).toHaveLength(1);
      await each.disconnect();
    }
  });

  test('has the version that it replaced, whoever else writes the row at the same time', async () => {
    const { body } = await send(url, 'ann', 'POST', { title: 'raced' });
    const { id } = body as { id: string };
    await follower.settled(url);
    await db.query('delete from kit_changes');
    const titles = Array.from({ length: 24 }, (_, index) => `raced ${index}`);
    const answers = await Promise.all(titles.map((title) => send(`${url}/${id}`, 'ann', 'PATCH', { title })));
    const byVersion = new Map(answers.map(({ body: { version, title } }) => [version as number, title as string]));
    expect([...byVersion.keys()].toSorted((a, b) => a - b)).toEqual(titles.map((_, index) => index + 2));
    const found = await logged();
    expect(found.map(({ prior }) => [Number(prior?.['version']), prior?.['title']])).toEqual(
      titles.map((_, index) => [index + 1, index === 0 ? 'raced' : byVersion.get(index + 1)]),
    );
    await follower.settled(url);
  });

  test('with a key that is a number, and a soft deletion', async () => {
    const partsUrl = live.url.replace('tickets', 'parts');
    const parted = await new Follower('ann').connect(partsUrl);
    expect((await send(partsUrl, 'ann', 'POST', { id: '9007199254740993', title: 'a' })).status).toBe(201);
    await parted.settled(partsUrl);
    expect((await send(`${partsUrl}/9007199254740993`, 'ann', 'DELETE')).status).toBe(204);
    await parted.settled(partsUrl);
    expect((await logged()).map(({ key, kind }) => [key, kind])).toEqual([
      ['"9007199254740993"', 'created'],
      ['"9007199254740993"', 'changed'],
    ]);
    await parted.disconnect();
  });

  test('is logged when it changes a row that has no version, and not when it changes nothing', async () => {
    const partsUrl = live.url.replace('tickets', 'parts');
    await send(partsUrl, 'ann', 'POST', { id: '7', title: 'same' });
    for (const title of ['same', 'other', 'other']) expect((await send(`${partsUrl}/7`, 'ann', 'PATCH', { title })).status).toBe(200);
    expect((await logged()).map(({ kind, prior }) => [kind, prior?.['title']])).toEqual([
      ['created', undefined],
      ['changed', 'same'],
    ]);
  });

  test('is one statement on PostgreSQL, two on SQLite', async () => {
    const count = db.dialect === 'sqlite' ? 2 : 1;
    const written = async (work: () => Promise<unknown>): Promise<string[]> => {
      const from = statements.length;
      await work();
      return statements.slice(from).filter((text) => /^(with|insert|update|delete)\b/.test(text) && /memos/.test(text));
    };
    let id = '';
    expect(
      await written(async () => (id = ((await send(url, 'ann', 'POST', { title: 'single' })).body as { id: string }).id)),
    ).toHaveLength(count);
    expect(await written(() => send(`${url}/${id}`, 'ann', 'PATCH', { title: 'singled' }))).toHaveLength(count);
    expect(await written(() => send(`${url}/${id}`, 'ann', 'DELETE'))).toHaveLength(count);
  });
});
