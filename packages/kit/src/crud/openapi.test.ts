import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startDesk } from '../../test/crud/desk.ts';
import { startShop, type ShopApp } from '../../test/crud/shop.ts';
import { openApiDocument, openApiText } from '../openapi/index.ts';

// oxlint-disable-next-line typescript/no-explicit-any -- a document of any shape
type Json = any;

describe('the OpenAPI document of generic CRUD', () => {
  let desk: ShopApp;
  let shop: ShopApp;
  let document: Json;
  const options = { title: 'Desk', version: '1' };
  const operation = (path: string, method = 'get') => document.paths[`/v1${path}`][method];
  const codes = (path: string, method: string, status: number): string[] =>
    (operation(path, method).responses[status]?.['x-error-codes'] as string[] | undefined) ?? [];
  const parameter = (path: string, name: string, method = 'get'): Json =>
    operation(path, method).parameters.find((each: Json) => each.name === name);
  const schemas = (): Json => document.components.schemas;

  beforeAll(async () => {
    desk = await startDesk();
    shop = await startShop();
    document = openApiDocument(desk.app.routes, options);
  });
  afterAll(async () => {
    await desk.close();
    await shop.close();
  });

  test('names its components after the resource, each once', () => {
    const names = Object.keys(schemas());
    for (const name of ['Ticket', 'TicketInput', 'TicketPatch', 'TicketPage', 'TicketWhere', 'TicketBulkResult', 'Line', 'Firm'])
      expect(names).toContain(name);
    expect(names.filter((name) => /^Ticket(Input|Patch|Page|Where)?_\d/.test(name))).toEqual([]);
    // Two controllers of one resource, whose modes differ: one component each, for all their bulk operations.
    const bulk = (path: string, status: number): string =>
      operation(path, 'post').responses[status].content['application/json'].schema.$ref;
    expect(bulk('/tickets/bulk', 201)).toBe(bulk('/tickets/bulk-update', 200));
    expect(new Set(['/partial/bulk', '/partial/bulk-update', '/partial/bulk-delete'].map((path) => bulk(path, 207))).size).toBe(1);
    expect([bulk('/tickets/bulk', 201), bulk('/partial/bulk', 207)].toSorted()).toEqual([
      '#/components/schemas/TicketBulkResult',
      '#/components/schemas/TicketBulkResult2',
    ]);
  });

  test('88: lists every filter as a typed parameter with its description; lists of values are separated by commas', () => {
    const filters = {
      status: { enum: ['open', 'paid'] },
      status__in: { type: 'array', maxItems: 100 },
      title__contains: { type: 'string' },
      cost__gte: { type: 'integer' },
      created_at__gte: { type: 'string', format: 'date-time' },
      firm__name: { type: 'string' },
    };
    for (const [name, schema] of Object.entries(filters)) {
      const found = parameter('/tickets', name);
      expect([name, found?.in, found?.schema]).toEqual([name, 'query', expect.objectContaining(schema)]);
      expect([name, typeof found.description]).toEqual([name, 'string']);
    }
    for (const name of ['status__in', 'ordering', 'fields', 'expand'])
      expect([name, parameter('/tickets', name)]).toMatchObject([name, { style: 'form', explode: false }]);
    const orders: Json = openApiDocument(shop.app.routes, options);
    for (const { name, in: place, description } of orders.paths['/v1/orders'].get.parameters)
      expect([name, place, typeof description]).toEqual([name, 'query', 'string'].map((each, index) => (index === 1 ? place : each)));
  });

  test('documents the headers of responses and requests', () => {
    const headers = (path: string, method: string, status: number) => Object.keys(operation(path, method).responses[status].headers);
    expect(headers('/tickets', 'get', 200)).toEqual(expect.arrayContaining(['ETag', 'Link', 'X-Total-Count']));
    expect(headers('/tickets', 'post', 201)).toEqual(expect.arrayContaining(['ETag', 'Location', 'Idempotent-Replayed']));
    expect(headers('/tickets/{id}', 'patch', 200)).toContain('ETag');
    expect(headers('/partial/bulk', 'post', 207)).toContain('X-Bulk-Failed');
    expect(parameter('/tickets/{id}', 'If-None-Match')).toMatchObject({ in: 'header' });
    expect(parameter('/tickets/{id}', 'If-Match', 'patch')).toMatchObject({ in: 'header' });
    expect(parameter('/tickets/{id}', 'If-Match', 'patch').required).toBeUndefined();
    expect(parameter('/partial/{id}', 'If-Match', 'patch').required).toBe(true);
    expect(parameter('/tickets/bulk-update', 'If-Match', 'post')).toBeUndefined();
    expect(parameter('/tickets', 'Idempotency-Key', 'post')).toMatchObject({ in: 'header' });
  });

  test('has every status with its codes', () => {
    expect(operation('/tickets/{id}').responses).toHaveProperty('304');
    expect(operation('/tickets').responses).toHaveProperty('304');
    expect(operation('/partial/bulk', 'post').responses).toHaveProperty('207');
    expect(operation('/tickets/import', 'post').responses).toHaveProperty('200');
    const expected: [string, string, number, string][] = [
      ['/tickets', 'get', 422, 'invalid_cursor'],
      ['/tickets', 'get', 422, 'expand_too_costly'],
      ['/tickets', 'get', 403, 'tenant_required'],
      ['/tickets', 'post', 409, 'conflict'],
      ['/tickets', 'post', 409, 'request_in_progress'],
      ['/tickets', 'post', 422, 'idempotency_key_reused'],
      ['/tickets/{id}', 'get', 404, 'not_found'],
      ['/tickets/{id}', 'patch', 412, 'precondition_failed'],
      ['/partial/{id}', 'patch', 428, 'precondition_required'],
      ['/tickets/{id}', 'delete', 409, 'too_many_related'],
      ['/tickets/{id}/restore', 'post', 409, 'deleted_with_parent'],
      ['/tickets/{id}/pay', 'post', 409, 'invalid_transition'],
      ['/tickets/bulk-update', 'post', 404, 'not_found'],
      ['/tickets/bulk-delete', 'post', 404, 'not_found'],
      ['/tickets/export', 'get', 422, 'export_too_large'],
      ['/tickets/stats', 'get', 422, 'too_many_groups'],
      ['/tickets/import', 'post', 413, 'body_too_large'],
    ];
    for (const [path, method, status, code] of expected)
      expect([path, method, status, codes(path, method, status)]).toEqual([path, method, status, expect.arrayContaining([code])]);
    const transition = codes('/tickets/{id}/pay', 'post', 428);
    expect(transition).toEqual([]);
  });

  test('expanded members are optional, hidden fields say who sees them, and each operation says what it is', () => {
    const item: Json = operation('/tickets').responses[200].content['application/json'].schema;
    const page: Json = schemas()[item.$ref.split('/').at(-1)];
    const [row, expansions]: Json[] = page.properties.items.items.allOf;
    expect(row).toEqual({ $ref: '#/components/schemas/Ticket' });
    expect([Object.keys(expansions.properties), expansions.required]).toEqual([['firm', 'lines', 'lines_more'], undefined]);
    expect(schemas().Ticket.properties.cost).toMatchObject({ 'x-visible-to': 'isStaff' });
    expect(schemas().Ticket.required).toEqual(['id']);
    expect(schemas().TicketInput.properties.discount).toMatchObject({ 'x-writable-by': 'isStaff' });
    expect(Object.keys(schemas().TicketPatch.properties)).not.toContain('status');
    const marks = Object.entries<Json>(document.paths).flatMap(([path, item]) =>
      Object.entries<Json>(item).map(([method, { 'x-kit-crud': mark }]) => [path, method, mark] as const),
    );
    const without = marks.filter(([path, , mark]) => path.startsWith('/v1/tickets') && mark === undefined);
    expect(without.map(([path]) => path)).toEqual(['/v1/tickets/{id}/label']);
    expect(operation('/tickets/{id}/pay', 'post')['x-kit-crud']).toEqual({ resource: 'ticket', operation: 'pay' });
    expect(operation('/tickets', 'post').operationId).toBe('ticket_create');
    expect(operation('/tickets/bulk', 'post').operationId).toBe('ticket_bulk_create');
  });

  test('sensitive members of a JSON column are marked in what is sent and absent from what is shown', () => {
    const sent = JSON.stringify(schemas().TicketInput.properties.extra);
    expect(sent).toContain('"x-sensitive":true');
    expect(JSON.stringify(schemas().Ticket)).not.toContain('pin');
  });

  test('the same declaration gives the same bytes', async () => {
    const again = await startDesk();
    try {
      expect(openApiText(openApiDocument(again.app.routes, options))).toBe(openApiText(document));
    } finally {
      await again.close();
    }
  });
});
