import { afterAll, beforeAll, expect, test } from 'vitest';
import { docResource, docs, type Drive, FolderController, CommentController, startDrive } from '../../../test/grants/drive.ts';
import { CrudController } from '../../crud/index.ts';
import { insertMany } from '../../db/index.ts';
import { isAuthenticated } from '../../permissions/index.ts';
import { describeDatabases } from '../../testing/databases.ts';
import { grant } from './grant/grant.ts';

const options = {
  permission: isAuthenticated,
  filters: { size: ['gte'] },
  search: ['title'],
  ordering: { by: ['title', 'size', 'id'] },
} as const;
class ByCursor extends CrudController(docResource, { ...options, page: { default: 7, max: 100 } }) {}
class ByOffset extends CrudController(docResource, { ...options, page: { style: 'offset', default: 7, max: 100, count: 'exact' } }) {}
class ByTitle extends CrudController(docResource, {
  ...options,
  ordering: { by: ['title'], default: ['title'] },
  page: { default: 7, max: 100 },
}) {}

describeDatabases('pages of granted rows', (database) => {
  let drive: Drive;
  let folder: string;
  /** What bob may see, oldest first. */
  const seen: { readonly id: string; readonly title: string; readonly size: number }[] = [];
  beforeAll(async () => {
    drive = await startDrive({
      database: database.db,
      mount: {
        '/v1': {
          '/folders': FolderController,
          '/comments': CommentController,
          '/cursor': ByCursor,
          '/offset': ByOffset,
          '/title': ByTitle,
        },
      },
    });
    const group = await drive.group('team', 'bob');
    folder = await drive.folder('shared');
    const values = Array.from({ length: 48 }, (_, index) => ({
      title: `t${String((index * 37) % 48).padStart(3, '0')}`,
      org: 'north',
      size: (index * 7) % 10,
      owner_id: drive.user(index % 6 === 5 ? 'bob' : 'ann').id,
      folder_id: index % 6 === 4 ? folder : null,
    }));
    const rows = await insertMany(drive.app.db, docs, values);
    const bob = `user:${drive.user('bob').id}`;
    await grant(drive.app.db, { object: { type: 'folders', id: folder }, subject: bob, set: 'viewer' });
    for (const [index, { id, title, size }] of rows.entries()) {
      const to = [bob, `group:${group}`, 'authenticated'][index % 6];
      if (to !== undefined) await grant(drive.app.db, { object: { type: 'docs', id }, subject: to, set: 'viewer' });
      if (index % 6 !== 3) seen.push({ id, title, size });
    }
  });
  afterAll(() => drive.close());

  const walk = async (start: string) => {
    const [path] = start.split('?');
    const ids: string[] = [];
    const counts: unknown[] = [];
    for (let next: string | null = start; next !== null;) {
      const { body } = await drive.ask('bob', 'GET', next);
      ids.push(...body.items.map(({ id }: { id: string }) => id));
      counts.push(body.count);
      next = body.next === null ? null : `${path}${body.next}`;
    }
    return { ids, counts: [...new Set(counts)] };
  };
  const compare = (a: string | number, b: string | number) => (a < b ? -1 : a > b ? 1 : 0);

  test.each([
    ['title', (a: (typeof seen)[0], b: (typeof seen)[0]) => compare(a.title, b.title)],
    ['-title', (a: (typeof seen)[0], b: (typeof seen)[0]) => compare(b.title, a.title)],
    ['size,-title', (a: (typeof seen)[0], b: (typeof seen)[0]) => a.size - b.size || compare(b.title, a.title)],
    ['-size,title', (a: (typeof seen)[0], b: (typeof seen)[0]) => b.size - a.size || compare(a.title, b.title)],
    ['id', (a: (typeof seen)[0], b: (typeof seen)[0]) => compare(a.id, b.id)],
    ['-id', (a: (typeof seen)[0], b: (typeof seen)[0]) => compare(b.id, a.id)],
  ])('ordered by %s have every row once, in that order', async (ordering, by) => {
    const expected = seen.toSorted(by).map(({ id }) => id);
    expect(expected).toHaveLength(40);
    for (const path of ['cursor', 'offset']) {
      const { ids, counts } = await walk(`${path}?ordering=${ordering}`);
      expect(ids).toEqual(expected);
      expect(counts).toEqual([40]);
    }
  });

  test.each(['id', '-id', 'title'])('by %s lead back from a page that was emptied to every row that is left', async (ordering) => {
    type Read = { items: { id: string }[]; next: string | null; previous: string | null };
    const read = async (reference: string | null): Promise<Read> => (await drive.ask('bob', 'GET', `cursor${reference}`)).body;
    const idsOf = ({ items }: Read) => items.map(({ id }) => id);
    const setDeleted = async ({ items }: Read, at: Date | null) => {
      for (const { id } of items) await drive.app.db.query('update docs set deleted_at = $1 where id = $2', [at, id]);
    };
    const first = await read(`?limit=20&ordering=${ordering}`);
    const second = await read(first.next);
    await setDeleted(second, new Date());
    const emptyLast = await read(first.next);
    expect([emptyLast.items, emptyLast.next]).toEqual([[], null]);
    expect(idsOf(await read(emptyLast.previous))).toEqual(idsOf(first));
    await setDeleted(second, null);
    await setDeleted(first, new Date());
    const emptyFirst = await read(second.previous);
    expect([emptyFirst.items, emptyFirst.previous]).toEqual([[], null]);
    expect(idsOf(await read(emptyFirst.next))).toEqual(idsOf(second));
    await setDeleted(first, null);
  });

  test('in a default order of another column, too', async () => {
    expect((await walk('title?limit=9')).ids).toEqual(seen.toSorted((a, b) => compare(a.title, b.title)).map(({ id }) => id));
  });

  test('with a filter or a search, in another order', async () => {
    const bySize = seen.filter(({ size }) => size >= 5).toSorted((a, b) => compare(a.title, b.title));
    expect((await walk('cursor?ordering=title&size__gte=5')).ids).toEqual(bySize.map(({ id }) => id));
    const found = seen.filter(({ title }) => title.includes('t0')).toSorted((a, b) => compare(a.title, b.title));
    expect((await walk('cursor?ordering=title&search=t0')).ids).toEqual(found.map(({ id }) => id));
  });
});
