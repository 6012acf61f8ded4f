import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { prepareAccountsAndKeys, startKeyApp, type Called, type KeyApp } from '../../../test/key-app.ts';
import { accountsOf } from '../accounts/users/accounts.ts';
import { deactivateUser } from '../accounts/users/manage-users.ts';
import type { User } from '../../auth/people/principal.ts';
import { countQueries } from '../../db/engine/query-observer.ts';
import { Controller } from '../../http/compile/controller.ts';
import { routeAround } from '../../http/declare/route-around.ts';
import { allowAny, isStaff } from '../../permissions/built-ins.ts';
import { describeDatabases } from '../../testing/databases.ts';
import { ApiKeyController } from './controller.ts';
import { createApiKey } from './manage/create.ts';
import { revokeApiKey } from './manage/revoke.ts';
import { rotateApiKey } from './manage/rotate.ts';

const DAY_MS = 86_400_000;
const UNKNOWN_ID = '01890000-0000-7000-8000-000000000000';
const RECORD_FIELDS = [
  'id',
  'tenant_id',
  'name',
  'prefix',
  'scopes',
  'rate_limit',
  'quota',
  'created_at',
  'last_used_at',
  'expires_at',
  'revoked_at',
  'previous_expires_at',
  'previous_last_used_at',
  'state',
];

