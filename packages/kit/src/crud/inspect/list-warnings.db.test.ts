import { expect, test } from 'vitest';
import { z } from 'zod';
import { unboundedLists } from '../../app/check/unbounded-lists.ts';
import { createTable, migration, model, t } from '../../db/index.ts';
import { Controller } from '../../http/compile/controller.ts';
import { route } from '../../http/declare/route.ts';
import { allowAny, isAuthenticated } from '../../permissions/index.ts';
import { describeDatabases } from '../../testing/databases.ts';
import { testApp } from '../../testing/test-app.ts';
import { CrudController, resource } from '../index.ts';
import { listWarnings } from './list-warnings.ts';

const indexes = [{ columns: ['owner_id'] }];
const large = model('large', { id: t.uuidv7().pk(), title: t.text(40), rank: t.int().dbDefault(0) });
const small = model('small', { id: t.uuidv7().pk(), title: t.text(40) });
const owned = model('owned', { id: t.uuidv7().pk(), owner_id: t.uuid().readOnly(), title: t.text(40) }, { indexes });
const options = { permission: isAuthenticated, filters: { title: ['eq', 'contains'] }, search: ['title'] } as const;
class LargeController extends CrudController(resource(large, { unscoped: true }), { ...options, ordering: { by: ['rank'] } }) {}
class SmallController extends CrudController(resource(small, { unscoped: true }), options) {}
class OwnedController extends CrudController(resource(owned, { owner: 'owner_id' }), options) {}

const tables = migration('0001_initial', [
  createTable('large', large.columns),
  createTable('small', small.columns),
  createTable('owned', owned.columns, { indexes }),
]);

describeDatabases('lists that read a whole table', (database) => {
  test('W008 and W009: the size of the table decides what kit doctor warns of', async () => {
    await using app = await testApp({
      database: database.db,
      mount: { '/v1': { '/large': LargeController, '/small': SmallController, '/owned': OwnedController } },
      modules: [{ name: 'tables', models: [large, small, owned], migrations: [tables] }],
    });
    const isPostgres = database.db.dialect === 'postgres';
    const numbers = isPostgres
      ? 'select gen_random_uuid() as id from generate_series(1, 10000)'
      : "with recursive n(i) as (select 1 union all select i + 1 from n where i < 10000) select printf('01890000-0000-7000-8000-%012d', i) as id from n";
    await database.db.execute(`insert into large (id, title) select n.id, 'x' from (${numbers}) n`);
    await database.db.execute(`insert into owned (id, owner_id, title) select n.id, n.id, 'x' from (${numbers}) n`);
    await database.db.execute('analyze');
    const found = (await listWarnings(app.app)).map(({ resource, fault }) => `${resource} ${fault.id} ${fault.message}`);
    expect(found.filter((line) => line.includes('W009'))).toEqual([
      'large W009 looking into title reads every row of large (10000 rows or more).',
    ]);
    const unindexed = found.filter((line) => line.includes('W008'));
    // SQLite keeps no size that is known without counting: it is told of small tables too.
    const size = isPostgres ? ' (about 10000 rows)' : '';
    expect(unindexed[0]).toContain(`large W008 no index of large${size} serves title, the column of a filter.`);
    expect(unindexed[1]).toContain(`large W008 no index of large${size} serves rank, the column of an ordering.`);
    expect(unindexed.map((line) => line.split(' ')[0])).toEqual(['large', 'large', ...(isPostgres ? ['owned'] : ['small', 'owned'])]);
  });
});

test('W012: a list by hand without a limit is named; one with a limit, a maximum or of plain values is not', async () => {
  const Row = z.object({ id: z.string() });
  const many = z.object({ items: z.array(Row) });
  class HandController extends Controller {
    all = route.get('/all', { permission: allowAny, response: z.array(Row) }, () => []);
    page = route.get('/page', { permission: allowAny, response: many }, () => ({ items: [] }));
    limited = route.get(
      '/limited',
      { permission: allowAny, query: z.object({ limit: z.coerce.number().optional() }), response: many },
      () => ({
        items: [],
      }),
    );
    bounded = route.get('/bounded', { permission: allowAny, response: z.array(Row).max(10) }, () => []);
    names = route.get('/names', { permission: allowAny, response: z.array(z.string()) }, () => []);
    one = route.get('/one', { permission: allowAny, response: Row }, () => ({ id: '1' }));
  }
  await using app = await testApp({ mount: { '/v1': { '/hand': HandController } } });
  expect(unboundedLists(app.app.routes).map(({ id, message }) => `${id} ${message}`)).toEqual([
    'W012 HandController.all (GET /v1/hand/all) returns a list without a limit.',
    'W012 HandController.page (GET /v1/hand/page) returns a list without a limit.',
  ]);
});
