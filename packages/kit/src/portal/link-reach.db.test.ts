import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { siteFolder } from '../../test/admin/admin-app.ts';
import { addPerson, people, PEOPLE_TABLE } from '../../test/people.ts';
import { createApp } from '../app/assemble/create-app.ts';
import { migrateApp } from '../app/data/migration-modules.ts';
import type { App, Module } from '../app/index.ts';
import type { Authenticator, User } from '../auth/index.ts';
import { accounts, accountsOf, createUser } from '../contrib/accounts/index.ts';
import { ApiKeyController, apiKeys } from '../contrib/apikeys/index.ts';
import { mcp } from '../contrib/mcp/index.ts';
import { RequestController, requests } from '../contrib/requests/index.ts';
import { WebhookEndpointController, webhooks } from '../contrib/webhooks/index.ts';
import type { Database } from '../db/index.ts';
import { Controller } from '../http/compile/controller.ts';
import { jsonSchema } from '../http/declare/json-schema.ts';
import { route } from '../http/declare/route.ts';
import { allowAny, isAuthenticated } from '../permissions/built-ins.ts';
import { describeDatabases } from '../testing/databases.ts';
import { portal, portalLink } from './index.ts';
import type { NewPortalLink } from './links/portal-link.ts';
import { portalState } from './links/state.ts';

/** A credential of programs of the app's own. */
const partner: Authenticator = {
  name: 'partner',
  securityScheme: { type: 'apiKey', in: 'header', name: 'x-partner' },
  authenticate: () => null,
};

const Who = jsonSchema<{ scheme: string | null }>({ type: 'object' });
const nothing = (): void => undefined;

class ShopController extends Controller {
  who = route.get('/who', { permission: allowAny, response: Who }, ({ principal }) => ({ scheme: principal?.scheme ?? null }));
  buy = route.post('/buy', { permission: isAuthenticated }, nothing);
  sync = route.post('/sync', { permission: isAuthenticated, auth: ['partner'] }, nothing);
}
class TakingController extends Controller {
  take = route.get('/', { permission: isAuthenticated, auth: ['portal_session'] }, nothing);
}

/** The operations that each page is made of. */
const PAGES: Readonly<Record<string, (method: string, path: string) => boolean>> = {
  'api-keys': (_, path) => path.startsWith('/v1/api-keys'),
  endpoints: (_, path) => /^\/v1\/hooks(?:\/:\w+(?:\/(?!deliveries)[\w-]+)?|\/stats|\/export)?$/.test(path),
  deliveries: (method, path) => path.includes('/deliveries') || (method === 'GET' && path === '/v1/hooks'),
  events: (method, path) => method === 'GET' && /^\/v1\/hooks\/events(?:\/:id)?$/.test(path),
  'event-types': (_, path) => path === '/v1/hooks/event-types',
  requests: (_, path) => path.startsWith('/v1/requests'),
};
const reads = (method: string) => method === 'GET';

const files = siteFolder();
afterAll(() => files.remove());

const modules = (more: readonly Module[] = []): Module[] => [
  ...more,
  apiKeys(),
  webhooks(),
  requests(),
  mcp(),
  portal({ site: files.url, embedIn: ['https://app.example.com'] }),
];
const mount = {
  '/v1': { '/api-keys': ApiKeyController, '/hooks': WebhookEndpointController, '/requests': RequestController, '/shop': ShopController },
};

/** Apps whose people log in here, and apps whose people log in elsewhere. */
const apps = {
  'with a login': {
    start: (database: Database) =>
      createApp({
        database,
        authenticators: [partner],
        modules: modules([accounts({ passwordCost: { logN: 4, r: 8, p: 1 } })]),
        mount,
        log: { level: 'silent' },
      }),
    user: (app: App, name: string) =>
      createUser(app.db, { username: name, password: 'correct horse battery' }, accountsOf(app.db).management(null)),
  },
  'without a login': {
    start: (database: Database) =>
      createApp({ database, users: people, authenticators: [partner], modules: modules(), mount, log: { level: 'silent' } }),
    user: (app: App, name: string) => addPerson(app.db, name),
  },
} as const;

