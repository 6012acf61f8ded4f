import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { AdminApp, type Browser } from '../admin/admin-app.ts';
import { modelResource } from '../../src/admin/index.ts';
import { createApp } from '../../src/app/index.ts';
import { accounts } from '../../src/contrib/accounts/index.ts';
import { groups, sessions, users } from '../../src/contrib/accounts/models.ts';
import { apiKeys, createApiKey } from '../../src/contrib/apikeys/index.ts';
import { audit } from '../../src/contrib/audit/index.ts';
import { objectGrants } from '../../src/contrib/grants/index.ts';
import { grantModel } from '../../src/contrib/grants/models.ts';
import { jobs } from '../../src/contrib/jobs/index.ts';
import { diskStore, uploads } from '../../src/contrib/uploads/index.ts';
import { webhooks } from '../../src/contrib/webhooks/index.ts';
import { webhookEndpoints } from '../../src/contrib/webhooks/models.ts';
import { crudOf, CrudController, many, one, resource, visibleTo, writableBy } from '../../src/crud/index.ts';
import { createTable, find, insert, migration, model, t } from '../../src/db/index.ts';
import { hasScopes, isAuthenticated, isStaff, isSuperuser } from '../../src/permissions/index.ts';
import { describeDatabases } from '../../src/testing/databases.ts';

const FLAGS = { is_staff: true, is_superuser: true, is_active: true };

/** Callers reach their own row, by every operation. */
const people = resource(users, { name: 'person', rows: ({ user }) => ({ id: user?.id ?? '' }), admin: { rows: true } });
class PersonController extends CrudController(people, {
  permission: isAuthenticated,
  operations: { create: false },
  bulk: { update: true },
}) {}

/** A model of the app whose column `role` is guarded, with children that have one, too. */
const members = model('members', {
  id: t.uuidv7().pk(),
  owner_id: t.uuid().readOnly(),
  name: t.text(50).unique(),
  role: t.enum(['guest', 'boss']).dbDefault('guest').guarded(),
  note: t.text(50).nullable().guarded(),
});
const badges = model('badges', {
  id: t.uuidv7().pk(),
  member_id: t.ref(() => members),
  label: t.text(20),
  level: t.int().dbDefault(0).guarded(),
});
const memberResource = resource(members, {
  owner: { column: 'owner_id', unless: isStaff },
  admin: { rows: true },
  relations: { badges: many(() => badges, 'member_id', { limit: 20 }) },
  nested: { badges: { input: ['label'] } },
  // Opened to superusers; a rule about who sees a column opens nothing.
  fields: { role: writableBy(isSuperuser), note: visibleTo(isAuthenticated) },
});
const badgeResource = resource(badges, {
  rows: () => ({ member: { is: {} } }),
  relations: { member: one(() => members, 'member_id') },
});
class MemberController extends CrudController(memberResource, {
  permission: isAuthenticated,
  bulk: { create: true, update: true },
  import: { formats: ['jsonl'], by: 'name' },
}) {}

const club = {
  name: 'club',
  models: [members, badges],
  resources: [badgeResource],
  migrations: [
    migration('0001_initial', [
      createTable('members', members.columns),
      createTable('badges', { ...badges.columns, member_id: t.ref('members') }),
    ]),
  ],
  admin: {
    resources: [
      modelResource(sessions, { name: 'plain-sessions' }),
      modelResource(memberResource),
      modelResource(people, { name: 'people' }),
    ],
  },
};

