import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { Follower } from '../../../test/crud/live.ts';
import { createApp } from '../../app/assemble/create-app.ts';
import type { App, Module } from '../../app/declare/module.ts';
import { coreTables } from '../../app/data/migration-modules.ts';
import { CrudController, resource, visibleTo } from '../../crud/index.ts';
import type { Database } from '../../db/engine/db.ts';
import { createTable, insert, migration, model, t } from '../../db/index.ts';
import { migrate } from '../../db/migrations/migrate.ts';
import { hasRole, hasScopes } from '../../permissions/index.ts';
import { describeDatabases } from '../../testing/databases.ts';
import { accountsOf, accounts, addGroupMember, createGroup, createUser, deactivateUser, removeGroupMember } from '../accounts/index.ts';
import { apiKeys, createApiKey, revokeApiKey } from '../apikeys/index.ts';
import { addMember, createTenant, removeMember, resumeTenant, suspendTenant, tenants } from '../tenants/index.ts';
import { changeMember } from '../tenants/manage/members.ts';
import { deleteTenant } from '../tenants/manage/tenants.ts';
import { grant, grants, objectActions, objectGrants, revoke } from './index.ts';

const notes = model('live_notes', {
  id: t.uuidv7().pk(),
  tenant_id: t.text(40).readOnly(),
  owner_id: t.uuid().readOnly(),
  title: t.text(80),
  margin: t.int().dbDefault(0),
});
const noteActions = objectActions(notes, { actions: ['view', 'change', 'delete'], sets: { viewer: ['view'] }, subjects: ['tenant'] });

class NoteController extends CrudController(
  resource(notes, {
    tenant: 'tenant_id',
    owner: 'owner_id',
    access: grants(notes),
    fields: { margin: visibleTo(hasRole('admin', 'owner')) },
  }),
  { permission: hasScopes(), scope: 'notes', filters: { title: ['eq'] }, page: { max: 1000 }, live: true },
) {}

const noteTables: Module = {
  name: 'notes',
  models: [notes],
  migrations: [migration('0001_initial', [createTable('live_notes', notes.columns)])],
};

const moduleList = (): Module[] => [
  accounts({ passwordCost: { logN: 4, r: 8, p: 1 } }),
  apiKeys(),
  tenants(),
  objectGrants({ objects: [noteActions], isInTenant: () => true }),
  noteTables,
];

/** A stream is closed or corrected within a second of the change; the rest is for a busy machine. */
const PATIENCE = { timeout: 10_000, interval: 10 };

