import { afterAll, beforeAll, expect, test } from 'vitest';
import { createApp } from '../src/app/assemble/create-app.ts';
import { migrateApp } from '../src/app/data/migration-modules.ts';
import type { App } from '../src/app/index.ts';
import type { User, UserDirectory } from '../src/auth/index.ts';
import { accounts, accountsOf, addGroupMember, createGroup, createUser, deleteUser, logIn, users } from '../src/contrib/accounts/index.ts';
import { apiKeys, createApiKey, verifyApiKey } from '../src/contrib/apikeys/index.ts';
import { audit } from '../src/contrib/audit/index.ts';
import { actionsOf, grant, objectActions, objectGrants } from '../src/contrib/grants/index.ts';
import { createEndpoint, webhooks } from '../src/contrib/webhooks/index.ts';
import { createTable, insert, migration, model, t } from '../src/db/index.ts';
import { releaseLegalHold, setLegalHold } from '../src/db/subjects/erasure-state.ts';
import { describeDatabases } from '../src/testing/databases.ts';
import { fakeClock } from '../src/testing/fake-clock.ts';
import { memoryStorage } from '../src/throttle/index.ts';
import { auditLog } from './audit-log.ts';

const papers = model('papers', { id: t.uuidv7().pk(), owner_id: t.ref(() => users) });
const drafts = model('drafts', { id: t.uuidv7().pk(), owner_id: t.ref(() => users, { onDelete: 'cascade' }) });
const prints = model('prints', { id: t.uuidv7().pk(), made_by: t.ref(() => users, { onDelete: 'set null' }).nullable() });
const paperActions = objectActions(papers, { actions: ['view', 'change', 'share'], sets: { viewer: ['view'] }, owner: 'owner_id' });
const tables = {
  name: 'papers',
  requires: ['accounts'],
  models: [papers, drafts, prints],
  migrations: [
    migration('0001_initial', [
      createTable('papers', { ...papers.columns, owner_id: t.ref('users') }),
      createTable('drafts', { ...drafts.columns, owner_id: t.ref('users', { onDelete: 'cascade' }) }),
      createTable('prints', { ...prints.columns, made_by: t.ref('users', { onDelete: 'set null' }).nullable() }),
    ]),
  ],
};

describeDatabases('a user is deleted', (database) => {
  const clock = fakeClock();
  let app: App;
  beforeAll(async () => {
    app = createApp({
      database: database.db,
      clock,
      log: { level: 'silent' },
      throttleStorage: memoryStorage(),
      modules: [
        accounts({ passwordCost: { logN: 4, r: 8, p: 1 } }),
        audit(),
        apiKeys(),
        webhooks(),
        objectGrants({ objects: [paperActions] }),
        tables,
      ],
      mount: {},
    });
    await app.openDatabases();
    await migrateApp(app);
    await app.ready();
  });
  afterAll(() => app.close());

  const management = () => accountsOf(app.db).management('test', 'request-7');
  const person = (username: string) => createUser(app.db, { username, password: 'correct horse battery' }, management());
  const count = async (table: string, column: string, id: string) =>
    Number((await app.db.query<{ n: number }>(`select count(*) as n from ${table} where ${column} = $1`, [id]))[0]?.n);

  test('with its sessions, memberships, API keys, endpoints and grants, in one transaction that is audited', async () => {
    const [ada, bob] = [await person('ada'), await person('bob')];
    const paper = await insert(app.db, papers, { owner_id: bob.id });
    const object = { type: papers, id: paper.id };
    const group = await createGroup(app.db, { name: 'desk', tenantKey: null });
    await addGroupMember(app.db, group.id, ada.id);
    await grant(app.db, { subject: `user:${ada.id}`, set: 'viewer', object });
    const { raw } = await createApiKey(app.db, { user: ada, name: 'CI', scopes: ['papers:read'] });
    await createEndpoint(app.db, { owner: ada.id, url: 'https://example.com/hook', events: ['*'] });
    const attempt = { login: 'ada', password: 'correct horse battery', previousToken: null };
    await logIn(app.db, attempt, accountsOf(app.db).settings, clock);
    expect(await count('sessions', 'user_id', ada.id)).toBe(1);
    await insert(app.db, drafts, { owner_id: ada.id });
    const print = await insert(app.db, prints, { made_by: ada.id });
    await expect(
      app.db.transaction(async (tx) => {
        await deleteUser(tx, ada.id, management());
        throw new Error('undo');
      }),
    ).rejects.toThrow('undo');
    expect(await verifyApiKey(app.db, raw)).not.toBeNull();
    expect(await actionsOf(app.db, { user: ada, tenant: null }, object)).toEqual(new Set(['view']));

    await deleteUser(app.db, ada.id, management());
    expect(await verifyApiKey(app.db, raw)).toBeNull();
    for (const [table, column] of [
      ['users', 'id'],
      ['sessions', 'user_id'],
      ['group_members', 'user_id'],
      ['api_keys', 'owner_id'],
      ['webhook_endpoints', 'owner_id'],
      ['drafts', 'owner_id'],
    ] as const)
      expect([table, await count(table, column, ada.id)]).toEqual([table, 0]);
    expect(await count('grants', 'subject', `user:${ada.id}`)).toBe(0);
    expect(await app.db.query('select made_by from prints where id = $1', [print.id])).toEqual([{ made_by: null }]);
    const entries = await auditLog(app.db);
    for (const action of ['user.deleted', 'api_key.deleted', 'webhook_endpoint.deleted', 'grant.revoked'])
      expect([action, entries.filter((entry) => entry.action === action).map(({ request_id }) => request_id)]).toEqual([
        action,
        ['request-7'],
      ]);
    // Another user who gets the same id has none of it.
    await app.db.query('insert into users (id, username, created_at, updated_at) values ($1, $2, $3, $3)', [ada.id, 'ada2', clock.now()]);
    const again = (await app.users?.findById(app.db, ada.id)) as User;
    expect(await actionsOf(app.db, { user: again, tenant: null }, object)).toEqual(new Set());
    expect(await verifyApiKey(app.db, raw)).toBeNull();
  });

  test('not while a legal hold keeps the rows that would go with it', async () => {
    const [gus, mia] = [await person('gus'), await person('mia')];
    const hold = { kind: 'person', id: gus.id } as const;
    await insert(app.db, drafts, { owner_id: gus.id });
    await app.db.transaction((tx) => setLegalHold(tx, hold, { reason: 'case 7', by: null }));
    await expect(deleteUser(app.db, gus.id, management())).rejects.toMatchObject({
      status: 409,
      code: 'user_in_use',
      detail: expect.stringContaining('A legal hold keeps the rows of gus') as string,
    });
    expect(await count('drafts', 'owner_id', gus.id)).toBe(1);
    await deleteUser(app.db, mia.id, management());
    await app.db.transaction((tx) => releaseLegalHold(tx, hold));
    await deleteUser(app.db, gus.id, management());
    expect(await count('drafts', 'owner_id', gus.id)).toBe(0);
  });

  test('not while rows refer to it: 409 names them all, and nothing is gone', async () => {
    const eve = await person('eve');
    const [paper] = [await insert(app.db, papers, { owner_id: eve.id })];
    await insert(app.db, drafts, { owner_id: eve.id });
    await expect(deleteUser(app.db, eve.id, management())).rejects.toMatchObject({
      status: 409,
      code: 'user_in_use',
      detail: expect.stringContaining('Rows of papers (owner_id) refer to eve'),
      extensions: { references: ['papers (owner_id)'] },
    });
    expect(await count('drafts', 'owner_id', eve.id)).toBe(1);
    await app.db.query('delete from papers where id = $1', [paper.id]);
    await deleteUser(app.db, eve.id, management());
    expect(await count('users', 'id', eve.id)).toBe(0);
    for (const id of [eve.id, 'nonsense'])
      await expect(deleteUser(app.db, id, management())).rejects.toMatchObject({ status: 404, code: 'user_not_found' });
  });

  test('once, of many deletions at the same time', async () => {
    const { id } = await person('twice');
    const results = await Promise.allSettled(Array.from({ length: 5 }, () => deleteUser(app.db, id, management())));
    expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
  });

  test('a row that is made for the user at the same moment refuses the deletion, or is refused itself', async () => {
    for (let round = 0; round < 5; round += 1) {
      const { id } = await person(`raced-${round}`);
      const [made, deleted] = await Promise.allSettled([insert(app.db, papers, { owner_id: id }), deleteUser(app.db, id, management())]);
      expect([made.status, deleted.status].toSorted()).toEqual(['fulfilled', 'rejected']);
      expect(await count('papers', 'owner_id', id)).toBe(made.status === 'fulfilled' ? 1 : 0);
    }
  });
});

