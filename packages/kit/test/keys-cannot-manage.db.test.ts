import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { isAuthenticated } from '../src/permissions/index.ts';
import { all } from '../src/permissions/permission.ts';
import { notByApiKey } from '../src/contrib/apikeys/request/permission.ts';
import { count, CrudController, many, one, resource } from '../src/crud/index.ts';
import {
  createTable,
  insert,
  migrate,
  migration,
  model,
  softDelete,
  softDeleteUnique,
  t,
  type Database,
  type MigrationModule,
} from '../src/db/index.ts';
import { accounts } from '../src/contrib/accounts/index.ts';
import { apiKeys } from '../src/contrib/apikeys/index.ts';
import { describeDatabases } from '../src/testing/databases.ts';
import { startKeyApp, type KeyApp } from './key-app.ts';

const columns = {
  id: t.uuidv7().pk(),
  owner_id: t.text(64).readOnly(),
  name: t.text(20),
  code: t.text(20),
  status: t.enum(['open', 'shut']).default('open'),
};
const indexes = [softDeleteUnique('code')];
const seals = model('seals', { ...columns, ...softDelete() }, { indexes });
const marks = model('marks', { id: t.uuidv7().pk(), seal_id: t.ref(() => seals), text: t.text(20) });
const markResource = resource(marks, { rows: () => ({ seal: { is: {} } }), relations: { seal: one(() => seals, 'seal_id') } });
const sealResource = resource(seals, {
  owner: 'owner_id',
  state: 'status',
  relations: { marks: many(() => marks, 'seal_id', { limit: 20 }) },
  nested: { marks: { input: ['text'] } },
  transitions: { shut: { from: ['open'], to: 'shut', on: 'selection' } },
  actions: { stamp: { on: 'selection', input: z.strictObject({ text: z.string() }), run: () => undefined } },
});
/** Every operation that an option derives: a new one is in the table of routes, and so in this test. */
class SealController extends CrudController(sealResource, {
  permission: all(notByApiKey, isAuthenticated),
  filters: { name: ['eq'] },
  search: ['name'],
  expand: ['marks'],
  restore: true,
  export: ['csv'],
  import: { formats: ['csv'], by: 'code' },
  bulk: { create: true, update: true, destroy: true },
  stats: { metrics: { seals: count() } },
  meta: true,
}) {}
const own = {
  name: 'seals',
  models: [seals, marks],
  migrations: [
    migration('0001_initial', [
      createTable('seals', { ...columns, ...softDelete() }, { indexes }),
      createTable('marks', { id: t.uuidv7().pk(), seal_id: t.ref('seals'), text: t.text(20) }),
    ]),
  ],
};
const prepare = async (db: Database) => void (await migrate(db, [accounts(), apiKeys(), own] as readonly MigrationModule[]));

describeDatabases(
  'a guard against API keys holds for every operation that is derived from a resource',
  (database) => {
    let kit: KeyApp;
    let raw: string;
    let id: string;
    beforeAll(async () => {
      kit = await startKeyApp(database.db, {
        modules: [{ ...own, resources: [markResource] }],
        app: { mount: { '/v2': { '/seals': SealController } } },
      });
      const user = await kit.user('ada', { is_staff: true });
      ({ raw } = await kit.key(user, { scopes: ['*'] }));
      ({ id } = await insert(database.db, seals, { owner_id: user.id, name: 'mine', code: 'one' }));
    });
    afterAll(() => kit.app.close());
    const routesOf = (name: string) => kit.app.routes.filter(({ controller }) => controller === name);
    const denied = async (name: string, row: string) => {
      for (const { method, path, field } of routesOf(name))
        for (const headers of [{ 'x-api-key': raw }, { authorization: `Bearer ${raw}` }]) {
          const hasBody = method !== 'GET' && method !== 'DELETE';
          const type = hasBody ? { 'content-type': 'application/json' } : {};
          const url = `${path.replace(':id', row)}?nonsense=1`;
          const answer = await kit.call(method, url, { ...headers, ...type }, hasBody ? 'not even JSON' : undefined);
          expect([field, answer.status, answer.body.code]).toEqual([field, 403, 'keys_cannot_manage_keys']);
        }
    };

    test('every route of ApiKeyController: 403 before the input is read, and the key stays as it is', async () => {
      const [before] = await database.db.query<{ id: string }>('select * from api_keys');
      expect(
        routesOf('ApiKeyController')
          .map(({ field }) => field)
          .toSorted(),
      ).toEqual(['create', 'edit', 'list', 'read', 'revoke', 'rotate']);
      await denied('ApiKeyController', String(before?.id));
      const [after] = await database.db.query<{ last_used_at: Date }>('select * from api_keys');
      expect({ ...after, last_used_at: null }).toEqual({ ...before, last_used_at: null });
    });

    test('403 before the input is read, in either form of the key; nothing is read or written', async () => {
      const fields = routesOf('SealController').map(({ field }) => field);
      const known =
        'list query queryAlias retrieve create update partialUpdate destroy restore export import bulkCreate bulkUpdate bulkDestroy stats meta shut stamp transitions';
      const ofSelections = fields.filter((field) => /^(?:shut|stamp)./.test(field));
      expect(fields.toSorted()).toEqual([...known.split(' '), ...ofSelections].toSorted());
      expect(ofSelections).toHaveLength(2);
      await denied('SealController', id);
      expect(await database.db.query('select name, status, deleted_at from seals')).toEqual([
        { name: 'mine', status: 'open', deleted_at: null },
      ]);
    });
  },
  { prepare },
);
