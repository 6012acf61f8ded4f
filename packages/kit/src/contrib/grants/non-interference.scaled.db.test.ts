import { kyselyOf, whereExpression } from '../../db/kysely/index.ts';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  CommentController,
  comments,
  DocController,
  docResource,
  docs,
  type Drive,
  FolderController,
  folders,
  startDrive,
} from '../../../test/grants/drive.ts';
import { CrudController, crudOf } from '../../crud/index.ts';
import { insert, insertMany } from '../../db/index.ts';
import { compileWhere } from '../../db/index.ts';
import { isAuthenticated } from '../../permissions/index.ts';
import { describeDatabases } from '../../testing/databases.ts';
import { scaled } from '../../../../../test/provision/scale.ts';
import { grant, revoke } from './grant/grant.ts';
import { grantedCondition } from './rows/granted-condition.ts';
import { objectsOf } from './grant/holdings.ts';
import { narrowPage } from './rows/list-shapes.ts';
import { actionsOfModel, type ObjectActions } from './declare/object-actions.ts';
import type { Db } from '../../db/engine/db.ts';
import { knownAsker } from './caller/caller-subjects.ts';

/** The same rows, counted exactly and paged by offset. */
class ExactDocs extends CrudController(docResource, {
  permission: isAuthenticated,
  filters: { size: ['gte'] },
  ordering: { by: ['title', 'size'] },
  page: { count: 'exact', style: 'offset' },
}) {}

/** The evaluator: the contract in a few lines of JavaScript, on plain lists. It shares nothing with the module. */
interface World {
  readonly folders: readonly { readonly id: string; readonly parent: string | null }[];
  readonly docs: readonly {
    readonly id: string;
    readonly owner: string;
    readonly folder: string | null;
    readonly size: number;
    readonly title: string;
    readonly isDeleted: boolean;
  }[];
  readonly groups: ReadonlyMap<string, readonly string[]>;
  readonly grants: readonly {
    readonly subject: string;
    readonly type: 'docs' | 'folders';
    readonly id: string;
    readonly what: string;
    readonly live: boolean;
  }[];
}

const SETS: Readonly<Record<string, readonly string[]>> = {
  viewer: ['view'],
  editor: ['view', 'change'],
  manager: ['view', 'change', 'delete', 'share'],
  change: ['change'],
  view: ['view'],
};

function maySee(world: World, user: string, doc: World['docs'][number]): boolean {
  if (doc.owner === user) return true;
  const subjects = new Set([`user:${user}`, 'authenticated', 'tenant', 'public']);
  for (const [group, members] of world.groups) if (members.includes(user)) subjects.add(`group:${group}`);
  const objects = [{ type: 'docs', id: doc.id }];
  let folder = world.folders.find(({ id }) => id === doc.folder);
  for (let level = 0; level < 5 && folder !== undefined; level += 1) {
    objects.push({ type: 'folders', id: folder.id });
    const { parent } = folder;
    folder = parent === null ? undefined : world.folders.find(({ id }) => id === parent);
  }
  return world.grants.some(
    (each) =>
      each.live &&
      subjects.has(each.subject) &&
      SETS[each.what]?.includes('view') === true &&
      objects.some(({ type, id }) => each.type === type && each.id === id),
  );
}

/** The plan of a statement, line by line. PostgreSQL reads a table of thirty rows whole, unless it is told that this is expensive. */
function planOf(db: Db, sql: string, parameters: readonly unknown[]): Promise<string[]> {
  return db.transaction(async (tx) => {
    if (tx.dialect === 'postgres') await tx.query('set local enable_seqscan = off');
    const rows = await tx.query<Record<string, unknown>>(`explain ${tx.dialect === 'sqlite' ? 'query plan ' : ''}${sql}`, parameters);
    return rows.map((row) => String(row['QUERY PLAN'] ?? row['detail']));
  });
}

const PEOPLE = ['bob', 'cid', 'dan'] as const;
const WORLDS = scaled(4, 200);
const seed = 20_261_116;

