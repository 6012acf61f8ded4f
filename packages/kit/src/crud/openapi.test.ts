import { wholeDocument } from '../../test/whole-document.ts';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import * as z from 'zod';
import { startDesk } from '../../test/crud/desk.ts';
import { startShop, type ShopApp } from '../../test/crud/shop.ts';
import { createApp } from '../app/assemble/create-app.ts';
import { model, softDelete, t, versioned } from '../db/index.ts';
import { openApiDocument, openApiText } from '../openapi/document.ts';
import { isAuthenticated, isStaff } from '../permissions/index.ts';
import { sample } from '../testing/sample/sample.ts';
import { count, CrudController, many, one, resource, sum, visibleTo, writableBy } from './index.ts';

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
    document = wholeDocument(openApiDocument(desk.app.routes, options));
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
      '#/components/schemas/PartialTicketBulkResult',
      '#/components/schemas/TicketBulkResult',
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
    const orders: Json = wholeDocument(openApiDocument(shop.app.routes, options));
    for (const { name, in: place, description } of orders.paths['/v1/orders'].get.parameters)
      expect([name, place, typeof description]).toEqual([name, 'query', 'string'].map((each, index) => (index === 1 ? place : each)));
  });

  test('a tree of QUERY that the document allows is taken, but for how deep and how long it is', async () => {
    const orders: Json = wholeDocument(openApiDocument(shop.app.routes, options));
    const { OrderWhere, OrderCustomerWhere } = orders.components.schemas;
    // Only what was declared has a short form: `{ total: '1' }` is eq, `{ due_at: null }` is isnull.
    const forms = (leaf: Json): string[] => (leaf.anyOf ?? [leaf]).map(({ type }: Json) => type);
    expect([forms(OrderWhere.properties.total), forms(OrderWhere.properties.due_at), forms(OrderWhere.properties.created_at)]).toEqual([
      ['string', 'object'],
      ['object', 'null'],
      ['object'],
    ]);
    expect(Object.keys(OrderCustomerWhere.properties)).toEqual(['name', 'credit', 'and', 'or', 'not']);
    const trees = { $ref: '#/components/schemas/OrderWhere', components: orders.components };
    const refusals = [];
    for (let seed = 1; seed <= 150; seed += 1) {
      const where = sample(trees, { seed, optional: 'some' });
      const { status, body } = await shop.call('sue', 'QUERY', 'orders', { where });
      const faults = ((body.errors ?? []) as { code: string }[]).filter(({ code }) => code !== 'too_many' && code !== 'too_deep');
      if (faults.length > 0 || ![200, 422].includes(status)) refusals.push({ where, status, faults });
    }
    expect(refusals).toEqual([]);
    const nested = { customer: { is: { or: [{ name: 'x' }, { not: { credit: { gte: '1.00' } } }] } } };
    expect((await shop.call('sue', 'QUERY', 'orders', { where: nested })).status).toBe(200);
  });

  test.each([
    ['fields', 'id', 200],
    ['expand', 'customer', 10],
    ['ordering', 'total', 3],
  ])('a list of names has one at least, and the document says how many at most: %s', async (name, known, max) => {
    const orders: Json = wholeDocument(openApiDocument(shop.app.routes, options));
    const { schema } = orders.paths['/v1/orders'].get.parameters.find((each: Json) => each.name === name);
    expect([schema.minItems, schema.maxItems]).toEqual([1, max]);
    for (const given of ['', Array.from({ length: max + 1 }, (_, index) => `${known}${index}`).join()])
      expect((await shop.call('sue', 'GET', `orders?${name}=${given}`)).status).toBe(422);
  });

  test('documents the headers of responses and requests', () => {
    const headers = (path: string, method: string, status: number) => Object.keys(operation(path, method).responses[status].headers);
    expect(headers('/tickets', 'get', 200)).toEqual(expect.arrayContaining(['ETag', 'Link', 'X-Total-Count']));
    expect(headers('/tickets', 'get', 304)).toEqual(expect.arrayContaining(['ETag', 'Link', 'X-Total-Count']));
    expect(headers('/tickets', 'post', 201)).toEqual(expect.arrayContaining(['ETag', 'Location', 'Idempotent-Replayed']));
    for (const status of [200, 201]) expect(headers('/tickets/import', 'post', status)).toContain('Idempotent-Replayed');
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
    expect(page.properties.items.items).toEqual({ $ref: '#/components/schemas/Ticket' });
    for (const name of ['firm', 'lines', 'lines_more']) {
      expect(Object.keys(schemas().Ticket.properties)).toContain(name);
      expect(schemas().Ticket.required).not.toContain(name);
    }
    expect(schemas().Ticket.properties.cost).toMatchObject({ 'x-visible-to': 'isStaff' });
    // Every caller gets them unless `fields` leaves them out; `cost` is for staff only.
    expect(schemas().Ticket.required).toEqual(expect.arrayContaining(['id', 'title', 'status']));
    expect(schemas().Ticket.required).not.toContain('cost');
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

  test('PUT requires the children that it would delete, and create does not', () => {
    const schema = (method: string) =>
      operation(method === 'post' ? '/tickets' : '/tickets/{id}', method).requestBody.content['application/json'].schema;
    expect(schema('post')).toEqual({ $ref: '#/components/schemas/TicketInput' });
    expect(schema('put')).toMatchObject({ allOf: [{ $ref: '#/components/schemas/TicketInput' }, { required: ['lines'] }] });
    expect(schemas().TicketInput.required).not.toContain('lines');
    expect(schema('patch')).toEqual({ $ref: '#/components/schemas/TicketPatch' });
  });

  test('sensitive members of a JSON column are marked in what is sent and absent from what is shown', () => {
    const sent = JSON.stringify(schemas().TicketInput.properties.extra);
    expect(sent).toContain('"x-sensitive":true');
    expect(JSON.stringify(schemas().Ticket)).not.toContain('pin');
  });

  test('the same declaration gives the same bytes', async () => {
    const again = await startDesk();
    try {
      expect(openApiText(openApiDocument(again.app.routes, options))).toBe(openApiText(openApiDocument(desk.app.routes, options)));
    } finally {
      await again.close();
    }
  });
});

