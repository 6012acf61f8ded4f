import { kyselyOf, whereExpression } from '../../../db/kysely/index.ts';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  CommentController,
  docActions,
  DocController,
  docs,
  type Drive,
  folderActions,
  FolderController,
  startDrive,
} from '../../../../test/grants/drive.ts';
import { countQueries, observeQueries, find, list, model, createTable, migration, t } from '../../../db/index.ts';
import { Controller, route } from '../../../http/index.ts';
import { any, hasRule, isAuthenticated, not, Permission } from '../../../permissions/index.ts';
import { describeDatabases } from '../../../testing/databases.ts';
import { CrudController, resource, visibleTo } from '../../../crud/index.ts';
import { grants } from '../grant/access.ts';
import { rulesBackend } from '../backends/index.ts';
import { grant } from '../grant/grant.ts';
import { objectActions } from '../declare/object-actions.ts';
import { hasGrant } from './permission.ts';
import { grantedCondition } from './granted-condition.ts';
import { objectGrants } from '../module.ts';

class ByHand extends Controller {
  change = route.get('/:id', { permission: isAuthenticated.and(hasGrant('change', docs as never)) }, async ({ db, params, authorize }) => {
    await authorize(await find(db, docs, (params as { id: string }).id));
  });
  either = route.get(
    '/either/:id',
    { permission: any(hasGrant('change', docs as never), hasGrant('send', docs as never)) },
    async ({ db, params, authorize }) => {
      await authorize(await find(db, docs, (params as { id: string }).id));
    },
  );
  unlessSent = route.get(
    '/unless/:id',
    { permission: any(not(hasGrant('send', docs as never)), isSentByRoot()) },
    async ({ db, params, authorize }) => {
      await authorize(await find(db, docs, (params as { id: string }).id));
    },
  );
}

function isSentByRoot(): Permission {
  return new Permission({ name: 'root', evaluate: ({ user }) => user?.username === 'root' });
}

const memos = model('memos', { id: t.uuidv7().pk(), owner_id: t.uuid().readOnly(), level: t.int().dbDefault(0) });
const memoActions = objectActions(memos, {
  actions: ['view', 'change', 'delete'],
  backend: rulesBackend({
    view: new Permission({
      name: 'low',
      evaluate: (_context, row) => (row === undefined ? 'unknown' : (row as { level: number }).level < 5),
      rows: () => ({ level: { lt: 5 } }),
    }),
    change: hasRule((_context, row) => (row === undefined ? 'unknown' : (row as { level: number }).level < 3)),
  }),
});
class MemoController extends CrudController(resource(memos, { owner: 'owner_id', access: grants(memos), input: ['level'] }), {
  permission: isAuthenticated,
}) {}

/** The code of a letter is for those who may change it. */
const letters = model('letters', { id: t.uuidv7().pk(), owner_id: t.uuid().readOnly(), code: t.text(20).nullable(), text: t.text() });
const letterActions = objectActions(letters, { actions: ['view', 'change', 'delete'] });
class LetterController extends CrudController(
  resource(letters, { owner: 'owner_id', access: grants(letterActions), fields: { code: visibleTo(hasGrant('change', letterActions)) } }),
  { permission: isAuthenticated },
) {}

