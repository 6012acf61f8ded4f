import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import type { User } from '../auth/people/principal.ts';
import type { UserTable } from '../auth/people/user-table.ts';
import type { Authenticator } from '../auth/request/authenticator.ts';
import { createTable, type Database, type Db, migration, model, openDatabase, t } from '../db/index.ts';
import { hasRule, isAuthenticated, isStaff } from '../permissions/index.ts';
import { describeDatabases } from '../testing/databases.ts';
import { testApp, type TestApp } from '../testing/test-app.ts';
import { CrudController, crudOf, many, people, resource, visibleTo } from './index.ts';

const ANN = '00000000-0000-7000-8000-0000000000a1';
const BOB = '00000000-0000-7000-8000-0000000000b2';
const GONE = '00000000-0000-7000-8000-0000000000c3';

/** Users in whatever table: each case has ids of ann, of bob and of a user who was deleted. */
const cases = {
  'uuid ids in text columns': { id: 'uuid', column: t.text(60), ann: ANN, bob: BOB, gone: GONE },
  'uuid ids in uuid columns': { id: 'uuid', column: t.uuid(), ann: ANN, bob: BOB, gone: GONE },
  'text ids in text columns': { id: 'text', column: t.text(60), ann: 'no-ann', bob: 'no-bob', gone: 'no-gone' },
  'text ids in uuid columns': { id: 'text', column: t.uuid(), ann: ANN, bob: BOB, gone: GONE },
  'bigint ids in text columns': { id: 'bigint', column: t.text(60), ann: '7', bob: '900719925474099', gone: '8' },
  'bigint ids in bigint columns': { id: 'bigint', column: t.bigint(), ann: '7', bob: '900719925474099', gone: '8' },
  'integer ids in int columns': { id: 'integer', column: t.int(), ann: '7', bob: '9', gone: '8' },
} as const;

const tableOf = (idType: NonNullable<UserTable['idType']>): UserTable => ({
  name: 'members',
  id: 'member_no',
  username: 'handle',
  email: 'mail',
  isActive: 'enabled',
  isStaff: 'staff',
  isSuperuser: 'root',
  idType,
});

async function makeUsers(db: Db, idType: string, ids: Readonly<Record<'ann' | 'bob', string>>, flag = 'text'): Promise<void> {
  await db.query(
    `create table members (member_no ${idType} primary key, handle text not null, mail text, enabled ${flag} not null, staff text, root text)`,
  );
  for (const [name, enabled] of [
    ['ann', 'yes'],
    ['bob', 'no'],
  ] as const)
    await db.query('insert into members values ($1, $2, null, $3, $4, $4)', [ids[name], name, enabled, 'no']);
}

function byName(ids: Readonly<Record<string, string>>): Authenticator {
  return {
    name: 'name',
    securityScheme: { type: 'http', scheme: 'name' },
    authenticate({ headers: { 'x-user': name } }) {
      if (typeof name !== 'string') return null;
      const user: User = {
        id: ids[name] ?? GONE,
        username: name,
        email: null,
        is_active: true,
        is_staff: name === 'sue',
        is_superuser: false,
      };
      return { user, scheme: 'name', scopes: null };
    },
  };
}

async function get(app: TestApp, who: string, path: string, method: 'GET' | 'QUERY' = 'GET', payload?: object) {
  const response = await app.inject({
    method: method as 'GET',
    url: `/v1/${path}`,
    headers: { 'x-user': who },
    ...(payload && { payload }),
  });
  const text = response.body;
  return { status: response.statusCode, text, body: text.startsWith('{') && !text.includes('\n') ? JSON.parse(text) : text };
}

const open = { permission: isAuthenticated } as const;

