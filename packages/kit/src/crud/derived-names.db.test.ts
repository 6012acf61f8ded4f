import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { z } from 'zod';
import { people, startShop, type ShopApp } from '../../test/crud/shop.ts';
import { createTable, migration, model, t } from '../db/index.ts';
import { insertMany } from '../db/rows/repository.ts';
import { isAuthenticated, isOwner, isStaff } from '../permissions/index.ts';
import { describeDatabases } from '../testing/databases.ts';
import { CrudController, crudOf, many, one, resource, visibleTo } from './index.ts';

// Names that lead to a column by another way: through a relation, or out of a computed field.

const folders = model('folders', { id: t.uuidv7().pk(), code: t.text(40), title: t.text(40) });
const papers = model('papers', {
  id: t.uuidv7().pk(),
  owner_id: t.uuid().readOnly(),
  folder_id: t.ref(() => folders).nullable(),
  code: t.text(40).nullable(),
  note: t.text(40).nullable(),
  title: t.text(40),
});
const tables = migration('0001_papers', [
  createTable('folders', folders.columns),
  createTable('papers', { ...papers.columns, folder_id: t.ref('folders').nullable() }),
]);

const folderResource = resource(folders, { unscoped: true, relations: { papers: many(() => papers, 'folder_id', { limit: 10 }) } });
const paperResource = resource(papers, {
  unscoped: true,
  relations: { folder: one(() => folders, 'folder_id') },
  hidden: ['code'],
  fields: { note: visibleTo(isOwner(), { hidden: 'null' }), title: visibleTo(isStaff) },
  computed: {
    shout: {
      requires: ['note'],
      response: z.string(),
      value: ({ note }) => `${note ?? ''}!`,
    },
    label: {
      requires: ['note', 'title'],
      response: z.string(),
      value: ({ note, title }) => `${title} ${note}`,
    },
    code_length: { requires: ['code'], response: z.int(), value: ({ code }) => code?.length ?? 0 },
  },
});

const options = {
  permission: isAuthenticated,
  filters: { 'folder.code': ['starts', 'eq'], 'folder.title': ['starts'] },
  export: ['csv', 'jsonl'],
  operations: { create: false },
} as const;
class FolderController extends CrudController(folderResource, { permission: isAuthenticated, expand: ['papers'] }) {}
class PaperController extends CrudController(paperResource, { ...options, etag: 'optional' }) {}
/** Leaves the ruled column out of everything it shows. */
class NarrowController extends CrudController(paperResource, { ...options, output: ['id', 'folder_id', 'shout'] }) {}

