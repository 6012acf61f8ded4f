import { afterAll, beforeAll, expect, test } from 'vitest';
import { createTable, insert, migration, model, t } from '../../db/index.ts';
import { allowAny } from '../../permissions/index.ts';
import { describeDatabases, testApp, type TestApp } from '../../testing/index.ts';
import { CrudController, resource } from '../index.ts';

const tags = model('tags', { id: t.int().pk(), name: t.text(40) });
/** From JavaScript, or through a cast: the values are missing. */
type Careless = (context: object, next: (values?: never) => Promise<never>) => Promise<never>;
const careless: Careless = (_context, next) => next();
class TagController extends CrudController(
  resource(tags, { unscoped: true, input: ['id', 'name'], hooks: { create: careless as never, update: careless as never } }),
  { permission: allowAny },
) {}

describeDatabases('hooks that call next() without values', (database) => {
  let kit: TestApp;
  beforeAll(async () => {
    kit = await testApp({
      database: database.db,
      modules: [{ name: 'tags', models: [tags], migrations: [migration('0001_tags', [createTable('tags', tags.columns)])] }],
      mount: { '/v1': { '/tags': TagController } },
    });
    await insert(database.db, tags, { id: 1, name: 'old' });
  });
  afterAll(() => kit.close());

  test.each([
    ['create', 'POST', '/v1/tags', { id: 2, name: 'new' }],
    ['update', 'PATCH', '/v1/tags/1', { name: 'new' }],
  ] as const)('%s: the log names the hook and what to write, and nothing is written', async (verb, method, url, payload) => {
    const response = await kit.inject({ method, url, payload });
    expect(response.statusCode).toBe(500);
    expect(JSON.stringify(kit.records)).toContain(`The ${verb} hook of \\"tag\\" called next() without values. Write next(input).`);
    expect(await database.db.query('select id, name from tags')).toEqual([{ id: 1, name: 'old' }]);
  });
});