describe.each(Object.entries(cases))('%s', (_name, { id: idType, column, ...ids }) => {
  describeDatabases('people', (database) => {
    // The types of the cases differ; the resource is the same for all.
    const owner = column.nullable() as unknown as ReturnType<typeof t.text>;
    const notes = model('notes', { id: t.int().pk(), owner_id: owner, title: t.text(40) });
    const noteResource = resource(notes, {
      unscoped: true,
      relations: { owner: people('owner_id') },
      computed: {
        by: {
          requires: ['owner.name', 'title'],
          response: z.string(),
          value: ({ owner, title }) => `${title} by ${owner?.name ?? 'nobody'}`,
        },
      },
    });
    class Notes extends CrudController(noteResource, {
      ...open,
      expand: ['owner'],
      filters: { 'owner.name': ['eq', 'contains'], 'owner.is_active': ['eq'], 'owner.id': ['eq', 'in'] },
      search: ['title', 'owner.name'],
      export: ['csv', 'jsonl'],
    }) {}
    const table = tableOf(idType);
    const module = { name: 'notes', models: [notes], migrations: [migration('0001_initial', [createTable('notes', notes.columns)])] };
    let app: TestApp;

    beforeAll(async () => {
      await makeUsers(database.db, idType, ids);
      app = await testApp({
        database: database.db,
        authenticators: [byName(ids)],
        users: { table },
        modules: [module],
        mount: { '/v1': { '/notes': Notes } },
      });
      const rows = [ids.ann, ids.bob, ids.gone, null, ...(column.settings.kind === 'text' ? ['', 'not an id'] : [])];
      for (const [index, owner] of rows.entries())
        await database.db.query('insert into notes values ($1, $2, $3)', [index + 1, owner, `n${index + 1}`]);
    });
    afterAll(() => app.close());

    const idsOf = async (path: string, method: 'GET' | 'QUERY' = 'GET', payload?: object) => {
      const { status, body } = await get(app, 'ann', path, method, payload);
      expect({ path, status }).toEqual({ path, status: 200 });
      return (body.items as { id: number }[]).map(({ id }) => id).toSorted((a, b) => a - b);
    };

    test('a row shows its user, whatever table and type; null where there is no such user', async () => {
      const { body: plain } = await get(app, 'ann', 'notes?expand=owner');
      const owners = Object.fromEntries((plain.items as { id: number; owner: unknown }[]).map(({ id, owner }) => [id, owner]));
      expect(owners[1]).toEqual({ id: ids.ann, name: 'ann', is_active: true });
      expect(owners[2]).toEqual({ id: ids.bob, name: 'bob', is_active: false });
      expect(
        Object.values(owners)
          .slice(2)
          .every((each) => each === null),
      ).toBe(true);
      expect((await get(app, 'ann', 'notes/2?expand=owner&fields=title,owner.is_active')).body).toEqual({
        id: 2,
        title: 'n2',
        by: undefined,
        owner: { is_active: false },
      });
      expect((plain.items as { by: string }[]).map(({ by }) => by)).toEqual(
        expect.arrayContaining(['n1 by ann', 'n2 by bob', 'n3 by nobody']),
      );
    });

    test('filters and search by the name and the activity of the user', async () => {
      expect(await idsOf('notes?owner__name=ann')).toEqual([1]);
      expect(await idsOf('notes?owner__name__contains=B')).toEqual([2]);
      expect(await idsOf('notes?owner__is_active=false')).toEqual([2]);
      expect(await idsOf(`notes?owner__id=${ids.bob}`)).toEqual([2]);
      expect(await idsOf('notes?search=bo')).toEqual([2]);
      expect(await idsOf('notes?search=n1%20ann')).toEqual([1]);
      expect(await idsOf('notes', 'QUERY', { where: { owner: { is: { is_active: true } } } })).toEqual([1]);
      expect(await idsOf('notes', 'QUERY', { where: { not: { owner: { is: { name: 'ann' } } } } })).not.toContain(1);
    });

    test('exports have the user, too', async () => {
      const { text } = await get(
        app,
        'ann',
        'notes/export?format=csv&expand=owner&owner__name=ann&fields=title,owner.name,owner.is_active',
      );
      expect(text.split('\r\n').slice(0, 2)).toEqual(['id,title,owner.name,owner.is_active', '1,n1,ann,true']);
      const { text: lines } = await get(app, 'ann', 'notes/export?format=jsonl&expand=owner&owner__name=bob');
      expect(JSON.parse(lines)).toMatchObject({ id: 2, owner: { id: ids.bob, is_active: false } });
    });
  });
});

