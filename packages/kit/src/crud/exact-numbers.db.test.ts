import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { type Called, startShop, type ShopApp } from '../../test/crud/shop.ts';
import { createTable, migration, model, t } from '../db/index.ts';
import { Controller } from '../http/compile/controller.ts';
import { route } from '../http/declare/route.ts';
import { isAuthenticated } from '../permissions/index.ts';
import { describeDatabases } from '../testing/databases.ts';
import { CrudController, many, one, resource } from './index.ts';

const boxes = model('boxes', {
  id: t.uuidv7().pk(),
  code: t.text(20).unique(),
  data: t.json().nullable(),
  typed: t.json(z.object({ n: z.number() })).nullable(),
  ratio: t.float().nullable(),
  amount: t.int().nullable(),
});
const parts = model('parts', { id: t.uuidv7().pk(), box_id: t.ref(() => boxes), data: t.json().nullable() });
const partResource = resource(parts, { unscoped: true, relations: { box: one(() => boxes, 'box_id') } });
const boxResource = resource(boxes, {
  unscoped: true,
  relations: { parts: many(() => parts, 'box_id', { limit: 5 }) },
  nested: { parts: { input: ['data'], max: 5 } },
});
const options = {
  permission: isAuthenticated,
  filters: { ratio: ['gte'] },
  import: { formats: ['csv', 'jsonl'], by: 'code' },
} as const;
class BoxController extends CrudController(boxResource, { ...options, bulk: { create: true, update: true } }) {}
class PartialController extends CrudController(boxResource, { ...options, bulk: { create: true, update: true, mode: 'partial' } }) {}
class AnyController extends Controller {
  any = route.post('/', { permission: isAuthenticated, body: z.object({ input: z.any() }) }, async () => undefined);
}

const BIG = '9007199254740993';

