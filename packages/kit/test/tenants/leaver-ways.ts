import { betterAuth as createAuth } from 'better-auth';
import type { AppOptions, Module } from '../../src/app/index.ts';
import type { User } from '../../src/auth/index.ts';
import { accounts, accountsOf, createUser, deactivateUser, deleteUser, openSession } from '../../src/contrib/accounts/index.ts';
import * as organizations from '../../src/contrib/better-auth/index.ts';
import { passOnChanges } from '../../src/contrib/better-auth/user-changes.ts';
import { addMember, removeMember, resumeTenant, suspendTenant, tenants } from '../../src/contrib/tenants/index.ts';
import { changeMember } from '../../src/contrib/tenants/manage/members.ts';
import { tenants as tenantRows } from '../../src/contrib/tenants/models.ts';
import { type Database, insert } from '../../src/db/index.ts';
import { Controller, jsonSchema, route } from '../../src/http/index.ts';
import { allowAny } from '../../src/permissions/index.ts';
import type { TestApp } from '../../src/testing/test-app.ts';
import { z } from 'zod';
import { instanceOptions, type Mail, makeAdmin, member, ORIGIN, userId } from '../better-auth/auth-app.ts';

export const TENANT = '01890000-0000-7000-8000-0000000000ac';

/** Headers of a person who has just logged in. */
export type SessionHeaders = Readonly<Record<string, string>>;

/** Who people are, and how they log in. */
interface Login {
  readonly modules: (db: Database) => readonly Module[];
  readonly mount: NonNullable<AppOptions['mount']>;
  readonly person: (kit: TestApp, name: string) => Promise<{ readonly user: User; readonly session: SessionHeaders }>;
  /** An administrator of the site who has proved a second factor just now. */
  readonly staff: (kit: TestApp, name: string) => Promise<SessionHeaders>;
  readonly deactivate: (db: Database, id: string) => Promise<unknown>;
  readonly delete: (db: Database, id: string) => Promise<unknown>;
}

/** One way to have people in tenants: each exit asks the same question. */
export interface Way extends Login {
  readonly options: Pick<AppOptions, 'tenant' | 'membership'>;
  /** The role that the exits need. */
  readonly role: string;
  /** A module stores the members, so that service users can be some. */
  readonly isStored: boolean;
  readonly add: (db: Database, userId: string) => Promise<void>;
  readonly remove: (db: Database, userId: string) => Promise<unknown>;
  readonly demote: (db: Database, userId: string) => Promise<unknown>;
  readonly suspend: (db: Database) => Promise<unknown>;
  readonly resume: (db: Database) => Promise<unknown>;
}

/** A login without the limits of the one with a password. */
class Enter extends Controller {
  enter = route.get(
    '/:id',
    { permission: allowAny, auth: [], params: z.object({ id: z.string() }), response: jsonSchema<object>({}) },
    (context) => openSession(context.db, { id: context.params.id }, context),
  );
}

const management = (db: Database) => accountsOf(db).management(null);
const enter = async (kit: TestApp, id: string): Promise<SessionHeaders> => {
  const opened = await kit.inject(`/v1/enter/${id}`);
  const cookie = /^[^;]*/.exec(String(opened.headers['set-cookie']))?.[0] ?? '';
  return { cookie, 'x-csrf-token': opened.json<{ csrf_token: string }>().csrf_token };
};

const withAccounts: Login = {
  modules: () => [accounts({ secondFactor: 'optional', passwordCost: { logN: 4, r: 8, p: 1 } })],
  mount: { '/v1': { '/enter': Enter } },
  async person(kit, username) {
    const user = await createUser(kit.app.db, { username }, management(kit.app.db));
    return { user, session: await enter(kit, user.id) };
  },
  async staff(kit, username) {
    const { id } = await createUser(kit.app.db, { username, is_staff: true }, management(kit.app.db));
    const session = await enter(kit, id);
    await kit.app.db.query('update sessions set second_factor = true where user_id = $1', [id]);
    return session;
  },
  deactivate: (db, id) => deactivateUser(db, id, management(db)),
  delete: (db, id) => deleteUser(db, id, management(db)),
};