describeDatabases('people beside rules', (database) => {
  const ids = { ann: ANN, bob: BOB, sue: GONE };
  const folders = model('folders', {
    id: t.uuidv7().pk(),
    owner_id: t.text(60).readOnly(),
    team: t.text(20).readOnly(),
    title: t.text(40),
  });
  const files = model('files', { id: t.uuidv7().pk(), folder_id: t.ref(() => folders), made_by: t.text(60), name: t.text(40) });
  const relations = { owner: people('owner_id'), files: many(() => files, 'folder_id') };
  const folderResource = resource(folders, {
    owner: 'owner_id',
    tenant: 'team',
    relations,
    fields: { owner_id: visibleTo(hasRule('back-office')) },
    audiences: { staff: { rows: { owner: { is: { is_active: true } } }, tenant: 'all' } },
  });
  const fileResource = resource(files, { rows: () => ({ made: { is: { is_active: true } } }), relations: { made: people('made_by') } });
  const offered = { expand: ['owner', 'files.made'], filters: { 'owner.name': ['eq'] } } as const;
  class Mine extends CrudController(folderResource, { ...open, ...offered }) {}
  class BackOffice extends CrudController(folderResource, { permission: isStaff, audience: 'staff', ...offered }) {}
  const module = {
    name: 'folders',
    models: [folders, files],
    resources: [fileResource],
    migrations: [
      migration('0001_initial', [
        createTable('folders', folders.columns),
        createTable('files', { ...files.columns, folder_id: t.ref('folders') }),
      ]),
    ],
  };
  let app: TestApp;

  beforeAll(async () => {
    await makeUsers(database.db, 'uuid', ids, 'boolean');
    app = await testApp({
      database: database.db,
      authenticators: [byName(ids)],
      users: { table: tableOf('uuid') },
      tenant: () => 'north',
      rules: { 'back-office': ({ audience }) => audience === 'staff' },
      modules: [module],
      mount: { '/v1': { '/folders': Mine, '/back-office': BackOffice } },
    });
    for (const name of ['ann', 'bob'] as const) {
      const folder = await folderOf(name).write().create({ title: name });
      for (const made_by of [ANN, BOB, ''])
        await database.db.query('insert into files values ($1, $2, $3, $4)', [
          crypto.randomUUID(),
          folder.id,
          made_by,
          made_by === ANN ? 'a' : 'b',
        ]);
    }
  });
  afterAll(() => app.close());

  const folderOf = (name: 'ann' | 'bob') => {
    const user: User = { id: ids[name], username: name, email: null, is_active: true, is_staff: false, is_superuser: false };
    return crudOf(app.app, folderResource).as({ user, tenant: 'north' });
  };

  test('a caller who does not see the column can neither follow the relation nor filter by it', async () => {
    expect((await get(app, 'ann', 'folders?expand=owner')).status).toBe(422);
    expect((await get(app, 'ann', 'folders?owner__name=bob')).status).toBe(422);
    expect((await get(app, 'ann', 'folders?owner__name=bob')).body.errors[0].code).toBe('unknown_field');
    expect((await get(app, 'ann', 'folders')).body.items).toHaveLength(1);
  });

  test('a rule about the user of a row decides which rows an audience and a relation show', async () => {
    const { body } = await get(app, 'sue', 'back-office?expand=owner,files.made');
    expect((body.items as { title: string }[]).map(({ title }) => title)).toEqual(['ann']);
    expect(body.items[0].owner).toEqual({ id: ANN, name: 'ann', is_active: true });
    expect((body.items[0].files as { made: unknown }[]).map(({ made }) => made)).toEqual([{ id: ANN, name: 'ann', is_active: true }]);
  });

  test('a written row is shown with its user', async () => {
    const response = await app.inject({
      method: 'PATCH',
      url: `/v1/back-office/${(await get(app, 'sue', 'back-office')).body.items[0].id as string}?expand=owner`,
      headers: { 'x-user': 'sue' },
      payload: { title: 'ann' },
    });
    expect(response.json()).toMatchObject({ title: 'ann', owner: { id: ANN, name: 'ann', is_active: true } });
  });
});

describeDatabases('users in another database', (database) => {
  const ids = { ann: ANN, bob: BOB };
  const logs = model('logs', { id: t.int().pk(), user_id: t.text(60), text: t.text(40) });
  const relations = { user: people('user_id') };
  const logResource = resource(logs, { unscoped: true, relations, using: 'archive' });
  class Logs extends CrudController(logResource, { ...open, expand: ['user'], export: ['csv'] }) {}
  const module = {
    name: 'logs',
    models: [logs],
    databases: ['archive'],
    migrations: [migration('0001_initial', [createTable('logs', logs.columns)])],
  };
  let archive: Database;
  let app: TestApp;
  const start = (controller: unknown) =>
    testApp({
      database: { default: database.db, archive },
      authenticators: [byName(ids)],
      users: { table: tableOf('uuid') },
      modules: [module],
      mount: { '/v1': { '/logs': controller as typeof Logs } },
    });

  beforeAll(async () => {
    archive = await openDatabase('sqlite::memory:', { name: 'archive' });
    await makeUsers(database.db, 'uuid', ids);
    app = await start(Logs);
    for (const [index, user] of [ANN, BOB, '', 'x'].entries())
      await archive.query('insert into logs values ($1, $2, $3)', [index + 1, user, 'l']);
  });
  afterAll(async () => {
    await app.close();
    await archive.close();
  });

  test('their names are loaded with one statement for a page', async () => {
    const { body } = await get(app, 'ann', 'logs?expand=user');
    const users = Object.fromEntries((body.items as { id: number; user: unknown }[]).map(({ id, user }) => [id, user]));
    expect(users).toEqual({
      1: { id: ANN, name: 'ann', is_active: true },
      2: { id: BOB, name: 'bob', is_active: false },
      3: null,
      4: null,
    });
    expect((await get(app, 'ann', 'logs/2?expand=user&fields=user.name')).body).toEqual({ id: 2, user: { name: 'bob' } });
    const { text } = await get(app, 'ann', 'logs/export?format=csv&expand=user&fields=user.name');
    expect(text.split('\r\n').sort().join('|')).toContain('1,ann|2,bob');
  });

  test('the app does not start where a condition would lead there', async () => {
    const wrong = {
      filters: { 'user.name': ['eq'] as const },
      search: ['user.name'] as const,
    };
    for (const [name, value] of Object.entries(wrong)) {
      class Wrong extends CrudController(logResource, { ...open, [name]: value }) {}
      await expect(start(Wrong)).rejects.toThrow(/user\.name/);
    }
  });
});