describeDatabases('a column by another name', (database) => {
  let shop: ShopApp;
  let folderId: string;
  const ids: Record<'own' | 'foreign', string> = { own: '', foreign: '' };
  beforeAll(async () => {
    shop = await startShop({
      database: database.db,
      mount: { '/v1': { '/folders': FolderController, '/papers': PaperController, '/narrow': NarrowController } },
      modules: [{ name: 'papers', models: [folders, papers], migrations: [tables] }],
    });
  });
  afterAll(() => shop.close());
  beforeEach(async () => {
    await database.db.query('delete from papers');
    await database.db.query('delete from folders');
    const [folder] = await insertMany(database.db, folders, [{ code: 'F1', title: 'Folder' }]);
    folderId = folder!.id;
    const [own, foreign] = await insertMany(database.db, papers, [
      { owner_id: people.ann.id, folder_id: folderId, code: 'secret', note: 'mine', title: 'A' },
      { owner_id: people.bob.id, folder_id: folderId, code: 'S3CRET', note: 'theirs', title: 'B' },
    ]);
    Object.assign(ids, { own: own!.id, foreign: foreign!.id });
  });

  const where = (tree: object) => shop.call('ann', 'QUERY', 'papers', { where: tree });

  test('a dotted name in a tree is unknown, and never asks the row about a column of its own', async () => {
    for (const name of ['folder.code', 'folder.title', 'folder.nope', 'folder.note', 'papers.code'])
      for (const tree of [{ [name]: { starts: 'S' } }, { not: { [name]: { starts: 'S' } } }, { or: [{ [name]: 'secret' }] }]) {
        const { status, body } = await where(tree);
        expect([status, body.errors[0].code, body.errors[0].location.at(-1)]).toEqual([422, 'unknown_field', name]);
      }
  });

  test('the tree of a relation asks the related row', async () => {
    expect((await where({ folder: { is: { code: { starts: 'F' } } } })).body.count).toBe(2);
    expect((await where({ folder: { is: { code: { starts: 'S' } } } })).body.count).toBe(0);
    expect((await where({ folder: { is: { 'folder.code': 'F1' } } })).status).toBe(422);
    expect((await shop.call('ann', 'GET', 'papers?folder__code__starts=F')).body.count).toBe(2);
    expect((await shop.call('ann', 'GET', 'papers?folder.code=F1')).status).toBe(422);
  });

  test('a computed field is shown on the rows that show every column it requires, whether these were asked for or not', async () => {
    const shouts = async (path: string) => (await shop.call('ann', 'GET', path)).body.items as readonly { id: string; shout?: string }[];
    for (const path of ['papers', 'papers?fields=shout', 'papers?fields=note,shout', 'narrow', 'narrow?fields=shout']) {
      const items = await shouts(path);
      const found = Object.fromEntries(items.map(({ id, shout }) => [id, shout]));
      expect(found).toEqual({ [ids.own]: 'mine!', [ids.foreign]: undefined });
      expect(JSON.stringify(items)).not.toContain('theirs');
    }
  });

  test.each([
    ['a row by key', (id: string) => `papers/${id}`],
    ['a row by key and fields', (id: string) => `papers/${id}?fields=shout`],
    ['a narrow controller', (id: string) => `narrow/${id}`],
    ['a narrow controller and fields', (id: string) => `narrow/${id}?fields=shout`],
  ])('%s shows it to the owner alone', async (_name, path) => {
    expect((await shop.call('ann', 'GET', path(ids.own))).body.shout).toBe('mine!');
    const { text, body } = await shop.call('ann', 'GET', path(ids.foreign));
    expect(body.shout).toBeUndefined();
    expect(text).not.toContain('theirs');
  });

  test.each([
    'papers/export?format=csv',
    'papers/export?format=csv&fields=shout',
    'narrow/export?format=jsonl',
    'narrow/export?format=jsonl&fields=shout',
  ])('%s leaves it out of the rows of others', async (path) => {
    const { body } = await shop.inject({ method: 'GET', url: `/v1/${path}`, headers: { 'x-user': 'ann' } });
    expect(body).toContain('mine!');
    expect(body).not.toContain('theirs');
  });

  test('an expansion and a write leave it out of the rows of others', async () => {
    for (const path of [`folders/${folderId}?expand=papers`, `folders/${folderId}?expand=papers&fields=papers.shout`]) {
      const { text } = await shop.call('ann', 'GET', path);
      expect(text).toContain('mine!');
      expect(text).not.toContain('theirs');
    }
    const changed = await shop.call('ann', 'PATCH', `papers/${ids.foreign}?fields=shout`, { folder_id: null });
    expect([changed.status, changed.body.shout]).toEqual([200, undefined]);
  });

  test('a program shows a row as its caller sees it', async () => {
    const ann = { id: people.ann.id, username: 'ann', email: null, is_active: true, is_staff: false, is_superuser: false };
    const rows = crudOf(shop.app, paperResource).as({ user: ann, tenant: null });
    const shown = await rows.present(await rows.rows());
    expect(JSON.stringify(shown)).toContain('mine!');
    expect(JSON.stringify(shown)).not.toContain('theirs');
  });

  test('a field of two ruled columns needs both', async () => {
    expect((await shop.call('ann', 'GET', `papers/${ids.own}`)).body.label).toBeUndefined();
    expect((await shop.call('sue', 'GET', `papers/${ids.own}`)).body.label).toBeUndefined();
    expect((await shop.call('ann', 'GET', 'papers?fields=label')).status).toBe(422);
  });

  test('a field over a hidden column says what it was declared to say', async () => {
    expect((await shop.call('ann', 'GET', `papers/${ids.foreign}?fields=code_length`)).body.code_length).toBe(6);
  });
});