describeDatabases('random grants', (database) => {
  let drive: Drive;
  beforeAll(async () => {
    drive = await startDrive({
      database: database.db,
      mount: {
        '/v1': { '/folders': FolderController, '/docs': DocController, '/comments': CommentController, '/exact': ExactDocs },
      },
    });
  });
  afterAll(() => drive.close());

  async function build(random: { readonly bits: readonly number[] }): Promise<World> {
    const db = database.db;
    await db.query('update folders set parent_id = null');
    for (const table of ['grants', 'comments', 'docs', 'folders', 'group_members', 'groups']) await db.query(`delete from ${table}`);
    let at = 0;
    const pick = (below: number) => (random.bits[at++ % random.bits.length] as number) % below;
    const made: { id: string; parent: string | null }[] = [];
    for (let index = 0; index < 8; index += 1) {
      const parent = made.length > 0 && pick(3) > 0 ? (made[pick(made.length)] as { id: string }).id : null;
      made.push({ id: (await insert(db, folders, { name: `f${index}`, org: 'north', parent_id: parent })).id, parent });
    }
    const people = [...PEOPLE, 'ann'];
    const rows = await insertMany(
      db,
      docs,
      Array.from({ length: 30 }, (_, index) => ({
        title: `t${index}`,
        org: 'north',
        owner_id: drive.user(people[pick(people.length)] as string).id,
        folder_id: pick(2) === 0 ? null : (made[pick(made.length)] as { id: string }).id,
        size: pick(5),
      })),
    );
    await insertMany(
      db,
      comments,
      rows.map(({ id, title }) => ({ doc_id: id, text: `on ${title}` })),
    );
    const groups = new Map<string, string[]>();
    for (let index = 0; index < 3; index += 1) {
      const members = PEOPLE.filter(() => pick(2) === 0);
      groups.set(
        await drive.group(`g${index}`, ...members),
        members.map((name) => drive.user(name).id),
      );
    }
    const grants: World['grants'][number][] = [];
    const names = Object.keys(SETS);
    const expiresAt = new Date(drive.clock.now().getTime() + 1_000);
    for (let index = 0; index < 25; index += 1) {
      const isDoc = pick(2) === 0;
      const wide = ['authenticated', 'tenant', 'public'];
      const chosen = pick(8);
      const subject =
        chosen === 0 && isDoc
          ? (wide[pick(3)] as string)
          : chosen < 5
            ? `user:${drive.user(PEOPLE[pick(3)] as string).id}`
            : `group:${[...groups.keys()][pick(3)] as string}`;
      const id = isDoc ? (rows[pick(rows.length)] as { id: string }).id : (made[pick(made.length)] as { id: string }).id;
      const type = isDoc ? 'docs' : 'folders';
      if (grants.some((each) => each.subject === subject && each.id === id)) continue;
      const what = names[pick(names.length)] as string;
      const live = pick(6) > 0;
      const given = what === 'change' || what === 'view' ? { action: what } : { set: what };
      await grant(db, { subject, ...given, object: { type, id }, expiresAt: live ? null : expiresAt });
      grants.push({ subject, type, id, what, live });
    }
    drive.clock.advance(1_000);
    const docsOf: World['docs'][number][] = [];
    for (const { id, owner_id, folder_id, size, title } of rows) {
      const isDeleted = pick(7) === 0;
      if (isDeleted) await drive.ask('root', 'DELETE', `docs/${id}`);
      docsOf.push({ id, owner: owner_id, folder: folder_id, size, title, isDeleted });
    }
    return { folders: made, docs: docsOf, groups, grants };
  }

  const bits = fc.record({ bits: fc.array(fc.nat(1_000), { minLength: 150, maxLength: 150 }) });
  const ids = (items: readonly { readonly id: string }[]) => items.map(({ id }) => id);

  test(
    'no read path shows, counts, orders by or exports a row that the evaluator refuses, and all show the others',
    { timeout: Math.max(120_000, WORLDS * 5_000) },
    async () => {
      for (const random of fc.sample(bits, { numRuns: WORLDS, seed })) {
        const world = await build(random);
        for (const name of PEOPLE) {
          const user = drive.user(name);
          const seeable = world.docs.filter((doc) => maySee(world, user.id, doc));
          const visible = seeable.filter(({ isDeleted }) => !isDeleted);
          const newest = ids(visible).toSorted().toReversed();
          const get = async (path: string) => (await drive.ask(name, 'GET', path)).body;
          const list = await get('docs?limit=1000');
          expect([name, ids(list.items), list.count]).toEqual([name, newest, visible.length]);
          const walked: string[] = [];
          for (let url = 'docs?limit=3'; ;) {
            const page = await get(url);
            expect(page.count).toBe(visible.length);
            walked.push(...ids(page.items));
            if (page.next === null) break;
            url = `docs${page.next as string}`;
          }
          expect(walked).toEqual(newest);
          const filtered = await get('docs?size__gte=3&limit=1000');
          expect([ids(filtered.items), filtered.count]).toEqual([
            ids(visible.filter(({ size }) => size >= 3))
              .toSorted()
              .toReversed(),
            visible.filter(({ size }) => size >= 3).length,
          ]);
          const ordered = await get('docs?ordering=size,title&limit=1000');
          expect(ids(ordered.items)).toEqual(ids(visible.toSorted((a, b) => a.size - b.size || (a.title < b.title ? -1 : 1))));
          expect(ids((await get('docs?search=t1&limit=1000')).items).toSorted()).toEqual(
            ids(visible.filter(({ title }) => title.includes('t1'))).toSorted(),
          );
          const exported = await drive.ask(name, 'GET', 'docs/export?format=jsonl');
          const lines = exported.text
            .split('\n')
            .filter((line) => line !== '')
            .map((line) => JSON.parse(line) as { id: string });
          expect(ids(lines).toSorted()).toEqual(ids(visible).toSorted());
          const [stats] = (await get('docs/stats?metrics=rows,size')).items as { rows: number; size: number | null }[];
          const sizes = visible.map(({ size }) => size);
          expect([stats?.rows ?? 0, stats?.size ?? 0]).toEqual([visible.length, sizes.reduce((sum, size) => sum + size, 0)]);
          const seen = (await get('comments?limit=1000&expand=doc')).items as { doc: { id: string } }[];
          expect(ids(seen.map(({ doc }) => doc)).toSorted()).toEqual(ids(visible).toSorted());
          const statuses = await Promise.all(world.docs.map(async ({ id }) => (await drive.ask(name, 'GET', `docs/${id}`)).status));
          expect(statuses).toEqual(world.docs.map((doc) => (visible.includes(doc) ? 200 : 404)));
          const deleted = await get('docs?deleted=only&limit=1000');
          expect(ids(deleted.items).toSorted()).toEqual(ids(seeable.filter(({ isDeleted }) => isDeleted)).toSorted());
          const queried = await drive.ask(name, 'QUERY', 'docs?limit=1000', { where: { size: { gte: 2 } }, ordering: ['-size', 'title'] });
          expect(ids(queried.body.items)).toEqual(
            ids(visible.filter(({ size }) => size >= 2).toSorted((a, b) => b.size - a.size || (a.title < b.title ? -1 : 1))),
          );
          for (const [query, rows] of [
            ['limit=2', visible],
            ['limit=2&offset=3', visible],
            ['limit=1&size__gte=3', visible.filter(({ size }) => size >= 3)],
            ['limit=1&ordering=size', visible],
          ] as const)
            expect([query, (await get(`exact?${query}`)).count]).toEqual([query, rows.length]);
          const groups = (await get('docs/stats?metrics=rows&group_by=title')).items as { title: string; rows: number }[];
          expect(groups.map((group) => group.title).toSorted()).toEqual(visible.map(({ title }) => title).toSorted());
          const program = crudOf(drive.app, docResource).as({ user, tenant: 'north' });
          expect(ids((await program.rows()) as { id: string }[]).toSorted()).toEqual(ids(visible).toSorted());
          expect((await objectsOf(database.db, { user, tenant: 'north' }, docs as never, 'view')).toSorted()).toEqual(
            ids(visible).toSorted(),
          );
          const where = await grantedCondition(database.db, { user, tenant: 'north' }, docs, 'view');
          const parameters: unknown[] = [];
          const compiled = compileWhere(docs, where);
          const byHand = await database.db.query<{ id: string }>(
            `select id from docs d where d.deleted_at is null and ${compiled.append(database.dialect, 'd', parameters)}`,
            parameters,
          );
          expect(ids(byHand).toSorted()).toEqual(ids(visible).toSorted());
          const byBuilder = await kyselyOf<{ docs: { id: string; deleted_at: Date | null } }>(database.db)
            .selectFrom('docs')
            .select('id')
            .where(whereExpression(database.db, docs, where))
            .where('deleted_at', 'is', null)
            .execute();
          expect(ids(byBuilder).toSorted()).toEqual(ids(visible).toSorted());
        }
      }
    },
  );

  test('grants a caller does not hold never change a byte of what the caller gets', { timeout: 120_000 }, async () => {
    const [random] = fc.sample(bits, { numRuns: 1, seed: seed + 1 });
    const world = await build(random as { bits: number[] });
    const paths = [
      'docs?limit=3',
      'docs?size__gte=2',
      'docs?ordering=size',
      'docs?search=t',
      'docs/export?format=jsonl',
      'docs/stats?metrics=rows&group_by=title',
      'docs/meta',
      'docs?deleted=only',
      'exact?limit=2',
      'exact?limit=2&ordering=-title&size__gte=1',
      'docs?expand=folder,comments',
      'comments?expand=doc',
      ...world.docs.map(({ id }) => `docs/${id}`),
    ];
    // Cursors are encrypted again with every page.
    const plain = (text: string) => text.replaceAll(/cursor=[^"&]*/g, 'cursor=').replace(/"request_id":"[^"]*"/, '');
    const everything = async () => {
      const answers: unknown[] = [];
      for (const path of paths) {
        const { status, text, headers } = await drive.ask('bob', 'GET', path);
        answers.push([path, status, plain(text), headers['x-total-count']]);
      }
      return answers;
    };
    const before = await everything();
    for (const { id } of world.docs)
      for (const name of ['cid', 'dan', 'eve'])
        await grant(database.db, { subject: `user:${drive.user(name).id}`, set: 'manager', object: { type: docs, id } });
    for (const { id } of world.folders)
      await grant(database.db, { subject: `user:${drive.user('eve').id}`, set: 'manager', object: { type: folders, id } });
    expect(await everything()).toEqual(before);
    for (const { id } of world.docs) await revoke(database.db, { subject: `user:${drive.user('cid').id}`, object: { type: docs, id } });
    expect(await everything()).toEqual(before);
  });

  test('rows without their grants, and grants without their rows, do not shorten a page', async () => {
    const db = database.db;
    await build({ bits: [1, 2, 3, 5, 7, 11, 13] });
    for (const table of ['grants', 'comments', 'docs']) await db.query(`delete from ${table}`);
    const made = await insertMany(
      db,
      docs,
      Array.from({ length: 12 }, (_, index) => ({ title: `o${index}`, org: 'north', owner_id: drive.user('ann').id })),
    );
    for (const { id } of made) await grant(db, { subject: `user:${drive.user('bob').id}`, set: 'viewer', object: { type: docs, id } });
    // The newest five are removed by hand; their grants stay.
    for (const { id } of made.slice(7)) await db.query('delete from docs where id = $1', [id]);
    const page = (await drive.ask('bob', 'GET', 'docs?limit=3')).body;
    expect([page.items.map(({ title }: { title: string }) => title), page.count, page.next === null]).toEqual([
      ['o6', 'o5', 'o4'],
      7,
      false,
    ]);
    // A caller with grants and without rows finds none.
    const user = drive.user('bob');
    const asker = await knownAsker(db, { user, tenant: 'north' });
    const question = { db, asker, declaration: actionsOfModel(docs as never) as ObjectActions };
    const short = { limit: 4, isFiltered: false, byKey: { descending: true } };
    const found = async (isRetry: boolean) => {
      const narrowed = await narrowPage(question, { ...short, isRetry });
      const parameters: unknown[] = [];
      const text = compileWhere(docs as never, narrowed?.where as never).append(database.dialect, 'd', parameters);
      return (await db.query(`select id from docs d where ${text}`, parameters)).length;
    };
    expect([await found(false), await found(true)]).toEqual([0, 4]);
  });

  test('an export, statistics or an exact count of few granted rows does not look at the others', async () => {
    const db = database.db;
    await build({ bits: [2, 3, 5, 8, 13] });
    const asker = await knownAsker(db, { user: drive.user('eve'), tenant: 'north' });
    const question = { db, asker, declaration: actionsOfModel(docs as never) as ObjectActions };
    const narrowed = await narrowPage(question, { limit: Infinity, isFiltered: true, isWhole: true });
    expect(narrowed?.isComplete).toBe(true);
    const parameters: unknown[] = [];
    const text = compileWhere(docs as never, narrowed?.where as never).append(database.dialect, 't0', parameters);
    const scans = (await planOf(db, `select count(*) from docs t0 where ${text}`, parameters)).filter((line) => /\bt0\b/.test(line));
    expect(scans.length).toBeGreaterThan(0);
    expect(scans.filter((line) => /SCAN t0|Seq Scan/.test(line))).toEqual([]);
  });

  test('more groups than streams are merged find the same rows', { timeout: 60_000 }, async () => {
    const db = database.db;
    await build({ bits: [1, 4, 9, 16, 25] });
    for (const table of ['grants', 'comments', 'docs']) await db.query(`delete from ${table}`);
    const made = await insertMany(
      db,
      docs,
      Array.from({ length: 40 }, (_, index) => ({ title: `g${index}`, org: 'north', owner_id: drive.user('ann').id })),
    );
    for (const [index, { id }] of made.entries()) {
      if (index >= 30) continue;
      const group = await drive.group(`many ${index}`, 'eve');
      await grant(db, { subject: `group:${group}`, set: 'viewer', object: { type: docs, id } });
    }
    const walked: string[] = [];
    for (let url = 'docs?limit=7'; ;) {
      const page = (await drive.ask('eve', 'GET', url)).body;
      walked.push(...ids(page.items));
      if (page.next === null) break;
      url = `docs${page.next as string}`;
    }
    expect(walked).toEqual(ids(made.slice(0, 30)).toSorted().toReversed());
  });
});