describeDatabases('rights that change while live lists are open in two processes', (database) => {
  let db: Database;
  const apps: App[] = [];
  const urls: string[] = [];
  const open: Follower[] = [];
  let tenant: { readonly id: string; readonly slug: string };
  let owner: string;
  let reader: string;
  let key: { readonly id: string; readonly raw: string };
  let count = 0;

  const start = async (handle: Database): Promise<void> => {
    const app = createApp({
      database: handle,
      modules: moduleList(),
      mount: { '/v1': { '/notes': NoteController } },
      log: { level: 'silent' },
    });
    await app.listen({ port: 0 });
    apps.push(app);
    urls.push(`http://127.0.0.1:${(app.fastify.server.address() as AddressInfo).port}/v1/notes`);
  };

  beforeAll(async () => {
    db = database.db;
    await migrate(db, [coreTables, ...moduleList()]);
    await start(db);
    await start(await database.open());
  });
  afterAll(async () => {
    for (const app of apps) await app.close();
  });
  beforeEach(async () => {
    count += 1;
    const management = accountsOf(db).management(null);
    owner = (await createUser(db, { username: `owner${count}` }, management)).id;
    reader = (await createUser(db, { username: `reader${count}` }, management)).id;
    tenant = await createTenant(db, { name: `Tenant ${count}`, owner });
    await addMember(db, { tenant: tenant.id, user: reader, roles: ['admin'] });
    // A key of one tenant is revoked when its owner leaves; this one stays, and its membership ends.
    const { apiKey, raw } = await createApiKey(db, { user: reader, name: 'live', scopes: ['notes:read'], tenant: '*' });
    key = { id: apiKey.id, raw };
  });
  afterEach(async () => {
    for (const each of open.splice(0)) await each.disconnect();
  });

  const note = async (title: string, by = owner): Promise<string> =>
    (await insert(db, notes, { title, tenant_id: tenant.id, owner_id: by })).id;
  /** One follower in each process, which have the list. */
  const follow = async (): Promise<readonly Follower[]> => {
    const headers = { authorization: `Bearer ${key.raw}`, 'x-tenant': tenant.slug };
    const followers = [];
    for (const url of urls) {
      const follower = await new Follower('ann', '', headers).connect(url);
      expect([follower.status, follower.ended]).toEqual([200, undefined]);
      open.push(follower);
      followers.push(follower);
    }
    for (const each of followers) await vi.waitFor(() => expect(each.batches).toBe(1), PATIENCE);
    return followers;
  };
  const titles = ({ rows }: Follower) => [...rows.values()].map(({ title }) => title as string).toSorted();
  const settle = async (followers: readonly Follower[], wanted: readonly string[]): Promise<void> => {
    for (const each of followers) await vi.waitFor(() => expect(titles(each)).toEqual(wanted), PATIENCE);
  };
  const endWith = async (followers: readonly Follower[], code: string): Promise<void> => {
    for (const each of followers) expect(await each.whenEnded()).toMatchObject({ event: 'error', data: { code } });
  };
  /** What arrives after its rights ended would be a row that a read does not show. */
  const quiet = async (followers: readonly Follower[], hidden: string): Promise<void> => {
    for (const each of followers) expect(JSON.stringify(each.log)).not.toContain(hidden);
  };

  test('a key that is revoked', async () => {
    await note('own', reader);
    const followers = await follow();
    await revokeApiKey(db, key.id);
    await endWith(followers, 'invalid_credentials');
  });

  test('a user who is deactivated', async () => {
    const followers = await follow();
    await deactivateUser(db, reader);
    await endWith(followers, 'invalid_credentials');
  });

  test('a grant that is given, removed, and given until a moment', async () => {
    const shared = await note('shared');
    await note('own', reader);
    await note('of others');
    const followers = await follow();
    await settle(followers, ['own']);
    const given = { subject: `user:${reader}`, object: { type: noteActions, id: shared } } as const;
    await grant(db, { ...given, set: 'viewer' });
    await settle(followers, ['own', 'shared']);
    await revoke(db, given);
    await settle(followers, ['own']);
    await grant(db, { ...given, set: 'viewer', expiresAt: new Date(Date.now() + 1_500) });
    await settle(followers, ['own', 'shared']);
    await settle(followers, ['own']);
    await quiet(followers, 'of others');
  });

  test('changes of an object that is granted, and of one that was until just now', async () => {
    const shared = await note('shared');
    const object = { type: noteActions, id: shared } as const;
    await grant(db, { subject: 'tenant', object, set: 'viewer' });
    const followers = await follow();
    await settle(followers, ['shared']);
    const { raw } = await createApiKey(db, { user: owner, name: 'writer', scopes: ['notes:*', 'notes:read', 'notes:write'] });
    const rename = async (title: string): Promise<void> => {
      const response = await fetch(`${urls[1]}/${shared}`, {
        method: 'PATCH',
        headers: { authorization: `Bearer ${raw}`, 'x-tenant': tenant.slug, 'content-type': 'application/json' },
        body: JSON.stringify({ title }),
      });
      expect([response.status, await response.text()]).toMatchObject([200, {}]);
    };
    await rename('renamed');
    await settle(followers, ['renamed']);
    await revoke(db, { subject: 'tenant', object });
    await rename('hidden name');
    await settle(followers, []);
    await quiet(followers, 'hidden name');
  });

  test('a group that the user leaves', async () => {
    const shared = await note('shared');
    const group = await createGroup(db, { name: `group ${count}`, tenantKey: tenant.id });
    await addGroupMember(db, group.id, reader);
    await grant(db, { subject: `group:${group.id}`, object: { type: noteActions, id: shared }, set: 'viewer' });
    const followers = await follow();
    await settle(followers, ['shared']);
    await removeGroupMember(db, group.id, reader);
    await settle(followers, []);
  });

  test('a role that is taken, on which a field depends', async () => {
    const followers = await follow();
    await changeMember(db, { tenant: tenant.id, user: reader, roles: ['member'], by: null, asStaff: true });
    await endWith(followers, 'permission_denied');
    await note('own', reader);
    const again = await follow();
    for (const each of again) expect([...each.rows.values()][0]).not.toHaveProperty('margin');
  });

  test('a membership that ends', async () => {
    const followers = await follow();
    await removeMember(db, { tenant: tenant.id, user: reader });
    await endWith(followers, 'not_a_member');
  });

  test('a tenant that is closed', async () => {
    const followers = await follow();
    await deleteTenant(db, tenant.id, { asStaff: true });
    await endWith(followers, 'not_a_member');
  });

  test('a tenant that is suspended, and continues afterwards', async () => {
    await note('own', reader);
    const followers = await follow();
    await suspendTenant(db, tenant.id, { reason: 'unpaid' });
    await endWith(followers, 'tenant_suspended');
    await resumeTenant(db, tenant.id);
    for (const [place, each] of followers.entries())
      await vi.waitFor(async () => expect((await each.connect(urls[place] as string)).status).toBe(200), PATIENCE);
    await settle(followers, ['own']);
  });

  test('rights that ended while the client was away are not missed', async () => {
    const shared = await note('shared');
    const given = { subject: `user:${reader}`, object: { type: noteActions, id: shared } } as const;
    await grant(db, { ...given, set: 'viewer' });
    const followers = await follow();
    for (const each of followers) await each.disconnect();
    await revoke(db, given);
    for (const [place, each] of followers.entries()) await each.connect(urls[1 - place] as string);
    await settle(followers, []);
  });

  test('the callers of all lists are looked up with one statement each for groups and grants', async () => {
    await note('own', reader);
    const followers: Follower[] = [];
    for (let each = 0; each < 5; each += 1) followers.push(...(await follow()));
    const statements: string[] = [];
    const query = vi.spyOn(db, 'query').mockImplementation(function (this: Database, ...given: Parameters<Database['query']>) {
      statements.push(given[0]);
      return Object.getPrototypeOf(db).query.apply(db, given);
    } as never);
    try {
      await vi.waitFor(() => expect(statements.filter((text) => text.includes('from grants g')).length).toBeGreaterThan(3), PATIENCE);
    } finally {
      query.mockRestore();
    }
    const ofGroups = statements.filter((text) => text.includes('from group_members')).length;
    const ofGrants = statements.filter((text) => text.includes('from grants g')).length;
    expect(Math.abs(ofGroups - ofGrants)).toBeLessThanOrEqual(1);
    // A look is four statements: keys, members, groups and grants. The five streams of this process, asked one by one, would be twenty.
    expect(statements.length).toBeLessThan(ofGrants * 8);
  });
});
