import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { startShop, type ShopApp } from '../../test/crud/shop.ts';
import { createTable, insert, migration, model, t } from '../db/index.ts';
import { isAuthenticated, isOwner, isStaff } from '../permissions/index.ts';
import { describeDatabases } from '../testing/databases.ts';
import { count, CrudController, crudOf, many, resource, visibleTo } from './index.ts';

const columns = {
  id: t.uuidv7().pk(),
  kind: t.text(20),
  input: t.text(200),
  note: t.text(40),
  secret: t.text(40).dbDefault('raw'),
  mine: t.text(40).dbDefault('raw'),
  owner_id: t.text(80).dbDefault(''),
  folder_id: t.ref('folders').nullable(),
};
const folders = model('folders', { id: t.uuidv7().pk() });
const papers = model('papers', { ...columns, folder_id: t.ref(() => folders).nullable() });
const upper = { requires: [], response: z.string() } as const;
const paperResource = resource(papers, {
  unscoped: true,
  fields: { secret: visibleTo(isStaff), mine: visibleTo(isOwner(), { hidden: 'omit' }) },
  shown: {
    input: {
      requires: ['kind'],
      response: z.object({ kind: z.string(), n: z.int() }),
      value: ({ input, kind }) => ({ kind, ...(JSON.parse(input) as object) }),
    },
    owner_id: { requires: [], response: z.string().nullable(), value: ({ owner_id }) => (owner_id === '' ? null : owner_id) },
    secret: { ...upper, value: ({ secret }) => secret.toUpperCase() },
    mine: { ...upper, value: ({ mine }) => mine.toUpperCase() },
  },
});
class Papers extends CrudController(paperResource, {
  permission: isAuthenticated,
  filters: { input: ['eq', 'contains'] },
  ordering: { by: ['note'] },
  export: ['csv', 'jsonl'],
  bulk: { create: true },
  stats: { by: ['owner_id'], metrics: { papers: count() } },
  meta: true,
}) {}
class Folders extends CrudController(resource(folders, { unscoped: true, relations: { papers: many(() => papers, 'folder_id') } }), {
  permission: isAuthenticated,
  expand: ['papers'],
}) {}
const tables = [createTable('folders', folders.columns), createTable('papers', columns)];
const module = { name: 'desk', models: [folders, papers], migrations: [migration('0001_initial', tables)] };

describeDatabases('columns in another form', (database) => {
  let shop: ShopApp;
  let id: string;
  let folder: string;
  beforeAll(async () => {
    shop = await startShop({ database: database.db, mount: { '/v1': { '/papers': Papers, '/folders': Folders } }, modules: [module] });
    folder = (await shop.call('ann', 'POST', 'folders', {})).body.id;
    const made = await shop.call('sue', 'POST', 'papers', { kind: 'a', input: '{"n":1}', note: 'x', folder_id: folder });
    expect([made.status, made.body.input]).toEqual([201, { kind: 'a', n: 1 }]);
    id = made.body.id;
  });
  afterAll(() => shop.close());

  test('they are in their place in every response, and expanded', async () => {
    const { body, text } = await shop.call('ann', 'GET', `papers/${id}`);
    expect(Object.keys(body as object)).toEqual(['id', 'kind', 'input', 'note', 'owner_id', 'folder_id']);
    expect(body).toMatchObject({ input: { kind: 'a', n: 1 }, owner_id: null });
    expect(JSON.stringify((await shop.call('ann', 'GET', 'papers')).body.items[0])).toBe(text);
    expect(JSON.stringify((await shop.call('ann', 'GET', `folders/${folder}?expand=papers`)).body.papers[0])).toBe(text);
    expect((await shop.call('ann', 'PATCH', `papers/${id}`, { note: 'x' })).text).toBe(text);
    expect(
      (await shop.call('ann', 'POST', 'papers/bulk', { items: [{ kind: 'b', input: '{"n":2}', note: 'y' }] })).body.items[0],
    ).toMatchObject({
      input: { kind: 'b', n: 2 },
      owner_id: null,
    });
    expect((await shop.call('ann', 'GET', `papers/${id}?fields=input`)).body).toEqual({ id, input: { kind: 'a', n: 1 } });
  });

  test('a rule about the column, by role or by row, is a rule about its form', async () => {
    expect((await shop.call('sue', 'GET', `papers/${id}`)).body).toMatchObject({ secret: 'RAW' });
    expect((await shop.call('ann', 'GET', `papers/${id}?fields=secret`)).status).toBe(422);
    const of = { kind: 'c', input: '{"n":3}', note: 'z', owner_id: '00000000-0000-7000-8000-0000000000a1', folder_id: null };
    const own = (await insert(database.db, papers, { ...of })).id;
    const seen = (await shop.call('ann', 'GET', `papers/${own}`)).body as object;
    expect(Object.keys(seen)).toEqual(['id', 'kind', 'input', 'note', 'mine', 'owner_id', 'folder_id']);
    expect(seen).toMatchObject({ mine: 'RAW', owner_id: of.owner_id });
    expect((await shop.call('bob', 'GET', `papers/${own}`)).body).not.toHaveProperty('mine');
  });

  test('files, the description and programs have the form; filters ask for what is stored', async () => {
    const file = async (format: string) =>
      (await shop.inject({ method: 'GET', url: `/v1/papers/export?format=${format}&input=%7B%22n%22:1%7D`, headers: { 'x-user': 'ann' } }))
        .body;
    expect(JSON.parse((await file('jsonl')).trim())).toMatchObject({ id, input: { kind: 'a', n: 1 }, owner_id: null });
    expect(await file('csv')).toContain('"{""kind"":""a"",""n"":1}"');
    const { body: meta } = await shop.call('ann', 'GET', 'papers/meta');
    expect(meta.output.properties.input).toMatchObject({ type: 'object', properties: { n: { type: 'integer' } } });
    expect(meta.output.properties).not.toHaveProperty('secret');
    expect((await shop.call('ann', 'GET', 'papers?input__contains=%22n%22:1')).body.items).toHaveLength(1);
    const user = { id: '', username: '', email: null, is_active: true, is_staff: false, is_superuser: false };
    const programs = crudOf(shop.app, paperResource).as({ user, tenant: null });
    const row = await programs.find(id);
    expect(row.input).toBe('{"n":1}');
    expect(await programs.present(row)).toMatchObject({ input: { kind: 'a', n: 1 } });
  });
});

describe('columns in another form that do not start', () => {
  const value = () => '';
  test.each<[object, RegExp]>([
    [{ inputt: { ...upper, value } }, /shown refers to the unknown column "inputt". Did you mean "input"\?/],
    [{ input: { ...upper, requires: ['kin'], value } }, /shown "input" requires the unknown column "kin". Did you mean "kind"\?/],
    [{ id: { ...upper, value } }, /shown has the key "id"/],
  ])('%j', async (shown, message) => {
    class Wrong extends CrudController(resource(papers, { unscoped: true, shown: shown as never }), { permission: isAuthenticated }) {}
    await expect(startShop({ mount: { '/v1': { '/papers': Wrong } }, modules: [] })).rejects.toThrow(message);
  });

  test('an option that is misspelt', () => {
    expect(() => resource(papers, { unscoped: true, shown: { input: { ...upper, valu: value } } } as never)).toThrow(/shown.input.valu/);
  });
});