describeDatabases('guarded columns', (database) => {
  let site: AdminApp;
  let [root, staff]: Browser[] = [];
  let mallory = '';
  let key = '';
  beforeAll(async () => {
    site = await new AdminApp(database.db, [apiKeys(), club], {
      mount: { '/v1': { '/people': PersonController, '/members': MemberController } },
    }).ready();
    mallory = (await site.newUser({ username: 'mallory' })).id;
    staff = await site.browser({ username: 'clerk', is_staff: true });
    root = await site.browser({ username: 'root', is_staff: true, is_superuser: true });
    const issued = await createApiKey(database.db, { user: mallory, name: 'CI', scopes: ['people:read'] });
    key = issued.raw;
  });
  afterAll(() => site.close());

  const stored = async () => {
    const row = await find(database.db, users, mallory);
    return [row?.username, row?.is_staff, row?.is_superuser, row?.is_active];
  };
  const call = async (who: string, method: string, url: string, payload: unknown, type = 'application/json') => {
    const response = await site.app.inject({
      method: method as 'POST',
      url: `/v1/${url}`,
      headers: { ...(who === 'key' ? { 'x-api-key': key } : {}), 'content-type': type },
      payload: typeof payload === 'string' ? payload : JSON.stringify(payload),
    });
    return { status: response.statusCode, body: response.json() as Record<string, never> };
  };

  test('nobody makes themselves a superuser through a resource over users', async () => {
    const id = mallory;
    const before = await stored();
    for (const [method, url, body] of [
      ['PATCH', `people/${id}`, FLAGS],
      ['PATCH', `people/${id}`, { is_superuser: true }],
      ['PATCH', `people/${id}`, { username: 'root2' }],
      ['PUT', `people/${id}`, FLAGS],
      ['POST', 'people/bulk-update', { items: [{ id, ...FLAGS }] }],
      ['POST', 'people/bulk-update', { ids: [id], changes: FLAGS }],
    ] as const) {
      const { status, body: answer } = await call('key', method, url, body);
      expect([method, url, status, (answer['errors'] as unknown as { code: string }[])[0]?.code]).toEqual([
        method,
        url,
        422,
        'unknown_field',
      ]);
    }
    expect(await stored()).toEqual(before);
  });

  test('programs cannot pass on what a client sent', async () => {
    const user = await site.app.users?.findById(database.db, mallory);
    const program = crudOf(site.app, people).as({ user: user ?? null });
    await expect(program.write().update(mallory, { is_superuser: true })).rejects.toThrow(
      'does not write "is_superuser": the column is guarded',
    );
    const member = crudOf(site.app, memberResource).as({ user: user ?? null });
    await expect(member.write().create({ name: 'x', note: 'y' })).rejects.toThrow('does not write "note"');
    // The resource opens the role, and a program decides itself who may.
    expect((await member.write().create({ name: 'by program', role: 'boss' })).role).toBe('boss');
  });

  test('forms of the admin site do not set them: neither of a model nor of a resource', async () => {
    const before = await stored();
    const [session] = await database.db.query<{ id: string }>('select id from sessions where user_id = $1', [staff?.userId]);
    for (const [name, id, values] of [
      ['people', mallory, { username: 'made', ...FLAGS }],
      ['plain-sessions', session?.id as string, { user_id: root?.userId, token_digest: 'a'.repeat(64) }],
    ] as const) {
      const shown = await site.get(root as Browser, `resources/${name}/${id}`);
      expect([name, shown.status, shown.body.form, shown.body.removable]).toEqual([name, 200, undefined, false]);
      for (const [method, path] of [
        ['PATCH', `resources/${name}/${id}`],
        ['DELETE', `resources/${name}/${id}`],
        ['POST', `resources/${name}`],
      ] as const)
        expect([method, path, (await site.send(root as Browser, method, path, values)).status >= 400]).toEqual([method, path, true]);
    }
    expect(await database.db.query('select user_id from sessions where id = $1', [session?.id])).toEqual([{ user_id: staff?.userId }]);
    expect(await stored()).toEqual(before);
  });

  describe('a column that a resource opens by writableBy', () => {
    const session = (browser: Browser | undefined, method: string, path: string, payload: unknown) =>
      site.app.inject({
        method: method as 'PATCH',
        url: `/v1/${path}`,
        headers: {
          host: 'api.example.com',
          cookie: browser?.cookie as string,
          'x-csrf-token': browser?.csrf as string,
          'content-type': typeof payload === 'string' ? 'application/x-ndjson' : 'application/json',
        },
        payload: typeof payload === 'string' ? payload : JSON.stringify(payload),
      });
    test('is written by whom the rule admits, on every path, and by nobody else', async () => {
      const make = async (name: string, browser: Browser | undefined) =>
        (await insert(database.db, members, { name, owner_id: browser?.userId as string })).id;
      const paths = (id: string, name: string, role: string): readonly (readonly [string, string, unknown])[] => [
        ['PATCH', `members/${id}`, { role }],
        ['PUT', `members/${id}`, { name, role }],
        ['POST', 'members/bulk-update', { items: [{ id, role }] }],
        ['POST', 'members/bulk-update', { ids: [id], changes: { role } }],
        ['POST', 'members', { name: `${name} 2`, role }],
        ['POST', 'members/bulk', { items: [{ name: `${name} 3`, role }] }],
        ['POST', 'members/import?mode=upsert', `${JSON.stringify({ name, role })}\n`],
      ];
      const own = await make('own', staff);
      for (const [method, path, body] of paths(own, 'own', 'boss')) {
        const refused = await session(staff, method, path, body);
        expect([method, path, refused.statusCode, refused.json().code]).toEqual([
          method,
          path,
          403,
          expect.stringMatching(/field|permission/),
        ]);
      }
      expect((await find(database.db, members, own))?.role).toBe('guest');
      const roots = await make('roots', root);
      for (const [method, path, body] of paths(roots, 'roots', 'boss')) {
        await database.db.query("update members set role = 'guest' where id = $1", [roots]);
        const done = await session(root, method, path, body);
        expect([method, path, done.statusCode < 300, done.body.includes('"boss"') || path.includes('import')]).toEqual([
          method,
          path,
          true,
          true,
        ]);
      }
    });
    test('what is not opened is unknown on every path, to superusers, too', async () => {
      const id = (await insert(database.db, members, { name: 'closed', owner_id: root?.userId as string })).id;
      for (const [method, path, body] of [
        ['PATCH', `members/${id}`, { note: 'x' }],
        ['POST', 'members', { name: 'n', note: 'x' }],
        ['POST', 'members/bulk', { items: [{ name: 'n', note: 'x' }] }],
        ['PATCH', `members/${id}`, { badges: [{ label: 'a', level: 9 }] }],
        ['POST', 'members/import', `${JSON.stringify({ name: 'n', note: 'x' })}\n`],
      ] as const) {
        const refused = await session(root, method, path, body);
        expect([path, body, refused.statusCode < 300 && !path.includes('import')]).toEqual([path, body, false]);
      }
      const rows = await database.db.query('select id from members where note is not null');
      expect([rows, await database.db.query('select id from badges where level <> 0')]).toEqual([[], []]);
    });
    test('is a field of the admin site’s form for staff whom the rule admits', async () => {
      const id = (await insert(database.db, members, { name: 'form', owner_id: root?.userId as string })).id;
      const { body } = await site.get(root as Browser, `resources/members/${id}`);
      expect(body.form.fields.map(({ name }: { name: string }) => name)).toEqual(['name', 'role']);
      expect((await site.send(staff as Browser, 'PATCH', `resources/members/${id}`, { role: 'boss' })).status).toBe(403);
      expect((await site.send(root as Browser, 'PATCH', `resources/members/${id}`, { role: 'boss' })).status).toBe(200);
      expect((await find(database.db, members, id))?.role).toBe('boss');
    });
  });
});