describeDatabases('numbers that JSON does not keep', (database) => {
  let app: ShopApp;
  let id: string;
  beforeAll(async () => {
    app = await startShop({
      database: database.db,
      mount: { '/v1': { '/boxes': BoxController, '/partial': PartialController, '/any': AnyController } },
      modules: [
        {
          name: 'boxes',
          models: [boxes, parts],
          resources: [partResource],
          migrations: [
            migration('0001_initial', [
              createTable('boxes', boxes.columns),
              createTable('parts', { ...parts.columns, box_id: t.ref('boxes') }),
            ]),
          ],
        },
      ],
    });
    ({ id } = (await app.call('ann', 'POST', 'boxes', { code: 'first', data: { n: 1 } })).body);
  });
  afterAll(() => app.close());

  const send = async (method: string, path: string, payload: string, type = 'application/json'): Promise<Called> => {
    const response = await app.inject({
      method: method as 'POST',
      url: `/v1/${path.replace(':id', id)}`,
      headers: { 'x-user': 'ann', 'content-type': type },
      payload: payload.replace(':id', id),
    });
    return { status: response.statusCode, body: response.json(), text: response.body, headers: response.headers };
  };

  test.each([
    ['POST', 'boxes', `{"code":"a","data":{"n":${BIG}}}`, ['body', 'data', 'n']],
    ['POST', 'boxes', `{"code":"a","data":[1,[-${BIG}]]}`, ['body', 'data', 1, 0]],
    ['POST', 'boxes', `{"code":"a","data":${BIG}}`, ['body', 'data']],
    ['POST', 'boxes', `{"code":"a","data":12345678901234567890.0}`, ['body', 'data']],
    ['POST', 'boxes', `{"code":"a","typed":{"n":${BIG}}}`, ['body', 'typed', 'n']],
    ['POST', 'boxes', `{"code":"a","ratio":${BIG}}`, ['body', 'ratio']],
    ['POST', 'boxes', `{"code":"a","parts":[{"data":{"n":${BIG}}}]}`, ['body', 'parts', 0, 'data', 'n']],
    ['PUT', 'boxes/:id', `{"code":"a","data":{"n":${BIG}}}`, ['body', 'data', 'n']],
    ['PATCH', 'boxes/:id', `{"data":{"n":${BIG}}}`, ['body', 'data', 'n']],
    ['POST', 'boxes/bulk', `{"items":[{"code":"a"},{"code":"b","data":{"n":${BIG}}}]}`, ['body', 'items', 1, 'data', 'n']],
    ['POST', 'boxes/bulk-update', `{"items":[{"id":":id","data":{"n":${BIG}}}]}`, ['body', 'items', 0, 'data', 'n']],
    ['POST', 'boxes/bulk-update', `{"ids":[":id"],"changes":{"data":{"n":${BIG}}}}`, ['body', 'changes', 'data', 'n']],
    ['QUERY', 'boxes', `{"where":{"ratio":{"gte":${BIG}}}}`, ['body', 'where', 'ratio', 'gte']],
    ['POST', 'any', `{"input":{"n":${BIG}}}`, ['body', 'input', 'n']],
  ])('%s %s %s is 422 number_not_exact at its place, and writes nothing', async (method, path, body, location) => {
    const { status, body: problem } = await send(method, path, body);
    expect([status, problem.errors]).toEqual([422, [{ location, code: 'number_not_exact', message: expect.stringContaining('2^53') }]]);
    expect(await database.db.query('select code from boxes')).toEqual([{ code: 'first' }]);
  });

  test('a merge patch is read the same way', async () => {
    const { status, body } = await send('PATCH', 'boxes/:id', `{"data":{"n":${BIG}}}`, 'application/merge-patch+json');
    expect([status, body.errors[0].code]).toEqual([422, 'number_not_exact']);
  });

  test('an integer column says what it says about other numbers that it cannot hold', async () => {
    const { status, body } = await send('POST', 'boxes', `{"code":"a","amount":${BIG}}`);
    expect([status, body.errors.length, body.errors[0].code]).toEqual([422, 1, 'too_big']);
  });

  test('in a partial bulk request only the item with the number fails', async () => {
    const { status, body } = await send('POST', 'partial/bulk', `{"items":[{"code":"p1"},{"code":"p2","data":{"n":${BIG}}}]}`);
    expect([status, body.results.map((each: { status: number }) => each.status)]).toEqual([207, [201, 422]]);
    expect(body.results[1].errors).toMatchObject([{ location: ['body', 'items', 1, 'data', 'n'], code: 'number_not_exact' }]);
    await database.db.query("delete from boxes where code = 'p1'");
  });

  test.each([
    ['application/x-ndjson', `{"code":"a"}\n{"code":"b","data":{"n":[${BIG}]}}`, ['body', 2, 'data', 'n', '0']],
    ['application/x-ndjson', `{"code":"b","ratio":${BIG}}`, ['body', 1, 'ratio']],
    ['text/csv', `code,data\na,\nb,"{""n"":${BIG}}"`, ['body', 3, 'data']],
    ['text/csv', `code,ratio\nb,${BIG}`, ['body', 2, 'ratio']],
  ])('an import as %s reports the row and column: %s', async (type, file, location) => {
    for (const mode of ['create', 'upsert']) {
      const { status, body } = await send('POST', `boxes/import?mode=${mode}`, file, type);
      expect([status, body.errors.map((each: { code: string }) => each.code)]).toEqual([422, ['number_not_exact']]);
      expect(body.errors[0].location.map(String)).toEqual(location.map(String));
    }
  });

  test('numbers that are kept pass, and what was read can be sent again', async () => {
    const sent =
      '{"code":"kept","data":{"n":9007199254740991,"big":1e300,"even":100000000000000000000,"text":"9007199254740993"},"ratio":1e17}';
    const created = await send('POST', 'boxes', sent);
    expect(created.status).toBe(201);
    const again = await send('PUT', `boxes/${created.body.id}`, JSON.stringify({ ...created.body, id: undefined }));
    expect([again.status, again.body.data]).toEqual([200, JSON.parse(sent).data]);
  });
});