describeDatabases(
  'ApiKeyController',
  (database) => {
    let kit: KeyApp;
    let user: User;
    let others: User;
    let count = 0;
    beforeAll(async () => {
      kit = await startKeyApp(database.db);
      others = await kit.user('somebody-else');
    });
    beforeEach(async () => {
      count += 1;
      user = await kit.user(`user${count}`);
    });
    afterAll(() => kit.app.close());

    const call = (method: string, path = '', payload?: unknown, headers: Record<string, string> = { 'x-act-as': user.username }) =>
      kit.call(method, `/v1/api-keys${path}`, headers, payload);
    const create = (payload: object = {}) => call('POST', '', { name: 'CI', scopes: ['orders:read'], ...payload });
    const inDays = (days: number) => new Date(kit.clock.now().getTime() + days * DAY_MS).toISOString();
    const works = async (raw: string) => (await kit.call('GET', '/v1/whoami', { 'x-api-key': raw })).status === 200;
    const places = ({ status, body }: Called): unknown => [
      status,
      body.code,
      (body.errors as { location: unknown[]; code: string }[]).map(({ location, code }) => `${location.join('.')} ${code}`),
    ];

    describe('POST /', () => {
      test('201: the record with the raw key, shown this once', async () => {
        const { status, body, headers } = await create({ expires_at: inDays(30) });
        expect(status).toBe(201);
        expect(Object.keys(body).sort()).toEqual([...RECORD_FIELDS, 'key'].sort());
        expect(body).toMatchObject({
          name: 'CI',
          scopes: ['orders:read'],
          rate_limit: null,
          state: 'active',
          created_at: kit.clock.now().toISOString(),
          expires_at: inDays(30),
          last_used_at: null,
          revoked_at: null,
        });
        expect(body.id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7/);
        expect(body.key).toMatch(new RegExp(`^kit_${String(body.prefix)}_`));
        expect(headers['cache-control']).toBe('no-store');
        expect(await works(String(body.key))).toBe(true);
      });

      test('422 with every location for bad names, scopes and dates', async () => {
        expect(places(await create({ name: '  ', scopes: ['orders:read', 'Orders', 'x'], expires_at: inDays(-1) }))).toEqual([
          422,
          'validation_error',
          ['body.name invalid_name', 'body.scopes.1 invalid_scope', 'body.scopes.2 invalid_scope', 'body.expires_at in_the_past'],
        ]);
      });

      test('422 lists what the schema refuses and what the rules refuse together', async () => {
        const faults = { name: 7, scopes: ['Orders', 'secrets:read'], expires_at: inDays(-1), rate_limit: '1/s', owner_id: 'me' };
        const expected = [
          422,
          'validation_error',
          [
            'body.expires_at in_the_past',
            'body.name invalid_type',
            'body.owner_id unknown_field',
            'body.rate_limit not_allowed',
            'body.scopes.0 invalid_scope',
            'body.scopes.1 scope_not_grantable',
          ],
        ];
        const sorted = ([status, code, list]: readonly unknown[]) => [status, code, (list as string[]).toSorted()];
        expect(sorted(places(await create(faults)) as unknown[])).toEqual(expected);
        const { body } = await create();
        expect(sorted(places(await call('PATCH', `/${body.id}`, faults)) as unknown[])).toEqual(expected);
      });

      test.each([
        [{ name: 7 }, 'body.name'],
        [{ name: undefined }, 'body.name'],
        [{ name: 'x'.repeat(101) }, 'body.name'],
        [{ scopes: 'orders:read' }, 'body.scopes'],
        [{ scopes: undefined }, 'body.scopes'],
        [{ scopes: [7] }, 'body.scopes.0'],
        [{ expires_at: 'tomorrow' }, 'body.expires_at'],
        [{ expires_at: 7 }, 'body.expires_at'],
        [{ expires_at: '2030-12-31T23:59:60Z' }, 'body.expires_at'],
        [{ expires_at: '9999-12-31T23:59:59-12:00' }, 'body.expires_at'],
        [{ owner_id: 'me' }, 'body.owner_id'],
        [{ rate_limit: '1000/hour' }, 'body.rate_limit'],
      ])('422 for %j at %s', async (payload, place) => {
        const { status, body } = await create(payload);
        expect([status, body.errors.map(({ location }: { location: string[] }) => location.join('.'))]).toEqual([422, [place]]);
      });

      test('409 when the owner has as many active keys as allowed', async () => {
        for (let index = 0; index < 100; index += 1) await createApiKey(kit.db, { user, name: `key ${index}`, scopes: [] });
        const refused = await create();
        expect([refused.status, refused.body.code, refused.body.limit]).toEqual([409, 'key_limit_reached', 100]);
      });
    });

    describe('the limit of active keys', () => {
      test('409 for a later expiry that would bring an expired key back beyond it', async () => {
        const small = await startKeyApp(await database.open(), { keys: { maxKeysPerOwner: 1 }, clock: kit.clock });
        const mine = (method: string, path: string, payload: object) =>
          small.call(method, `/v1/api-keys${path}`, { 'x-act-as': user.username }, payload);
        const soon = new Date(kit.clock.now().getTime() + 1000).toISOString();
        const { body: first } = await mine('POST', '', { name: 'first', scopes: [], expires_at: soon });
        kit.clock.advance(2000);
        const { body: second } = await mine('POST', '', { name: 'second', scopes: [] });
        expect((await mine('PATCH', `/${first.id}`, { name: 'renamed' })).status).toBe(200);
        const back = await mine('PATCH', `/${first.id}`, { expires_at: inDays(1) });
        expect([back.status, back.body.code]).toEqual([409, 'key_limit_reached']);
        await expect(rotateApiKey(small.db, first.id, { expiresAt: null })).rejects.toMatchObject({ code: 'key_limit_reached' });
        await revokeApiKey(small.db, second.id);
        expect((await mine('PATCH', `/${first.id}`, { expires_at: inDays(1) })).body.state).toBe('active');
        expect((await mine('PATCH', `/${first.id}`, { expires_at: inDays(2) })).status).toBe(200);
        await small.app.close();
      });
    });

    describe('GET /', () => {
      test.each(['1e30', '92233720368547758070', '1e308', '2147483648', '0', '-1', '1.5', 'x'])('422 for page=%s', async (page) => {
        expect(places(await call('GET', `?page=${page}`))).toMatchObject([
          422,
          'validation_error',
          [expect.stringMatching(/^query.page /)],
        ]);
      });

      test('items and count, newest first, all states, only one’s own, never a secret', async () => {
        const made = [];
        for (const name of ['first', 'second', 'third']) {
          made.push((await create({ name, ...(name === 'second' ? { expires_at: inDays(1) } : {}) })).body);
          kit.clock.advance(1000);
        }
        await call('DELETE', `/${made[2].id}`);
        await createApiKey(kit.db, { user: others, name: 'foreign', scopes: [] });
        kit.clock.advance(DAY_MS);
        const { status, body } = await call('GET');
        expect([status, body.count, Object.keys(body).sort()]).toEqual([200, 3, ['count', 'items']]);
        expect(body.items.map(({ name, state }: { name: string; state: string }) => [name, state])).toEqual([
          ['third', 'revoked'],
          ['second', 'expired'],
          ['first', 'active'],
        ]);
        for (const item of body.items) expect(Object.keys(item).sort()).toEqual([...RECORD_FIELDS].sort());
        for (const { key } of made) expect(JSON.stringify(body)).not.toContain(String(key).slice(17));
        for (const [state, names] of Object.entries({ active: ['first'], expired: ['second'], revoked: ['third'], owner_inactive: [] })) {
          const filtered = (await call('GET', `?state=${state}`)).body;
          expect([filtered.count, filtered.items.map(({ name }: { name: string }) => name)]).toEqual([names.length, names]);
        }
      });

      test('pages of 50 unless asked, at most 100', async () => {
        const maker = await startKeyApp(await database.open(), { keys: { maxKeysPerOwner: 200 }, clock: kit.clock });
        for (let index = 0; index < 120; index += 1) await createApiKey(maker.db, { user, name: `key ${index}`, scopes: [] });
        await maker.app.close();
        const sizes = async (query: string) => {
          const { body } = await call('GET', query);
          return [body.items.length, body.count];
        };
        expect(await sizes('')).toEqual([50, 120]);
        expect(await sizes('?page=3')).toEqual([20, 120]);
        expect(await sizes('?page=4')).toEqual([0, 120]);
        expect(await sizes('?page_size=7&page=2')).toEqual([7, 120]);
        expect(await sizes('?page_size=100')).toEqual([100, 120]);
        expect(await sizes('?page_size=100000')).toEqual([100, 120]);
        const seen = new Set<string>();
        for (const page of [1, 2, 3]) for (const { id } of (await call('GET', `?page=${page}`)).body.items) seen.add(String(id));
        expect(seen.size).toBe(120);
      });

      test.each(['?page=0', '?page=x', '?page_size=0', '?page_size=-1', '?state=lost', '?nonsense=1'])('422 for %s', async (query) => {
        expect((await call('GET', query)).status).toBe(422);
      });

      test('a page costs a bounded number of statements', async () => {
        await create();
        const { count } = await countQueries(() => call('GET'));
        expect(count).toBeLessThanOrEqual(3);
      });
    });

    describe('GET /{id}', () => {
      test('200: an id is the same in upper case', async () => {
        const { body } = await create();
        expect((await call('GET', `/${String(body.id).toUpperCase()}`)).body.id).toBe(body.id);
      });

      test('200: the record, without the key', async () => {
        const { body } = await create();
        const { key: _key, ...record } = body;
        expect((await call('GET', `/${body.id}`)).body).toEqual(record);
      });

      test('404 for a missing and for another user’s key, exactly alike', async () => {
        const { apiKey } = await createApiKey(kit.db, { user: others, name: 'foreign', scopes: [] });
        for (const [method, suffix, payload] of [
          ['GET', ''],
          ['PATCH', '', { name: 'x' }],
          ['POST', '/rotate', {}],
          ['DELETE', ''],
        ] as const) {
          const bodies = [];
          for (const id of [apiKey.id, UNKNOWN_ID]) {
            const { status, body } = await call(method, `/${id}${suffix}`, payload);
            const { request_id: _id, ...rest } = body;
            bodies.push([status, rest]);
          }
          expect(bodies[0]).toEqual(bodies[1]);
          expect(bodies[0]?.[0]).toBe(404);
        }
      });

      test('404 for an id that is no UUID', async () => {
        const { status, body } = await call('GET', '/seven');
        expect([status, body.code]).toEqual([404, 'api_key_not_found']);
      });
    });

    describe('PATCH /{id}', () => {
      test('200: changes name, scopes and expiry; the secret stays', async () => {
        const { body } = await create();
        const edited = await call('PATCH', `/${body.id}`, {
          name: 'deploys',
          scopes: ['orders:write', 'orders:read'],
          expires_at: inDays(2),
        });
        expect([edited.status, edited.body]).toMatchObject([
          200,
          { name: 'deploys', scopes: ['orders:read', 'orders:write'], expires_at: inDays(2) },
        ]);
        expect('key' in edited.body).toBe(false);
        expect(await works(String(body.key))).toBe(true);
        expect((await call('PATCH', `/${body.id}`, { expires_at: null })).body.expires_at).toBeNull();
        expect((await call('PATCH', `/${body.id}`, {})).body).toMatchObject({ name: 'deploys', expires_at: null });
      });

      test('422: an owner who cannot set the rate limit cannot remove it either; null where there is none changes nothing', async () => {
        const limited = await createApiKey(kit.db, { user, name: 'limited', scopes: [], rateLimit: '5/min' });
        const refused = await call('PATCH', `/${limited.apiKey.id}`, { rate_limit: null });
        expect(places(refused)).toEqual([422, 'validation_error', ['body.rate_limit not_allowed']]);
        expect((await call('GET', `/${limited.apiKey.id}`)).body.rate_limit).toBe('5/min');
        const { status, body } = await create({ rate_limit: null });
        expect([status, body.rate_limit]).toEqual([201, null]);
        expect((await call('PATCH', `/${body.id}`, { rate_limit: null })).status).toBe(200);
      });

      test('409 on a revoked key', async () => {
        const { body } = await create();
        await call('DELETE', `/${body.id}`);
        expect(await call('PATCH', `/${body.id}`, { name: 'x' })).toMatchObject({ status: 409, body: { code: 'key_revoked' } });
      });

      test('422 for bad values and unknown fields', async () => {
        const { body } = await create();
        expect(places(await call('PATCH', `/${body.id}`, { name: '', prefix: 'abc' }))).toEqual([
          422,
          'validation_error',
          ['body.prefix unknown_field', 'body.name too_small'],
        ]);
        expect(places(await call('PATCH', `/${body.id}`, { expires_at: inDays(-1) }))).toEqual([
          422,
          'validation_error',
          ['body.expires_at in_the_past'],
        ]);
      });
    });

    describe('POST /{id}/rotate', () => {
      test('200: the record with a new key; without grace the old one dies at once', async () => {
        const { body } = await create({ expires_at: inDays(9) });
        const rotated = await call('POST', `/${body.id}/rotate`, {});
        expect([rotated.status, rotated.headers['cache-control']]).toEqual([200, 'no-store']);
        expect({ ...rotated.body, key: null }).toEqual({ ...body, key: null });
        expect([await works(String(body.key)), await works(String(rotated.body.key))]).toEqual([false, true]);
      });

      test('the body may be left out', async () => {
        const { body } = await create();
        expect((await call('POST', `/${body.id}/rotate`)).status).toBe(200);
      });

      test('with grace both work until it ends, and the record shows the old one’s end and last use', async () => {
        const { body } = await create();
        const rotated = await call('POST', `/${body.id}/rotate`, { grace_seconds: 3600 });
        expect(rotated.body.previous_expires_at).toBe(new Date(kit.clock.now().getTime() + 3_600_000).toISOString());
        expect([await works(String(body.key)), await works(String(rotated.body.key))]).toEqual([true, true]);
        kit.clock.advance(3_600_000);
        expect([await works(String(body.key)), await works(String(rotated.body.key))]).toEqual([false, true]);
      });

      test('409 on a revoked key; 422 for a bad grace', async () => {
        const { body } = await create();
        for (const grace_seconds of [-1, 1.5, 'long', 1e12]) {
          expect((await call('POST', `/${body.id}/rotate`, { grace_seconds })).status).toBe(422);
        }
        await call('DELETE', `/${body.id}`);
        expect(await call('POST', `/${body.id}/rotate`, {})).toMatchObject({ status: 409, body: { code: 'key_revoked' } });
      });
    });

    describe('DELETE /{id}', () => {
      test('204 without a body, repeatable; the first time is kept', async () => {
        const { body } = await create();
        const first = await call('DELETE', `/${body.id}`);
        expect([first.status, first.body]).toEqual([204, undefined]);
        expect(await works(String(body.key))).toBe(false);
        const { revoked_at } = (await call('GET', `/${body.id}`)).body;
        kit.clock.advance(1000);
        expect((await call('DELETE', `/${body.id}`)).status).toBe(204);
        expect((await call('GET', `/${body.id}`)).body).toMatchObject({ revoked_at, state: 'revoked' });
      });
    });

    test('the document: a list without orders to choose offers none, and only what nobody may send is read-only', async () => {
      const { body } = await kit.call('GET', '/openapi.json');
      const list = body.paths['/v1/api-keys'].get;
      expect(list.operationId).toBe('api_key_list');
      expect(list.parameters.flatMap(({ name }: { name?: string }) => name ?? [])).toEqual([
        'state',
        'expires_before',
        'page',
        'page_size',
      ]);
      const { name, prefix } = body.components.schemas.ApiKey.properties;
      expect([name.readOnly, name.description, prefix.readOnly]).toEqual([undefined, 'A label for people.', true]);
    });

    describe('who may', () => {
      const every = [
        ['GET', ''],
        ['POST', ''],
        ['GET', `/${UNKNOWN_ID}`],
        ['PATCH', `/${UNKNOWN_ID}`],
        ['POST', `/${UNKNOWN_ID}/rotate`],
        ['DELETE', `/${UNKNOWN_ID}`],
      ] as const;

      test.each(every)('%s %s: 401 without credentials', async (method, path) => {
        expect((await call(method, path, undefined, {})).status).toBe(401);
      });

      test.each(every)('%s %s: 403 for a key in either form, of any scope, before the body is looked at', async (method, path) => {
        for (const scopes of [['*'], []]) {
          const { raw } = await kit.key(user, { scopes });
          for (const headers of [{ 'x-api-key': raw }, { authorization: `Bearer ${raw}` }]) {
            const answer = await call(method, path, method === 'GET' ? undefined : 'not even JSON', {
              ...headers,
              ...(method === 'GET' ? {} : { 'content-type': 'application/json' }),
            });
            expect([answer.status, answer.body.code]).toEqual([403, 'keys_cannot_manage_keys']);
          }
        }
      });

      test('a deactivated user is out', async () => {
        const management = accountsOf(kit.app.db).management(null);
        await deactivateUser(kit.db, user.id, management);
        expect((await call('GET')).status).toBe(401);
      });
    });

    describe('grantable scopes', () => {
      test('by default: what mounted routes require; wildcards for staff only', async () => {
        expect((await create({ scopes: ['invoices:read', 'orders:read', 'orders:write', 'reports:read'] })).status).toBe(201);
        expect(places(await create({ scopes: ['orders:read', 'orders:*', '*', 'users:read'] }))).toEqual([
          422,
          'validation_error',
          ['body.scopes.1 scope_not_grantable', 'body.scopes.2 scope_not_grantable', 'body.scopes.3 scope_not_grantable'],
        ]);
        await kit.user(`staff${count}`, { is_staff: true });
        const staff = await call('POST', '', { name: 'root', scopes: ['*', 'orders:*'] }, { 'x-act-as': `staff${count}` });
        expect(staff.status).toBe(201);
      });

      test('apply to edit and to rotate too', async () => {
        const { body } = await create();
        expect(places(await call('PATCH', `/${body.id}`, { scopes: ['*'] }))).toEqual([
          422,
          'validation_error',
          ['body.scopes.0 scope_not_grantable'],
        ]);
        const wide = await kit.key(user, { scopes: ['*'], expiresAt: new Date(inDays(5)) });
        expect((await call('POST', `/${wide.id}/rotate`, {})).status).toBe(422);
        for (const expires_at of [inDays(9), null]) expect((await call('PATCH', `/${wide.id}`, { expires_at })).status).toBe(422);
        expect((await call('PATCH', `/${wide.id}`, { expires_at: inDays(2) })).status, 'a shorter life takes away only').toBe(200);
        expect(await works(wide.raw)).toBe(true);
        expect((await call('PATCH', `/${wide.id}`, { name: 'still renamable' })).status).toBe(200);
        expect((await call('PATCH', `/${wide.id}`, { scopes: ['orders:read'] })).status).toBe(200);
        expect((await call('POST', `/${wide.id}/rotate`, {})).status).toBe(200);
      });
    });
  },
  { prepare: prepareAccountsAndKeys, template: 'accounts_and_keys' },
);

