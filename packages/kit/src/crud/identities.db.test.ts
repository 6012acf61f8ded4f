import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Authenticator } from '../auth/request/authenticator.ts';
import { createTable, migration, model, t } from '../db/index.ts';
import { isAuthenticated } from '../permissions/index.ts';
import { describeDatabases } from '../testing/databases.ts';
import { testApp, type TestApp } from '../testing/test-app.ts';
import { CrudController, resource } from './index.ts';

const intOwned = model('int_owned', { id: t.uuidv7().pk(), owner_id: t.int().readOnly(), name: t.text(20) });
const bigOwned = model('big_owned', { id: t.uuidv7().pk(), owner_id: t.bigint().readOnly(), name: t.text(20) });
const intTenants = model('int_tenants', { id: t.uuidv7().pk(), org: t.int().readOnly(), name: t.text(20) });
const bigTenants = model('big_tenants', { id: t.uuidv7().pk(), org: t.bigint().readOnly(), name: t.text(20) });
const models = [intOwned, bigOwned, intTenants, bigTenants];

const operations = {
  permission: isAuthenticated,
  bulk: { create: true, mode: 'partial' },
  import: { formats: ['jsonl'] },
} as const;
class IntOwnedController extends CrudController(resource(intOwned, { owner: 'owner_id' }), operations) {}
class BigOwnedController extends CrudController(resource(bigOwned, { owner: 'owner_id' }), operations) {}
class IntTenantController extends CrudController(resource(intTenants, { tenant: 'org' }), operations) {}
class BigTenantController extends CrudController(resource(bigTenants, { tenant: 'org' }), operations) {}

/** Ids of users and tenants as an identity provider gives them: any text. */
const byId: Authenticator = {
  name: 'id',
  securityScheme: { type: 'http', scheme: 'id' },
  authenticate({ headers: { 'x-id': given } }) {
    if (typeof given !== 'string') return null;
    const id = JSON.parse(given) as string;
    return { user: { id, username: id, email: null, is_active: true, is_staff: false, is_superuser: false }, scheme: 'id', scopes: null };
  },
};

describeDatabases('owners and tenants that are numbers', (database) => {
  let app: TestApp;
  beforeAll(async () => {
    app = await testApp({
      database: database.db,
      authenticators: [byId],
      tenant: ({ user }) => user?.id ?? null,
      modules: [
        {
          name: 'identities',
          models,
          migrations: [
            migration(
              '0001_initial',
              models.map(({ name, columns }) => createTable(name, columns)),
            ),
          ],
        },
      ],
      mount: {
        '/v1': {
          '/int-owned': IntOwnedController,
          '/big-owned': BigOwnedController,
          '/int-tenants': IntTenantController,
          '/big-tenants': BigTenantController,
        },
      },
    });
  });
  afterAll(() => app.close());

  const call = async (id: string, method: 'GET' | 'POST', path: string, payload?: object | string) => {
    const headers = {
      'x-id': JSON.stringify(id),
      ...(typeof payload === 'string' ? { 'content-type': 'application/x-ndjson' } : {}),
    };
    const response = await app.inject({ method, url: `/v1/${path}`, headers, ...(payload === undefined ? {} : { payload }) });
    return { status: response.statusCode, body: response.json() };
  };

  test.each(['int-owned', 'big-owned', 'int-tenants', 'big-tenants'])(
    '%s: a number has one text: other spellings, and what is not a number, see nothing and write nothing',
    async (path) => {
      expect((await call('16', 'POST', path, { name: 'of 16' })).status).toBe(201);
      const { id } = (await call('16', 'GET', path)).body.items[0] as { id: string };
      for (const other of ['016', '0x10', '16.0', '1.6e1', ' 16', '16 ', '+16', '0b10000', 'abc', '16n', '7.5', '9'.repeat(30)]) {
        const list = await call(other, 'GET', path);
        expect([other, list.status, list.body.items]).toEqual([other, 200, []]);
        expect([other, (await call(other, 'GET', `${path}/${id}`)).status]).toEqual([other, 404]);
        const made = await call(other, 'POST', path, { name: 'x' });
        expect([other, made.status, made.body.code]).toEqual([other, 422, 'value_not_storable']);
        expect((await call(other, 'POST', `${path}/bulk`, { items: [{ name: 'x' }] })).body.results[0].status).toBe(422);
        expect((await call(other, 'POST', `${path}/import`, '{"name":"x"}')).status).toBe(422);
      }
      expect((await call('16', 'GET', path)).body.items).toHaveLength(1);
      expect((await call('-3', 'POST', path, { name: 'of -3' })).status).toBe(201);
      expect((await call('-3', 'GET', path)).body.items).toHaveLength(1);
    },
  );
});