describe('the OpenAPI document says of each controller what that one does', () => {
  const boards = model('boards', { id: t.uuidv7().pk(), name: t.text(20), rating: t.int().dbDefault(3) });
  const cards = model('cards', {
    id: t.uuidv7().pk(),
    board_id: t.ref(() => boards),
    title: t.text({ min: 2, max: 40 }).dbDefault('untitled'),
    slug: t.text(20),
    cost: t.int().nullable(),
    price: t.int().dbDefault(5),
    secret: t.text(20).nullable(),
    ...versioned(),
    ...softDelete(),
  });
  const boardResource = resource(boards, {
    unscoped: true,
    fields: { rating: visibleTo(isStaff) },
    relations: { cards: many(() => cards, 'board_id', { limit: 20 }) },
    nested: { cards: { input: ['title', 'slug', 'cost'], max: 5 } },
  });
  const cardResource = resource(cards, {
    unscoped: true,
    version: 'version',
    hidden: ['secret'],
    fields: { cost: visibleTo(isStaff), price: writableBy(isStaff) },
    relations: { board: one(() => boards, 'board_id') },
    computed: {
      doubled: { requires: ['cost'], response: z.number(), value: () => 2 },
      rated: { requires: ['title', 'board.rating'], response: z.number(), value: () => 2 },
      plain: { requires: ['title'], response: z.string(), value: () => '' },
    },
  });
  const permission = isAuthenticated;
  class CardController extends CrudController(cardResource, {
    permission,
    filters: { title: ['eq', 'in', 'contains'], cost: ['gte'] },
    bulk: { create: true, update: true, destroy: true },
    export: ['csv', 'jsonl'],
    stats: { by: ['cost', 'title'], metrics: { n: count(), spent: sum('cost') } },
    expand: ['board'],
    restore: true,
  }) {}
  class TaglessController extends CrudController(cardResource, {
    permission,
    etag: false,
    output: ['slug'],
    filters: { title: ['eq'] },
    page: { style: 'offset' },
  }) {}
  class StrictController extends CrudController(cardResource, { permission, etag: 'required', bulk: { update: true, destroy: true } }) {}
  class BoardController extends CrudController(boardResource, { permission }) {}
  class BoardCardController extends CrudController(cardResource, {
    permission,
    parent: { relation: 'board' },
    bulk: { create: true, mode: 'partial' },
    export: ['csv'],
  }) {}
  const app = createApp({
    database: 'sqlite::memory:',
    log: { level: 'silent' },
    mount: {
      '/v1': {
        '/cards': CardController,
        '/tagless': TaglessController,
        '/strict': StrictController,
        '/boards': BoardController,
        '/boards/:board_id/cards': BoardCardController,
      },
    },
  });
  const document: Json = wholeDocument(openApiDocument(app.routes, { title: 'Board', version: '1', spec: '3.2' }));
  const operation = (path: string, method = 'get'): Json => document.paths[`/v1${path}`][method];
  const codes = (path: string, method: string, status: number): string[] =>
    (operation(path, method).responses[status]?.['x-error-codes'] as string[] | undefined) ?? [];
  const schema = (name: string): Json => document.components.schemas[name];
  const everyParameter: Json[] = Object.entries<Json>(document.paths).flatMap(([path, item]) =>
    Object.entries<Json>(item).flatMap(([method, { parameters = [] }]) =>
      parameters.map((each: Json) => ({ ...each, at: `${method} ${path}` })),
    ),
  );

  test('every parameter has a description, and no filter has the default of its column', () => {
    expect(everyParameter.filter(({ description }) => typeof description !== 'string').map(({ at, name }) => `${at} ${name}`)).toEqual([]);
    const filters = everyParameter.filter(({ name }) => /^(?:title|cost)/.test(name));
    expect(filters.length).toBeGreaterThan(4);
    expect(JSON.stringify(filters)).not.toContain('"default"');
    expect(JSON.stringify(schema('CardWhere'))).not.toContain('"default"');
    expect(schema('CardWhere').properties.title.anyOf[1].properties).toMatchObject({
      contains: { type: 'string' },
      in: { type: 'array', minItems: 1, maxItems: 100 },
    });
    expect(schema('CardWhere').properties.title.anyOf[1].properties.contains).not.toHaveProperty('minLength');
  });

  test('what only some callers see or send says so: computed fields, filters, stats, items of bulk and nested bodies', () => {
    const { doubled, rated, plain } = schema('Card').properties;
    expect([doubled['x-visible-to'], rated['x-visible-to'], plain['x-visible-to']]).toEqual(['isStaff', 'isStaff', undefined]);
    expect(everyParameter.find(({ name, at }) => name === 'cost__gte' && at === 'get /v1/cards').schema['x-visible-to']).toBe('isStaff');
    expect(schema('CardWhere').properties.cost['x-visible-to']).toBe('isStaff');
    const groups = schema('CardStats').properties.items.items.properties;
    expect([groups.cost, groups.spent, groups.n, groups.title].map((each) => each['x-visible-to'])).toEqual([
      'isStaff',
      'isStaff',
      undefined,
      undefined,
    ]);
    const body = (path: string): Json => operation(path, 'post').requestBody.content['application/json'].schema;
    expect(body('/cards/bulk').properties.items.items.properties.price['x-writable-by']).toBe('isStaff');
    const [items, same] = body('/cards/bulk-update').anyOf;
    expect(items.properties.items.items.properties.price['x-writable-by']).toBe('isStaff');
    expect(same.properties.changes.properties.price['x-writable-by']).toBe('isStaff');
    for (const form of schema('BoardInput').properties.cards.items.anyOf) expect(form.properties.cost['x-writable-by']).toBe('isStaff');
  });

  test('a hidden column is not offered to clients, neither to read nor to send', () => {
    expect(JSON.stringify(document)).not.toContain('"secret"');
  });

  test('tags, cursors and versions are documented where they exist, and only there', () => {
    const headers = (path: string, method = 'get', status = 200) => Object.keys(operation(path, method).responses[status].headers);
    const names = (path: string, method = 'get') => (operation(path, method).parameters as Json[]).map(({ name }) => name as string);
    expect([headers('/cards').includes('ETag'), headers('/tagless').includes('ETag')]).toEqual([true, false]);
    expect([headers('/cards', 'query').includes('ETag'), headers('/tagless', 'query').includes('ETag')]).toEqual([true, false]);
    expect(Object.keys(operation('/cards', 'query').responses)).toContain('304');
    expect(names('/cards', 'query')).toContain('If-None-Match');
    expect(Object.keys(operation('/cards/query', 'post').responses)).not.toContain('304');
    expect([codes('/cards', 'get', 422).includes('invalid_cursor'), codes('/tagless', 'get', 422).includes('invalid_cursor')]).toEqual([
      true,
      false,
    ]);
    expect(codes('/cards/bulk', 'post', 412)).toEqual([]);
    expect(codes('/cards/bulk-update', 'post', 412)).toEqual(['precondition_failed']);
    expect(codes('/strict/bulk-update', 'post', 428)).toEqual(['precondition_required']);
    const [strict] = operation('/strict/bulk-update', 'post').requestBody.content['application/json'].schema.anyOf;
    expect(strict.properties.items.items.required).toEqual(['id', 'version']);
    expect(codes('/boards/{id}', 'patch', 412)).toEqual(['precondition_failed']);
    expect(headers('/cards/{id}', 'patch', 412)).toContain('ETag');
    expect(headers('/cards', 'post', 409)).toContain('Retry-After');
    expect(operation('/tagless').parameters.find(({ name }: Json) => name === 'fields').description).toContain('such as `id`');
  });

  test('every operation below a parent can be a 404, every one that expands can be too costly, a delete can be still referenced', () => {
    const below = Object.entries<Json>(document.paths).filter(([path]) => path.startsWith('/v1/boards/{board_id}/cards'));
    const without = below.flatMap(([path, item]) =>
      Object.keys(item).filter((method) => !codes(path.slice(3), method, 404).includes('not_found')),
    );
    expect([below.length > 2, without]).toEqual([true, []]);
    const expanding = everyParameter.filter(({ name }) => name === 'expand').map(({ at }) => at.split(' ') as [string, string]);
    expect(expanding.length).toBeGreaterThan(8);
    for (const [method, path] of expanding)
      expect([method, path, codes(path.slice(3), method, 422)]).toEqual([method, path, expect.arrayContaining(['expand_too_costly'])]);
    expect(codes('/boards/{id}', 'delete', 409)).toContain('still_referenced');
    expect(codes('/cards/bulk-delete', 'post', 409)).toContain('still_referenced');
  });

  test('each format of an export is described as itself', () => {
    const { content } = operation('/cards/export').responses[200];
    for (const type of ['text/csv', 'application/x-ndjson']) expect(content[type].schema.contentMediaType).toBe(type);
  });

  test('the widest controller keeps the plain name of a component, others are named after their controllers', () => {
    const names = Object.keys(document.components.schemas);
    expect(names).toEqual(expect.arrayContaining(['Card', 'CardInput', 'CardPatch', 'TaglessCard', 'BoardCardInput', 'BoardCardPatch']));
    expect(Object.keys(schema('Card').properties).length).toBeGreaterThan(Object.keys(schema('TaglessCard').properties).length);
    expect(names.filter((name) => /\d$|InputInput|PatchInput/.test(name))).toEqual([]);
  });

  test('names do not depend on the order of routes', () => {
    const reversed: Json = openApiDocument(app.routes.toReversed(), { title: 'Board', version: '1', spec: '3.2' });
    expect(openApiText(reversed)).toBe(openApiText(openApiDocument(app.routes, { title: 'Board', version: '1', spec: '3.2' })));
  });
});