describe('start-up', () => {
  const start = (mounted: new () => object, modules: readonly object[] = [accounts()]) =>
    createApp({ database: 'sqlite::memory:', modules: modules as never, mount: { '/v1': { '/things': mounted as never } } });
  const faultsOf = (work: () => { readonly warnings: readonly { readonly id: string; readonly message: string }[] }) => {
    try {
      return work()
        .warnings.filter(({ id }) => id === 'W013')
        .map(({ message }) => message);
    } catch (error) {
      return (error as Error).message;
    }
  };

  test('input that names a guarded column is refused, with what to write instead', () => {
    class Users extends CrudController(resource(users, { unscoped: true, input: ['is_staff'] } as never) as never, {
      permission: hasScopes(),
      operations: { create: false },
    }) {}
    expect(faultsOf(() => start(Users))).toMatch(
      /E012.*input takes "is_staff", which clients cannot send.*fields: \{ is_staff: writableBy\(isSuperuser\) \}/s,
    );
  });

  test('an opened column and a deletion are warnings', () => {
    class Users extends CrudController(resource(users, { unscoped: true, fields: { is_staff: writableBy(isSuperuser) } }), {
      permission: hasScopes(),
      operations: { create: false },
    }) {}
    expect(faultsOf(() => start(Users))).toEqual([
      expect.stringContaining('opens the guarded column "is_staff" to isSuperuser'),
      expect.stringContaining('offers destroy of "users", whose rows a module manages'),
    ]);
    class Kept extends CrudController(resource(users, { unscoped: true }), {
      permission: hasScopes(),
      operations: { create: false, destroy: false },
    }) {}
    expect(faultsOf(() => start(Kept))).toEqual([]);
  });

  test('creating rows of a module does not start', () => {
    for (const each of [users, sessions, groups, grantModel, webhookEndpoints]) {
      class Things extends CrudController(resource(each as never, { unscoped: true }) as never, { permission: hasScopes() }) {}
      expect(faultsOf(() => start(Things, [accounts(), webhooks(), objectGrants({ objects: [] })]))).toMatch(/E015/);
    }
  });

  test('no model of a module takes anything from clients', () => {
    const all = [
      accounts(),
      apiKeys(),
      audit(),
      objectGrants({ objects: [] }),
      jobs({ jobs: [] }),
      webhooks(),
      uploads({ store: diskStore({ folder: '.' }) }),
    ];
    const models = all.flatMap(({ models: own = [] }) => own);
    expect(models.length).toBeGreaterThan(20);
    for (const { name, columns } of models)
      for (const [column, { settings }] of Object.entries(columns)) {
        const isOwn = settings.readOnly || (settings.primaryKey && settings.default !== undefined);
        expect([name, column, isOwn]).toEqual([name, column, true]);
      }
  });
});
