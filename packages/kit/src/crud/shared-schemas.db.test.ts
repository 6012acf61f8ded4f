import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import * as z from 'zod';
import { Follower } from '../../test/crud/live.ts';
import { createTable, migration, model, t } from '../db/index.ts';
import { Controller, filePart, multipart, page, route } from '../http/index.ts';
import { openApiDocument } from '../openapi/document.ts';
import { allowAny } from '../permissions/index.ts';
import { describeDatabases } from '../testing/databases.ts';
import { testApp, type TestApp } from '../testing/test-app.ts';
import { CrudController, filter, resource } from './index.ts';

// Schemas with an id, which libraries put into `$defs`, and schemas that refer to themselves, as parts of others.
const Money = z.object({ amount: z.string(), parts: z.array(z.object({ n: z.number() })) }).meta({ id: 'Money' });
const Level = z.coerce.number().int().meta({ id: 'Level' });
const Raise = z.object({ level: Level }).meta({ id: 'Raise' });
interface Tree {
  name: string;
  children: Tree[];
}
const Anonymous: z.ZodType<Tree> = z.object({
  name: z.string(),
  get children() {
    return z.array(Anonymous);
  },
});
const Named: z.ZodType<Tree> = z
  .object({
    name: z.string(),
    get children() {
      return z.array(Named);
    },
  })
  .meta({ id: 'Tree' });

const columns = {
  id: t.int().pk(),
  cents: t.int(),
  tree: t.json(Anonymous).nullable(),
  forest: t.json(Named),
};
const cards = model('cards', columns);
const value = ({ cents }: { readonly cents: number }) => ({ amount: String(cents), parts: [{ n: 1, secret: 'x' }], secret: 'x' });
const grown = { name: 'a', secret: 'x', children: [{ name: 'b', secret: 'x', children: [{ name: 'c', secret: 'x', children: [] }] }] };
const whole = { name: 'a', children: [{ name: 'b', children: [{ name: 'c', children: [] }] }] };
const cardResource = resource(cards, {
  unscoped: true,
  computed: {
    price: { requires: ['cents'], response: Money, value },
    grown: { requires: ['cents'], response: Anonymous, value: () => grown },
    named: { requires: ['cents'], response: Named, value: () => grown },
  },
  actions: { raise: { input: Raise, response: Money, run: ({ row, input }) => value({ cents: row.cents + input.level }) } },
});
class CardController extends CrudController(cardResource, {
  permission: allowAny,
  filters: { cents: ['eq'], above: filter(Level, (level) => ({ cents: { gt: level } })) },
  bulk: { create: true },
  export: ['jsonl'],
  live: true,
  meta: true,
}) {}
class TreeController extends Controller {
  anonymous = route.get('/anonymous', { permission: allowAny, response: page(Anonymous) }, () => ({ items: [grown], count: 1 }));
  named = route.get('/named', { permission: allowAny, response: page(Named) }, () => ({ items: [grown], count: 1 }));
  form = route.post(
    '/form',
    {
      permission: allowAny,
      body: multipart({ level: Level, tree: Anonymous.optional(), file: filePart({ optional: true }) }),
      response: z.object({ level: z.number() }),
    },
    ({ body }) => ({ level: body.level }),
  );
}

// oxlint-disable-next-line typescript/no-explicit-any -- a document of any shape
type Json = any;

/** References that name nothing, and definitions that no reference can reach. */
function lost(document: Json): string[] {
  const found: string[] = [];
  const target = (reference: string): unknown =>
    reference
      .slice(2)
      .split('/')
      .reduce((node: Json, part) => node?.[part.replaceAll('~1', '/').replaceAll('~0', '~')], document);
  const visit = (node: Json, at: string): void => {
    if (typeof node !== 'object' || node === null) return;
    for (const [name, inner] of Object.entries<Json>(node)) {
      if (name === '$defs' || (name === '$ref' && target(inner) === undefined)) found.push(`${at}/${name} ${String(inner)}`);
      visit(inner, `${at}/${name}`);
    }
  };
  visit(document, '');
  return found;
}

describeDatabases('schemas that others are put together of', (database) => {
  let tested: TestApp;
  let url = '';
  beforeAll(async () => {
    tested = await testApp({
      database: database.db,
      modules: [{ name: 'cards', models: [cards], migrations: [migration('0001_initial', [createTable('cards', columns)])] }],
      mount: { '/v1': { '/cards': CardController, '/trees': TreeController } },
    });
    await tested.app.listen({ port: 0 });
    url = `http://127.0.0.1:${(tested.app.fastify.server.address() as AddressInfo).port}/v1`;
    expect(await send('POST', '/cards', { id: 1, cents: 5, tree: whole, forest: whole })).toMatchObject({ status: 201, body: row(1) });
  });
  afterAll(() => tested[Symbol.asyncDispose]());
  const send = async (method: 'GET' | 'POST' | 'QUERY', path: string, payload?: object) => {
    const response = await tested.inject({ method: method as 'GET', url: `/v1${path}`, ...(payload === undefined ? {} : { payload }) });
    return { status: response.statusCode, body: response.json() };
  };
  const row = (id: number) => ({
    id,
    cents: 5,
    tree: whole,
    forest: whole,
    price: { amount: '5', parts: [{ n: 1 }] },
    grown: whole,
    named: whole,
  });

  test('only their declared members leave, and all of them, at every depth', async () => {
    expect((await send('GET', '/cards/1')).body).toEqual(row(1));
    expect((await send('GET', '/cards')).body.items).toEqual([row(1)]);
    expect((await send('QUERY', '/cards', { where: { above: 3 } })).body.items).toEqual([row(1)]);
    expect((await send('GET', '/cards/export?format=jsonl')).body).toEqual(row(1));
    const follower = await new Follower('ann').connect(`${url}/cards`);
    await vi.waitFor(() => expect([...follower.rows.values()]).toEqual([row(1)]), 30_000);
    await follower.disconnect();
    const bulk = await send('POST', '/cards/bulk', { items: [{ id: 2, cents: 5, tree: null, forest: whole }] });
    expect(bulk.body.items).toEqual([{ ...row(2), tree: null }]);
    for (const name of ['anonymous', 'named']) expect((await send('GET', `/trees/${name}`)).body.items).toEqual([whole]);
    expect((await send('POST', '/cards/1/raise', { level: 3 })).body).toEqual({ ...row(1).price, amount: '8' });
  });

  test('text is read by them: a number in a query, in a form', async () => {
    expect((await send('GET', '/cards?above=3')).body.items).not.toEqual([]);
    expect((await send('GET', '/cards?above=5')).body.items).toEqual([]);
    const payload = '--b\r\ncontent-disposition: form-data; name="level"\r\n\r\n3\r\n--b--\r\n';
    const headers = { 'content-type': 'multipart/form-data; boundary=b' };
    expect((await tested.inject({ method: 'POST', url: '/v1/trees/form', headers, payload })).json()).toEqual({ level: 3 });
  });

  test.each(['3.1', '3.2'] as const)('every reference of the document %s names a component', (spec) => {
    const document: Json = openApiDocument(tested.app.routes, { title: 'Cards', version: '1', spec });
    expect(lost(document)).toEqual([]);
    expect(Object.keys(document.components.schemas)).toEqual(expect.arrayContaining(['Money', 'Level', 'Tree']));
  });
});
