import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { admin } from '../src/admin/index.ts';
import { migrateApp } from '../src/app/data/migration-modules.ts';
import type { App } from '../src/app/index.ts';
import { AccountController } from '../src/contrib/accounts/index.ts';
import { ApiKeyController } from '../src/contrib/apikeys/index.ts';
import { pages } from '../src/contrib/pages/index.ts';
import { TenantController } from '../src/contrib/tenants/index.ts';
import { portal } from '../src/portal/index.ts';
import { describeDatabases } from '../src/testing/databases.ts';
import { siteFolder } from './admin/admin-app.ts';
import { ORIGIN } from './better-auth/auth-app.ts';
import { NoteController, WAYS, wholeApp } from './tenants/whole-app.ts';

// RFC 9110, 15.5.2: a 401 must have a challenge. Every route of an app with all sites is asked without credentials, with wrong ones and with a dead cookie.

const LOGINS = {
  accounts: [
    ['/v1/account/login', { login: 'nobody', password: 'wrong password' }],
    ['/portal/api/login', { login: 'nobody', password: 'wrong password' }],
    ['/admin/api/login', { login: 'nobody', password: 'wrong password' }],
  ],
  'better-auth': [
    ['/auth/sign-in/email', { email: 'nobody@example.com', password: 'wrong password' }],
    ['/auth/organization/create', { name: 'Acme', slug: 'acme' }],
  ],
} as const;

describe.each(WAYS)('with %s', (way) => {
  describeDatabases('every 401 names what the route accepts', (database) => {
    const folder = mkdtempSync(join(tmpdir(), 'kit-challenges-'));
    const files = siteFolder();
    let app: App;
    beforeAll(async () => {
      app = wholeApp(database.db, {
        way,
        folder,
        more: [portal({ site: files.url }), admin({ site: files.url }), pages()],
        mount: {
          '/v1': {
            '/notes': NoteController,
            '/api-keys': ApiKeyController,
            ...(way === 'accounts' ? { '/account': AccountController, '/tenants': TenantController } : {}),
          },
        },
      });
      await migrateApp(app);
      await app.ready();
    });
    afterAll(async () => {
      await app.close();
      files.remove();
      rmSync(folder, { recursive: true, force: true });
    });

    /** The challenge of each 401, by method and path. */
    const challenges = async (requests: readonly (readonly [string, string])[], headers: object, payload: object = {}) => {
      const found = new Map<string, string>();
      for (const [method, url] of requests) {
        const body = method === 'GET' ? {} : { payload };
        const response = await app.inject({ method: method as 'GET', url, headers: { host: 'localhost', ...headers }, ...body });
        if (response.statusCode === 401) found.set(`${method} ${url}`, String(response.headers['www-authenticate'] ?? ''));
      }
      return found;
    };
    const everyRoute = () =>
      app.routes.map(({ method, path }) => [method, path.replaceAll(/:\w+/g, '01890000-0000-7000-8000-00000000dead')] as const);

    test.each([
      ['no credentials', {}],
      ['a key that does not exist', { 'x-api-key': 'kit_wrong' }],
      ['a cookie without a session', { cookie: 'kit_session=wrong; better-auth.session_token=wrong; kit_portal=wrong' }],
    ])('with %s', async (_, headers) => {
      const found = await challenges(everyRoute(), headers);
      expect([...found].filter(([, challenge]) => !/^\w+ realm="api"/.test(challenge))).toEqual([]);
      // The test reaches what it is about.
      for (const path of ['/admin/api/', '/portal/api/', '/v1/'])
        expect([path, [...found.keys()].some((each) => each.includes(path))]).toEqual([path, true]);
      expect(found.get('GET /portal/api/session')).toBe('Session realm="api"');
    });

    test('of a login that fails', async () => {
      // better-auth asks for an origin that it trusts; accounts() for none, or its own.
      const headers = way === 'accounts' ? {} : { origin: ORIGIN };
      for (const [url, payload] of LOGINS[way])
        expect([url, [...(await challenges([['POST', url]], headers, payload)).values()]]).toEqual([url, ['Session realm="api"']]);
    });
  });
});