const members: UserDirectory = {
  table: {
    name: 'members',
    id: 'id',
    idType: 'text',
    username: 'handle',
    email: 'mail',
    isActive: 'enabled',
    isStaff: 'staff',
    isSuperuser: 'root',
  },
  async findById(db, id) {
    const [row] = await db.query<User>(
      'select id, handle as username, mail as email, enabled as is_active, staff as is_staff, root as is_superuser from members where id = $1',
      [id],
    );
    return row ?? null;
  },
  findByLogin: async () => null,
};
const memberColumns = {
  id: t.text(20).pk(),
  handle: t.text(50),
  mail: t.text(50).nullable(),
  enabled: t.bool().dbDefault(true),
  staff: t.bool().dbDefault(false),
  root: t.bool().dbDefault(false),
};
const memberModel = model('members', memberColumns);
const pages = model('pages', { id: t.uuidv7().pk(), owner_id: t.text(20) });
const pageActions = objectActions(pages, { actions: ['view'], owner: 'owner_id' });

describeDatabases('a user of the app’s own is deleted', (database) => {
  test('the listeners of the registry remove what the modules keep', async () => {
    const app = createApp({
      database: database.db,
      users: members,
      log: { level: 'silent' },
      modules: [
        apiKeys(),
        objectGrants({ objects: [pageActions] }),
        {
          name: 'own',
          models: [memberModel, pages],
          migrations: [migration('0001_initial', [createTable('members', memberColumns), createTable('pages', pages.columns)])],
        },
      ],
      mount: {},
    });
    try {
      await app.openDatabases();
      await migrateApp(app);
      await app.ready();
      const { db } = app;
      await insert(db, memberModel, { id: '7', handle: 'ada' });
      const page = await insert(db, pages, { owner_id: '8' });
      await grant(db, { subject: 'user:7', action: 'view', object: { type: pages, id: page.id } });
      const { raw } = await createApiKey(db, { user: '7', name: 'CI', scopes: [] });
      await db.transaction(async (tx) => {
        await tx.query('delete from members where id = $1', ['7']);
        for (const changed of app.registry.userChanges) await changed(tx, '7', { by: 'sign-up', requestId: null });
      });
      // The next member with the number 7 is another person.
      await insert(db, memberModel, { id: '7', handle: 'mallory' });
      expect(await verifyApiKey(db, raw)).toBeNull();
      const mallory = (await members.findById(db, '7')) as User;
      expect(await actionsOf(db, { user: mallory, tenant: null }, { type: pages, id: page.id })).toEqual(new Set());
    } finally {
      await app.close();
    }
  });
});