describeDatabases(
  'a subclass of ApiKeyController',
  (database) => {
    class Keys extends ApiKeyController {
      static override readonly grantableScopes = ['orders:*', 'invoices:read'];
      static override readonly allowRateLimit = true;
    }
    let kit: KeyApp;
    beforeAll(async () => {
      kit = await startKeyApp(database.db, { controller: Keys });
      await kit.user('ada', { is_staff: true });
    });
    afterAll(() => kit.app.close());
    const call = (method: string, path: string, payload?: unknown) =>
      kit.call(method, `/v1/api-keys${path}`, { 'x-act-as': 'ada' }, payload);

    test.each([
      [['orders:read', 'orders:*', 'orders:anything', 'invoices:read'], 201],
      [['invoices:write'], 422],
      [['invoices:*'], 422],
      [['*'], 422],
    ])('granting %j answers %i, staff or not', async (scopes, status) => {
      expect((await call('POST', '', { name: 'CI', scopes })).status).toBe(status);
    });

    test('may let owners set the rate limit', async () => {
      const made = await call('POST', '', { name: 'CI', scopes: [], rate_limit: '20/5min' });
      expect([made.status, made.body.rate_limit]).toEqual([201, '20/5min']);
      const edited = await call('PATCH', `/${made.body.id}`, { rate_limit: null });
      expect([edited.status, edited.body.rate_limit]).toEqual([200, null]);
      const bad = await call('POST', '', { name: 'CI', scopes: [], rate_limit: '20/fortnight' });
      expect([bad.status, bad.body.errors[0].location, bad.body.errors[0].code]).toEqual([422, ['body', 'rate_limit'], 'invalid_rate']);
    });

    test('a key revoked between reading and writing is refused, not half changed', async () => {
      const made = await call('POST', '', { name: 'CI', scopes: [] });
      const results = await Promise.all([
        call('POST', `/${made.body.id}/rotate`, {}),
        revokeApiKey(kit.db, String(made.body.id)).then(() => ({ status: 0, body: {}, headers: {} })),
      ]);
      expect([200, 409]).toContain(results[0]?.status);
      const { body } = await call('GET', `/${made.body.id}`);
      expect(body.state).toBe('revoked');
    });
  },
  { prepare: prepareAccountsAndKeys, template: 'accounts_and_keys' },
);

