import { afterAll, beforeAll, expect, test } from 'vitest';
import { people, startShop, type ShopApp } from '../../test/crud/shop.ts';
import { createTable, insert, migration, model, t } from '../db/index.ts';
import { all, hasRule, isAuthenticated, isOwner } from '../permissions/index.ts';
import { describeDatabases } from '../testing/databases.ts';
import { CrudController, resource } from './index.ts';

const papers = model('papers', { id: t.uuidv7().pk(), owner_id: t.uuid().readOnly(), code: t.text(20).unique(), title: t.text(20) });
const paperResource = resource(papers, {
  rows: () => true,
  hooks: { create: async ({ input, user }, next) => next({ ...input, owner_id: user!.id }) },
});
const isMine = hasRule(({ user }, row) => (row === undefined ? 'unknown' : (row as { owner_id: string }).owner_id === user?.id), {
  rows: ({ user }) => (user === null ? false : { owner_id: user.id }),
});
const options = {
  bulk: { create: true, update: true, destroy: true, mode: 'partial' },
  import: { formats: ['csv', 'jsonl'], by: 'code' },
  meta: true,
} as const;
class OwnedController extends CrudController(paperResource, { ...options, permission: all(isAuthenticated, isOwner()) }) {}
class RuledController extends CrudController(paperResource, { ...options, permission: all(isAuthenticated, isMine) }) {}

describeDatabases('a permission about the object', (database) => {
  let app: ShopApp;
  let foreign: string;
  beforeAll(async () => {
    app = await startShop({
      database: database.db,
      mount: { '/v1': { '/owned': OwnedController, '/ruled': RuledController } },
      modules: [{ name: 'papers', models: [papers], migrations: [migration('0001_initial', [createTable('papers', papers.columns)])] }],
    });
    foreign = (await insert(database.db, papers, { owner_id: people.bob.id, code: 'foreign', title: 'of bob' })).id;
  });
  afterAll(() => app.close());
  const send = async (path: string, payload: string, type: string) => {
    const headers = { 'x-user': 'ann', 'content-type': type };
    const response = await app.inject({ method: 'POST', url: `/v1/${path}`, headers, payload });
    return { status: response.statusCode, body: response.json() };
  };
  const titles = () => database.db.query('select code, title from papers order by code');

  test.each(['owned', 'ruled'])('/meta describes to each caller who has credentials: %s', async (path) => {
    expect((await app.call('ann', 'GET', `${path}/meta`)).body).toMatchObject({ name: 'paper', key: 'id' });
    expect((await app.inject({ url: `/v1/${path}/meta` })).statusCode).toBe(401);
  });

  test.each(['owned', 'ruled'])('a partial bulk request is 207, also where no item passes: %s', async (path) => {
    const missing = '00000000-0000-7000-8000-00000000ffff';
    for (const [name, body, statuses] of [
      ['bulk-update', { items: [{ id: foreign, title: 'taken' }, { id: missing }] }, [403, 404]],
      ['bulk-update', { items: [{ id: missing, title: 'x' }] }, [404]],
      ['bulk-delete', { ids: [foreign, missing] }, [403, 404]],
      ['bulk', { items: [{ code: 'x'.repeat(21), title: 'too long' }] }, [422]],
    ] as const) {
      const answer = await app.call('ann', 'POST', `${path}/${name}`, body);
      expect([name, answer.status, answer.headers['x-bulk-failed']]).toEqual([name, 207, String(statuses.length)]);
      expect(answer.body.results.map(({ status }: { status: number }) => status)).toEqual(statuses);
    }
    const mixed = await app.call('ann', 'POST', `${path}/bulk`, {
      items: [
        { code: 'mine', title: 'a' },
        { code: 'foreign', title: 'b' },
      ],
    });
    expect([mixed.status, mixed.body.results.map(({ status }: { status: number }) => status)]).toEqual([207, [201, 409]]);
    expect(await titles()).toEqual([
      { code: 'foreign', title: 'of bob' },
      { code: 'mine', title: 'a' },
    ]);
    await database.db.query("delete from papers where code = 'mine'");
  });

  test.each(['owned', 'ruled'])(
    'an import without rows is 201 with 0, and one with a row of another owner is refused: %s',
    async (path) => {
      for (const [payload, type] of [
        ['code,title\r\n', 'text/csv'],
        ['', 'application/x-ndjson'],
      ] as const)
        for (const query of ['', '?mode=upsert', '?dry_run=true']) {
          const { status, body } = await send(`${path}/import${query}`, payload, type);
          expect([query, status, body.created, body.updated]).toEqual([query, query === '?dry_run=true' ? 200 : 201, 0, 0]);
        }
      const taken = await send(`${path}/import?mode=upsert`, 'code,title\r\nforeign,taken\r\n', 'text/csv');
      expect(taken.status).toBe(403);
      expect(await titles()).toEqual([{ code: 'foreign', title: 'of bob' }]);
    },
  );

  test('none of it is logged as an error', () => {
    expect(app.records.filter(({ level }) => level >= 50)).toEqual([]);
  });
});