for (const [name, { start, user }] of Object.entries(apps))
  describeDatabases(`what a link reaches in an app ${name}`, (database) => {
    let app: App;
    let userId: string;
    let count = 0;

    beforeAll(async () => {
      await database.db.execute(PEOPLE_TABLE);
      app = start(database.db);
      await migrateApp(app);
      await app.ready();
    });
    beforeEach(async () => {
      count += 1;
      ({ id: userId } = await user(app, `ada${count}`));
    });
    afterAll(() => app.close());

    async function enter(given: Partial<NewPortalLink> = {}): Promise<string> {
      const { token } = await portalLink(app.db, { user: userId, ...given });
      const response = await app.inject({ method: 'POST', url: '/portal/link', payload: { token, framed: true } });
      expect(response.statusCode).toBe(200);
      return response.json<{ token: string }>().token;
    }

    test('its session is nothing to any route that is not of the portal, as a cookie and as a header', async () => {
      const session = await enter({ manage: true });
      const others = app.routes.filter(({ metadata, kind }) => metadata['portal'] !== true && kind !== 'stream');
      expect(others.map(({ path }) => path)).toEqual(expect.arrayContaining(['/v1/api-keys', '/v1/shop/buy', '/v1/shop/sync', '/mcp']));
      const ask = async (each: (typeof others)[number], headers: Record<string, string>) => {
        const url = each.path.replaceAll(/:\w+/g, '01890000-0000-7000-8000-000000000001');
        const { statusCode, body } = await app.inject({ method: each.method as 'GET', url, headers });
        return [statusCode, /"(?:code|scheme)":("[\w-]+"|null)/.exec(body)?.[1]];
      };
      const cookie = `__Secure-kit_portal=${session}`;
      for (const each of others) {
        for (const accept of ['application/json', 'text/event-stream']) {
          const nobody = await ask(each, { accept });
          for (const credential of [{ cookie }, { 'x-portal-session': session }])
            expect(await ask(each, { accept, ...credential }), `${each.operationId} with ${Object.keys(credential)[0]}`).toEqual(nobody);
        }
      }
    });

    test('the portal calls for it the operations of the pages that it shows, reads without manage, and nothing else', async () => {
      const session = app.authenticators.find((each) => each.name === 'portal_session') as Authenticator;
      const names = Object.keys(PAGES);
      const chosen = [[], ...names.map((page) => [page]), ['endpoints', 'event-types'], ['api-keys', 'requests']];
      for (const pages of chosen)
        for (const manage of [false, true]) {
          const token = await enter({ manage, ...(pages.length === 0 ? {} : { pages }) });
          const principal = await session.authenticate({
            method: 'GET',
            url: '/',
            headers: { 'x-portal-session': token },
            clientAddress: '127.0.0.1',
            db: app.db,
          });
          expect(principal).not.toBeNull();
          const shown = pages.length === 0 ? names : pages;
          const called = app.routes.filter((each) => session.callsRoute?.(each, principal!));
          const isOf = (page: string, { method, path }: (typeof called)[number]) => PAGES[page]?.(method, path) === true;
          const where = `${shown.join(', ')}${manage ? ' with manage' : ''}`;
          for (const page of shown)
            expect(
              called.some((each) => isOf(page, each)),
              `${where}: ${page}`,
            ).toBe(true);
          const wrong = called.filter((each) => !shown.some((page) => isOf(page, each)) || (!manage && !reads(each.method)));
          expect(wrong.map(({ method, path }) => `${where}: ${method} ${path}`)).toEqual([]);
          const isKeys = manage && shown.includes('api-keys');
          expect(called.some(({ method, path }) => method === 'POST' && path === '/v1/api-keys')).toBe(isKeys);
        }
    });

    test('a caller without a link has none of it, whatever else is known of the caller', async () => {
      const session = app.authenticators.find((each) => each.name === 'portal_session') as Authenticator;
      const made = { user: (await portalState.of(app.db).users.findById(app.db, userId)) as User, scopes: null, scheme: 'portal_session' };
      expect(app.routes.filter((each) => session.callsRoute?.(each, made) === true)).toEqual([]);
    });

    test('a route of the app that would take its session stops the start', () => {
      expect(() =>
        createApp({
          database: database.db,
          users: people,
          modules: modules(),
          mount: { '/v1': { '/api-keys': ApiKeyController, '/take': TakingController } },
          log: { level: 'silent' },
        }),
      ).toThrow(/GET \/v1\/take names "portal_session" in auth/);
    });
  });