describeDatabases(
  'a key never manages keys',
  (database) => {
    class StaffKeys extends ApiKeyController {
      static override readonly permission = isStaff;
    }
    class OpenKeys extends ApiKeyController {
      static override readonly permission = allowAny;
      override list = this.wrap('list', { permission: allowAny });
      override create = this.wrap('create', { permission: allowAny });
      override rotate = this.wrap('rotate', { permission: allowAny, raises: [] }, (_context, next) => next());
    }

    test.each([
      ['a subclass with its own permission', StaffKeys],
      ['a subclass and wrapped routes open to everyone', OpenKeys],
    ])('through %s', async (_, controller) => {
      const kit = await startKeyApp(database.db, { controller });
      try {
        const staff = await kit.user(`staff-${controller.name.toLowerCase()}`, { is_staff: true });
        const key = await kit.key(staff, { scopes: ['*'] });
        const calls = [
          ['GET', '', undefined],
          ['POST', '', { name: 'CI', scopes: ['*'] }],
          ['GET', `/${key.id}`, undefined],
          ['PATCH', `/${key.id}`, { name: 'mine' }],
          ['POST', `/${key.id}/rotate`, {}],
          ['DELETE', `/${key.id}`, undefined],
        ] as const;
        for (const headers of [{ 'x-api-key': key.raw }, { authorization: `Bearer ${key.raw}` }]) {
          for (const [method, path, payload] of calls) {
            const answer = await kit.call(method, `/v1/api-keys${path}`, headers, payload);
            expect([method, path, answer.status, answer.body.code]).toEqual([method, path, 403, 'keys_cannot_manage_keys']);
          }
        }
        expect((await kit.call('GET', `/v1/api-keys/${key.id}`, { 'x-act-as': staff.username })).status).toBe(200);
      } finally {
        await kit.app.close();
      }
    });

    test('routes that are taken out of their class are not served: the app does not start', async () => {
      class Loose extends Controller {
        read = new ApiKeyController().read;
        create = routeAround(new ApiKeyController().create, { permission: allowAny });
      }
      await expect(startKeyApp(database.db, { controller: Loose as unknown as typeof ApiKeyController })).rejects.toThrow('is not mounted');
    });
  },
  { prepare: prepareAccountsAndKeys, template: 'accounts_and_keys' },
);
