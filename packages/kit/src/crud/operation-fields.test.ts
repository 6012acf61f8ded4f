import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startShop, type ShopApp } from '../../test/crud/shop.ts';
import { createApp } from '../app/assemble/create-app.ts';
import { createTable, migration, model, openDatabase, t } from '../db/index.ts';
import { defineErrors } from '../errors/catalog.ts';
import type { ControllerClass } from '../http/compile/controller.ts';
import { denyAll, isAuthenticated, isStaff } from '../permissions/index.ts';
import { CrudController, crudOf, resource } from './index.ts';

const memos = model('memos', { id: t.uuidv7().pk(), owner_id: t.uuid().readOnly(), text: t.text(80) });
const { memo_locked } = defineErrors('memos', { memo_locked: { status: 409, detail: 'Locked.' } });
const memoResource = resource(memos, {
  owner: 'owner_id',
  // A limit that is a static of the controller.
  validate: ({ input, caller }) => {
    const { longest = 10 } = (caller.controller ?? {}) as { readonly longest?: number };
    return (input.text ?? '').length > longest ? [{ location: ['body', 'text'], code: 'too_long', message: 'Too long.' }] : [];
  },
  hooks: { create: ({ input, caller }, next) => next({ ...input, text: `${input.text} by ${caller.user?.username}` }) },
});
class Memos extends CrudController(memoResource, {
  permission: isAuthenticated,
  bulk: { destroy: true },
  operations: { retrieve: { field: 'read' }, update: false, destroy: { field: 'remove', raises: [memo_locked] } },
}) {}
class LongMemos extends Memos {
  static readonly longest = 40;
  override read = this.wrap('read', { summary: 'One memo' });
  override remove = this.wrap('remove', { permission: denyAll });
}

describe('operations with another name', () => {
  let shop: ShopApp;
  beforeAll(async () => {
    shop = await startShop({
      database: await openDatabase('sqlite::memory:'),
      mount: { '/v1': { '/memos': Memos }, '/v2': { '/memos': LongMemos } },
      modules: [{ name: 'memos', models: [memos], migrations: [migration('0001_initial', [createTable('memos', memos.columns)])] }],
    });
  });
  afterAll(() => shop.close());
  const call = (version: string, method: string, path: string, payload?: object) =>
    shop.app.inject({
      method: method as 'GET',
      url: `/${version}/memos${path}`,
      headers: { 'x-user': 'ann' },
      ...(payload && { payload }),
    });

  test('are fields, operation ids and documents under it; their errors are added to those of the operation', () => {
    const routes = shop.app.routes.filter(({ controller }) => controller === 'Memos');
    expect(
      routes.map(({ field, operationId, metadata }) => [field, operationId, (metadata['crud'] as { operation: string }).operation]),
    ).toEqual(
      expect.arrayContaining([
        ['read', 'memos_read', 'retrieve'],
        ['remove', 'memos_remove', 'destroy'],
        ['partialUpdate', 'memos_partial_update', 'partialUpdate'],
      ]),
    );
    expect(routes.map(({ field }) => field)).not.toContain('retrieve');
    expect(routes.find(({ field }) => field === 'remove')?.raises.map(({ code }) => code)).toEqual(
      expect.arrayContaining(['not_found', 'memo_locked']),
    );
  });

  test('a permission that a subclass adds to one holds for its bulk operation, too', async () => {
    const { id } = (await call('v2', 'POST', '', { text: 'a' })).json();
    expect((await call('v2', 'GET', `/${id}`)).statusCode).toBe(200);
    expect((await call('v2', 'DELETE', `/${id}`)).statusCode).toBe(403);
    expect((await call('v2', 'POST', '/bulk-delete', { ids: [id] })).statusCode).toBe(403);
    expect((await call('v1', 'POST', '/bulk-delete', { ids: [id] })).statusCode).toBe(204);
  });

  test('rules and hooks see the class of the controller, and null for programs', async () => {
    const text = 'more than ten letters';
    expect((await call('v1', 'POST', '', { text })).statusCode).toBe(422);
    const made = await call('v2', 'POST', '', { text });
    expect([made.statusCode, made.json().text]).toEqual([201, `${text} by ann`]);
    const user = { id: made.json().owner_id, username: 'ann', email: null, is_active: true, is_staff: false, is_superuser: false };
    await expect(crudOf(shop.app, memoResource).as({ user, tenant: null }).write().create({ text })).rejects.toMatchObject({ status: 422 });
  });
});

test.each([
  [{ retrieve: { field: 'list' } }, 'operations.retrieve.field takes the name of another operation: "list".'],
  [{ retrieve: { field: 'wrap' } }, 'operations.retrieve.field takes the name of another operation: "wrap".'],
  [{ retrieve: { field: 'read' }, destroy: { field: 'read' } }, 'operations.destroy.field takes the name of another operation: "read".'],
])('a name that is taken stops the app: %j', (operations, message) => {
  class Wrong extends CrudController(memoResource, { permission: isStaff, operations }) {}
  const start = () =>
    createApp({ database: 'sqlite::memory:', log: { level: 'silent' }, mount: { '/v1': { '/x': Wrong as unknown as ControllerClass } } });
  expect(start).toThrow(`Wrong: ${message}`);
});

test('a name that no field can have fails where it is written', () => {
  expect(() => CrudController(memoResource, { permission: isStaff, operations: { retrieve: { field: 'read-one' } } })).toThrow(
    'the name of a class field',
  );
});
