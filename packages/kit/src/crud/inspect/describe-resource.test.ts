import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startDesk } from '../../../test/crud/desk.ts';
import { CustomerController, ItemController, OrderController, orderResource, startShop, type ShopApp } from '../../../test/crud/shop.ts';
import { queryHeaders } from '../../middleware/index.ts';
import { openApiDocument } from '../../openapi/index.ts';
import { isAuthenticated } from '../../permissions/index.ts';
import { describeResources } from './describe-resource.ts';
import { CrudController } from '../index.ts';

describe('tools that read the declaration', () => {
  let shop: ShopApp;
  beforeAll(async () => {
    const controllers = { '/orders': OrderController, '/customers': CustomerController, '/items': ItemController };
    shop = await startShop({ middleware: [queryHeaders()], mount: { '/v1': controllers } });
  });
  afterAll(() => shop.close());

  test('93: a resource is described: rows, fields by role, operations with statements, columns without an index', () => {
    const order = describeResources(shop.app).find(({ resource }) => resource === 'order');
    expect(order?.rows).toEqual(["of the caller's tenant: org", 'of the caller: owner_id, unless isStaff']);
    const field = (name: string) => order?.fields.find((each) => each.name === name);
    expect(field('margin')).toMatchObject({ visible_to: 'isStaff', writable_by: 'isStaff' });
    expect(field('discount')).toMatchObject({ visible_to: 'everyone', writable_by: 'isStaff' });
    expect(field('internal_note')).toMatchObject({ visible_to: 'nobody', writable_by: 'nobody' });
    expect(field('owner_id')).toMatchObject({ visible_to: 'everyone', writable_by: 'nobody' });
    expect(field('overdue')).toEqual({ name: 'overdue', visible_to: 'everyone', writable_by: 'nobody' });
    const statements = Object.fromEntries(order?.operations.map((each) => [each.name, each.statements]) ?? []);
    expect(statements).toMatchObject({
      list: '1, + 1 to count when the first page is full, + 1 per to-many expansion (1)',
      retrieve: '1, + 1 per to-many expansion (1)',
      partialUpdate: '1, + 1 per reference that is checked',
      destroy: '1',
    });
    const without = order?.unindexed.map(({ table, column }) => `${table}.${column}`);
    expect(without).toContain('orders.status');
    expect(without).toContain('order_items.order_id');
    // The index of tenant, owner and time serves it.
    expect(without).not.toContain('orders.created_at');
  });

  test('93: a field that the controller does not show is visible to nobody there', async () => {
    class Short extends CrudController(orderResource, { permission: isAuthenticated, output: ['item'] }) {}
    class Computed extends CrudController(orderResource, { permission: isAuthenticated, output: ['item', 'overdue'] }) {}
    const other = await startShop({
      mount: { '/v1': { '/short': Short, '/computed': Computed, '/customers': CustomerController, '/items': ItemController } },
    });
    try {
      const shownBy = (name: string) => {
        const fields = describeResources(other.app).find(({ controller }) => controller === name)?.fields ?? [];
        return fields.filter(({ visible_to }) => visible_to !== 'nobody').map((field) => field.name);
      };
      expect(shownBy('Short')).toEqual(['id', 'item']);
      expect(shownBy('Computed')).toEqual(['id', 'item', 'overdue']);
    } finally {
      await other.close();
    }
  });

  test('93: every generic operation says how many statements it runs', async () => {
    const desk = await startDesk();
    try {
      const tickets = describeResources(desk.app).find(({ controller }) => controller === 'TicketController');
      const statements = new Map(tickets?.operations.map((each) => [each.name, each.statements]));
      expect([...statements].filter(([, text]) => text === '-').map(([name]) => name)).toEqual(['label']);
      expect([...statements.keys()]).toEqual(
        expect.arrayContaining(['restore', 'bulkCreate', 'bulkUpdate', 'bulkDestroy', 'export', 'import']),
      );
      expect([statements.get('meta'), statements.get('stats'), statements.get('transitions')]).toEqual(['0', '1', '1']);
      expect(statements.get('bulkCreate')).toBe('a transaction of 1 per row, + 1 per reference that is checked, + 2 of the record');
    } finally {
      await desk.close();
    }
  });

  test('86: X-Query-Plan says in words what was read, and X-Query-Count how many statements', async () => {
    await shop.call('ann', 'POST', 'orders', { item: 'x', quantity: 1, total: '1.00' });
    // The first list of an app makes the key of its cursors.
    await shop.call('ann', 'GET', 'orders');
    const { headers } = await shop.call('ann', 'GET', 'orders?expand=customer,items');
    expect(headers['x-query-plan']).toBe('orders join customer; batch items limit 5');
    expect(headers['x-query-count']).toBe('2');
  });

  test('88: OpenAPI 3.2 has QUERY; 3.1 leaves it out in favour of the POST alias', () => {
    const options = { title: 'Shop', version: '1' };
    const current = openApiDocument(shop.app.routes, options);
    expect([current.openapi, Object.keys(current.paths['/v1/orders'] ?? {})]).toEqual(['3.2.0', ['get', 'query', 'post']]);
    const older = openApiDocument(shop.app.routes, { ...options, spec: '3.1' });
    expect([older.openapi, Object.keys(older.paths['/v1/orders'] ?? {})]).toEqual(['3.1.1', ['get', 'post']]);
    expect(older.paths['/v1/orders/query']).toHaveProperty('post');
    expect(JSON.stringify(older)).not.toContain('"query":{"operationId"');
  });
});
