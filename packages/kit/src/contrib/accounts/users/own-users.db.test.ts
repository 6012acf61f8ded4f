import { expect, test } from 'vitest';
import { createApp } from '../../../app/index.ts';
import { invalidCredentials, type Authenticator, type User, type UserDirectory } from '../../../auth/index.ts';
import type { Db } from '../../../db/index.ts';
import { coreErrors } from '../../../errors/index.ts';
import { Controller, jsonSchema, route } from '../../../http/index.ts';
import { isAuthenticated } from '../../../permissions/index.ts';
import { describeDatabases } from '../../../testing/databases.ts';

// The seam of docs/guide/accounts.md: an app with a users table and sessions of its own, and no accounts().

const SELECT = 'select id, handle as username, mail as email, enabled as is_active, staff as is_staff, root as is_superuser from members';

async function findMember(db: Db, where: string, value: string): Promise<User | null> {
  const [row] = await db.query<User>(`${SELECT} where ${where} = $1`, [value]);
  return row ?? null;
}

const members: UserDirectory = {
  table: { name: 'members', id: 'id', username: 'handle', email: 'mail', isActive: 'enabled', isStaff: 'staff', isSuperuser: 'root' },
  findById: (db, id) => findMember(db, 'id', id),
  findByLogin: (db, login) => findMember(db, login.includes('@') ? 'mail' : 'handle', login),
};

/** A cookie of the app's own, so CSRF is the app's own too. */
const memberCookie: Authenticator = {
  name: 'member_cookie',
  securityScheme: { type: 'apiKey', in: 'cookie', name: 'member' },
  async authenticate({ headers, db }) {
    const handle = /(?:^|; )member=(\w+)/.exec(headers['cookie']?.toString() ?? '')?.[1];
    if (handle === undefined) return null;
    const user = await members.findByLogin(db, handle);
    if (user === null || !user.is_active) throw invalidCredentials();
    return { user, scheme: 'member_cookie', scopes: null };
  },
  verifyCsrf({ headers }) {
    if (headers['x-requested-with'] !== 'shop') throw coreErrors.csrf_failed();
  },
};

class WhoController extends Controller {
  who = route.get('/', { permission: isAuthenticated, response: jsonSchema<{ handle: string }>({ type: 'object' }) }, ({ user }) => ({
    handle: user.username,
  }));
  change = route.post('/', { permission: isAuthenticated }, () => undefined);
}

describeDatabases(
  'an app that brings its own users and sessions',
  (database) => {
    const start = () =>
      createApp({
        database: database.db,
        users: members,
        authenticators: [memberCookie],
        mount: { '/v1': { '/who': WhoController } },
        log: { level: 'silent' },
      });

    test('authenticates with them, refuses bad ones, and treats none as anonymous', async () => {
      const app = start();
      const get = (cookie?: string) => app.inject({ method: 'GET', url: '/v1/who', headers: cookie === undefined ? {} : { cookie } });
      expect((await get('member=ada')).json()).toEqual({ handle: 'ada' });
      expect((await get('member=gone')).statusCode).toBe(401);
      expect((await get('member=stranger')).json()).toMatchObject({ status: 401, code: 'invalid_credentials' });
      expect((await get()).json()).toMatchObject({ status: 401, code: 'not_authenticated' });
      await app.close();
    });

    test('proves the origin of unsafe requests its own way', async () => {
      const app = start();
      const post = (headers: Record<string, string>) =>
        app.inject({ method: 'POST', url: '/v1/who', headers: { cookie: 'member=ada', ...headers } });
      expect((await post({})).json()).toMatchObject({ status: 403, code: 'csrf_failed' });
      expect((await post({ 'x-requested-with': 'shop' })).statusCode).toBe(204);
      await app.close();
    });

    test('is the directory other modules use', async () => {
      const app = await start().ready();
      expect(app.users).toBe(members);
      expect((await app.users?.findByLogin(app.db, 'ada@example.com'))?.username).toBe('ada');
      await app.close();
    });
  },
  {
    prepare: async (db) => {
      await db.query(
        'create table members (id text primary key, handle text unique, mail text, enabled boolean, staff boolean, root boolean)',
      );
      for (const [id, handle, enabled] of [
        ['1', 'ada', true],
        ['2', 'gone', false],
      ] as const) {
        await db.query('insert into members values ($1, $2, $3, $4, $5, $6)', [id, handle, `${handle}@example.com`, enabled, false, false]);
      }
    },
  },
);