describeDatabases('hasGrant', (database) => {
  let drive: Drive;
  beforeAll(async () => {
    drive = await startDrive({
      database: database.db,
      mount: {
        '/v1': {
          '/docs': DocController,
          '/folders': FolderController,
          '/comments': CommentController,
          '/hand': ByHand,
          '/memos': MemoController,
          '/letters': LetterController,
        },
      },
      extra: [
        objectGrants({ objects: [docActions, folderActions, memoActions, letterActions], isInTenant: () => true }),
        {
          name: 'memos',
          models: [memos, letters],
          migrations: [migration('0001_initial', [createTable('memos', memos.columns), createTable('letters', letters.columns)])],
        },
      ],
    });
  });
  afterAll(() => drive.close());

  test('on a route by hand: 404 without view, 403 that names the action, and the answer with both', async () => {
    const id = await drive.doc('by hand');
    expect((await drive.ask('bob', 'GET', `hand/${id}`)).status).toBe(404);
    await grant(database.db, { subject: `user:${drive.user('bob').id}`, action: 'change', object: { type: docs, id } });
    expect((await drive.ask('bob', 'GET', `hand/${id}`)).status).toBe(404);
    await grant(database.db, { subject: `user:${drive.user('bob').id}`, set: 'viewer', object: { type: docs, id } });
    const refused = await drive.ask('bob', 'GET', `hand/${id}`);
    expect([refused.status, refused.body.code, refused.body.action]).toEqual([403, 'permission_denied', 'change']);
    await grant(database.db, { subject: `user:${drive.user('bob').id}`, set: 'editor', object: { type: docs, id } });
    for (const name of ['bob', 'ann', 'root']) expect([name, (await drive.ask(name, 'GET', `hand/${id}`)).status]).toEqual([name, 204]);
    expect((await drive.ask(null, 'GET', `hand/${id}`)).status).toBe(401);
    expect((await drive.ask('ida', 'GET', `hand/${id}`)).status).toBe(404);
  });

  test('a hidden object takes as many statements as a missing one, and one of them decides', async () => {
    const [hidden, inFolder] = [await drive.doc('hidden'), await drive.doc('hidden in a folder', { folder: await drive.folder('deep') })];
    await drive.group('counted', 'dan');
    const statements = async (person: string, path: string) => {
      const { result, count } = await countQueries(() => drive.ask(person, 'GET', path));
      return [result.status, count];
    };
    for (const route of ['hand', 'hand/either']) {
      const missing = await statements('dan', `${route}/01890000-0000-7000-8000-000000000000`);
      for (const id of [hidden, inFolder]) expect([route, await statements('dan', `${route}/${id}`)]).toEqual([route, missing]);
      expect(missing[0]).toBe(404);
    }
    // The row, the groups of the caller, the decision.
    expect(await statements('dan', `hand/${hidden}`)).toEqual([404, 3]);
    await grant(database.db, { subject: `user:${drive.user('dan').id}`, set: 'viewer', object: { type: docs, id: hidden } });
    expect(await statements('dan', `hand/${hidden}`)).toEqual([403, 3]);
  });

  test('as a rule about a field it decides per row, and the list selects what it reads and no other column', async () => {
    const make = async (person: string, code: string) =>
      (await drive.ask(person, 'POST', 'letters', { code, text: 'long' })).body.id as string;
    const [own, given] = [await make('eve', 'c-1'), await make('ann', 'c-2')];
    await grant(database.db, { subject: `user:${drive.user('eve').id}`, action: 'view', object: { type: letters, id: given } });
    const texts: string[] = [];
    const { body } = await observeQueries(
      ({ sql }) => void texts.push(sql),
      () => drive.ask('eve', 'GET', 'letters?fields=code'),
    );
    const codes = Object.fromEntries(body.items.map(({ id, code }: { id: string; code?: string }) => [id, code]));
    expect([codes[own], codes[given]]).toEqual(['c-1', undefined]);
    const statement = texts.find((sql) => sql.includes('code')) ?? '';
    const selected = statement.slice(0, statement.indexOf(' from ')).matchAll(/t0\."?(\w+)"?/g);
    expect([...selected].map(([, name]) => name as string).toSorted()).toEqual(['code', 'id', 'owner_id']);
  });

  test('combines with not and any', async () => {
    const id = await drive.doc('combined');
    await grant(database.db, { subject: `user:${drive.user('bob').id}`, set: 'viewer', object: { type: docs, id } });
    expect((await drive.ask('bob', 'GET', `hand/unless/${id}`)).status).toBe(204);
    await grant(database.db, { subject: `user:${drive.user('bob').id}`, set: 'sender', object: { type: docs, id } });
    expect((await drive.ask('bob', 'GET', `hand/unless/${id}`)).status).toBe(403);
    expect((await drive.ask('root', 'GET', `hand/unless/${id}`)).status).toBe(204);
  });

  test('grantedCondition filters statements of the repository and of Kysely, the owner’s rows included', async () => {
    const [own, given, other] = [await drive.doc('c own', { owner: 'cid' }), await drive.doc('c given'), await drive.doc('c other')];
    await grant(database.db, { subject: `user:${drive.user('cid').id}`, set: 'editor', object: { type: docs, id: given } });
    const where = await grantedCondition(database.db, { user: drive.user('cid'), tenant: 'north' }, docs, 'change');
    const found = (await list(database.db, docs, { where: where as never, orderBy: ['id'] })).map(({ id }) => id);
    expect(found).toEqual([own, given].toSorted());
    const built = await kyselyOf<{ docs: { id: string } }>(database.db)
      .selectFrom('docs')
      .select('id')
      .where(whereExpression(database.db, docs, where))
      .execute();
    expect(built.map(({ id }) => id).toSorted()).toEqual(found);
    expect(found).not.toContain(other);
    await expect(grantedCondition(database.db, { user: drive.user('cid'), tenant: 'north' }, docs, 'fly')).rejects.toThrow(
      "no action 'fly'",
    );
  });

  test('a backend of rules decides instead of grants, in lists and for one row', async () => {
    const make = async (level: number) => (await drive.ask('ann', 'POST', 'memos', { level })).body.id as string;
    const [low, middle, high] = [await make(1), await make(4), await make(9)];
    expect((await drive.ask('bob', 'GET', 'memos')).body.items.map(({ level }: { level: number }) => level)).toEqual([4, 1]);
    expect((await drive.ask('bob', 'GET', `memos/${high}`)).status).toBe(404);
    // A rule that cannot say which rows gives none: nothing is changed by those it would have to be asked about one by one.
    for (const id of [low, middle]) expect((await drive.ask('bob', 'PATCH', `memos/${id}`, { level: 2 })).body.action).toBe('change');
    expect((await drive.ask('ann', 'PATCH', `memos/${high}`, { level: 8 })).status).toBe(200);
    expect((await drive.ask('bob', 'DELETE', `memos/${low}`)).body.action).toBe('delete');
  });
});