const mails: Mail[] = [];
const withBetterAuth: Login = {
  modules: (db) => {
    const auth = createAuth(instanceOptions(db, mails));
    return [organizations.betterAuth(auth, { organization: { header: 'X-Tenant' }, loginUrl: '/login', accountUrl: '/me' })];
  },
  mount: {},
  async person({ app }, name) {
    const email = `${name}@example.com`;
    const browser = await member({ app, mails }, email);
    const user = await app.users?.findById(app.db, await userId(app.db, email));
    if (user === null || user === undefined) throw new Error(`no user ${email}`);
    const cookie = [...browser.cookies].map(([key, value]) => `${key}=${value}`).join('; ');
    return { user, session: { cookie, origin: ORIGIN } };
  },
  async staff(kit, name) {
    const { user, session } = await this.person(kit, name);
    await makeAdmin(kit.app.db, user.username);
    await kit.app.db.query('update "user" set "twoFactorEnabled" = true where "id" = $1', [user.id]);
    return session;
  },
  // As the plugin does after a ban: a cached key of this process ends with it.
  async deactivate(db, id) {
    await db.query('update "user" set "banned" = true where "id" = $1', [id]);
    await passOnChanges(db);
  },
  async delete(db, id) {
    await db.query('delete from "user" where "id" = $1', [id]);
    await passOnChanges(db);
  },
};

/** In an app with members of its own. */
let ownTenantIsSuspended = false;

export const WAYS: Readonly<Record<string, Way>> = {
  'createApp({ membership })': {
    ...withAccounts,
    role: 'lead',
    isStored: false,
    options: {
      tenant: ({ headers }) => headers['x-tenant']?.toString() ?? null,
      async membership({ user, tenant, db }) {
        const [row] = await db.query<{ role: string }>('select role from members where tenant = $1 and user_id = $2', [tenant, user.id]);
        return row === undefined ? null : { roles: [row.role], isSuspended: ownTenantIsSuspended };
      },
    },
    async add(db, id) {
      const values = [crypto.randomUUID(), TENANT, id, 'lead'];
      await db.query('insert into members (id, tenant, user_id, role) values ($1, $2, $3, $4)', values);
    },
    remove: (db, id) => db.query('delete from members where user_id = $1', [id]),
    demote: (db, id) => db.query("update members set role = 'member' where user_id = $1", [id]),
    async suspend() {
      ownTenantIsSuspended = true;
    },
    async resume() {
      ownTenantIsSuspended = false;
    },
  },
  'tenants()': {
    ...withAccounts,
    modules: (db) => [...withAccounts.modules(db), tenants({ roles: ['owner', 'lead', 'member'] })],
    role: 'lead',
    isStored: true,
    options: {},
    async add(db, id) {
      const at = new Date();
      const row = { id: TENANT, slug: 'acme', name: 'Acme', state: 'active', created_at: at, updated_at: at } as const;
      if ((await db.query('select id from tenants where id = $1', [TENANT])).length === 0) await insert(db, tenantRows, row);
      await addMember(db, { tenant: TENANT, user: id, roles: ['lead'] });
    },
    remove: (db, id) => removeMember(db, { tenant: TENANT, user: id }),
    demote: (db, id) => changeMember(db, { tenant: TENANT, user: id, roles: ['member'] }),
    suspend: (db) => suspendTenant(db, TENANT),
    resume: (db) => resumeTenant(db, TENANT),
  },
  'organizations of better-auth': {
    ...withBetterAuth,
    role: 'admin',
    isStored: true,
    options: {},
    async add(db, id) {
      const now = db.dialect === 'sqlite' ? new Date().toISOString() : new Date();
      const organization = [TENANT, 'Acme', 'acme', now];
      await db.query(
        'insert into "organization" ("id", "name", "slug", "createdAt") values ($1, $2, $3, $4) on conflict do nothing',
        organization,
      );
      const values = [crypto.randomUUID(), TENANT, id, 'admin', now];
      await db.query('insert into "member" ("id", "organizationId", "userId", "role", "createdAt") values ($1, $2, $3, $4, $5)', values);
    },
    remove: (db, id) => db.query('delete from "member" where "userId" = $1', [id]),
    demote: (db, id) => db.query(`update "member" set "role" = 'member' where "userId" = $1`, [id]),
    suspend: (db) => organizations.suspendTenant(db, TENANT),
    resume: (db) => organizations.resumeTenant(db, TENANT),
  },
};
