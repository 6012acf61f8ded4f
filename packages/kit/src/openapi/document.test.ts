import { wholeDocument } from '../../test/whole-document.ts';
import { Validator } from '@seriousme/openapi-schema-validator';
import { expect, test } from 'vitest';
import * as z from 'zod';
import type { Authenticator } from '../auth/request/authenticator.ts';
import { dbErrors } from '../db/errors.ts';
import { coreErrors } from '../errors/core-errors.ts';
import type { CompiledRoute, RouteSchema } from '../http/exchange/compiled-route.ts';
import { jsonSchemaOf, type Schema } from '../http/declare/schema.ts';
import { allowAny, hasRule, hasScopes, isAuthenticated, isReadOnly } from '../permissions/built-ins.ts';
import { all, any } from '../permissions/permission.ts';
import { t } from '../db/declare/column.ts';
import { UUID_PATTERN } from '../db/values/uuid.ts';
import { model } from '../db/declare/model.ts';
import { page } from '../http/declare/page.ts';
import { closeObjects } from './close-objects.ts';
import { diffDocuments } from './diff/diff-documents.ts';
import { schemaNameFaults } from './schemas-of-routes.ts';
import { defineErrors } from '../errors/catalog.ts';
import { openApiDocument, openApiText, type OpenApiDocument } from './document.ts';

const session: Authenticator = {
  name: 'session',
  securityScheme: { type: 'apiKey', in: 'cookie', name: 'kit_session' },
  authenticate: () => null,
  verifyCsrf: () => undefined,
};
const apiKey: Authenticator = {
  name: 'api_key',
  securityScheme: { type: 'apiKey', in: 'header', name: 'X-API-Key' },
  authenticate: () => null,
};

const input = (schema: Schema): RouteSchema => ({ schema, json: jsonSchemaOf(schema, 'input') });
const output = (schema: Schema): RouteSchema => ({ schema, json: jsonSchemaOf(schema, 'output') });

function row(changes: Partial<CompiledRoute>): CompiledRoute {
  return {
    operationId: 'order_list', method: 'GET', path: '/v1/orders', mount: '/v1', controller: 'OrderController', field: 'list', kind: 'json', ends: false,
    mediaType: 'application/json', summary: 'List orders', description: undefined, tags: ['orders'], deprecated: false, hidden: false,
    params: undefined, query: undefined, headers: undefined, cookies: undefined, body: undefined, rawBody: undefined, response: undefined, responses: {}, status: 200, permission: isAuthenticated, scope: undefined,
    authenticators: [session, apiKey], csrf: true, throttles: [], errors: [], raises: [], middleware: [], documents: [], responseFacts: {}, bodyBytesMax: 1024, timeoutMs: 0, atomic: undefined, idempotency: undefined, isRead: false, readFrom: undefined, tool: undefined, metadata: {},
    route: undefined as never, ...changes,
  }; // prettier-ignore
}

const Line = z
  .strictObject({ sku: z.string().meta({ examples: ['A-1'] }), secret: z.string().meta({ 'x-sensitive': true }) })
  .meta({ id: 'Line' });
const Order = z
  .strictObject({ id: z.uuid(), lines: z.array(Line), note: z.string().default('') })
  .meta({ id: 'Order', examples: [{ lines: [] }] });
type Tree = { child?: Tree | undefined };
const Tree: z.ZodType<Tree> = z.strictObject({
  get child() {
    return Tree.optional();
  },
});

const routes: CompiledRoute[] = [
  row({ response: output(z.object({ items: z.array(Order) })), query: input(z.strictObject({ page: z.int().min(1).optional(), tag: z.array(z.string()).optional() })) }),
  row({ operationId: 'order_create', method: 'POST', body: input(Order), response: output(Order), status: 201, raises: [{ status: 409, code: 'out_of_stock', detail: 'Nothing left.' }] }),
  row({ operationId: 'order_get', path: '/v1/orders/:id', params: input(z.strictObject({ id: z.uuid() })), response: output(Order), permission: hasScopes(), scope: 'orders:read' }),
  row({ operationId: 'order_delete', method: 'DELETE', path: '/v1/orders/:id', status: 204, mediaType: undefined, deprecated: { since: '2026-01-01', sunset: '2027-01-01', link: 'https://example.org/move' } }),
  row({ operationId: 'tree_put', method: 'PUT', path: '/v1/tree', body: input(Tree), permission: allowAny }),
  row({ operationId: 'feed', path: '/v1/feed', kind: 'stream', mediaType: 'text/event-stream', response: output(Line) }),
  row({ operationId: 'hidden_one', path: '/internal', hidden: true }),
]; // prettier-ignore

const options = { title: 'Orders', version: '1.0.0' };
interface Operation {
  readonly responses: Readonly<
    Record<string, { readonly content?: Record<string, Record<string, unknown>>; readonly 'x-error-codes'?: readonly string[] }>
  >;
  readonly security: readonly object[];
  readonly [member: string]: unknown;
}
const operation = (document: OpenApiDocument, path: string, method: string): Operation =>
  wholeDocument(document).paths[path]?.[method] as Operation;
const codes = (found: Operation): string[] => Object.values(found.responses).flatMap((response) => response['x-error-codes'] ?? []);

test.each([
  ['3.1.1', routes],
  ['3.2.0', [...routes, row({ operationId: 'order_search', method: 'QUERY', path: '/v1/orders', body: input(z.strictObject({ text: z.string() })), response: output(z.array(Order)) })]],
] as const)('the document is valid OpenAPI %s, as an independent validator reads it', async (version, rows) => {
  const document = openApiDocument(rows, options);
  expect(document.openapi).toBe(version);
  const result = await new Validator().validate(JSON.parse(openApiText(document)) as Record<string, unknown>);
  expect(result.errors ?? []).toEqual([]);
  expect(result.valid).toBe(true);
}); // prettier-ignore

test('the same routes give the same bytes, whatever order they were mounted in', () => {
  expect(openApiText(openApiDocument(routes.toReversed(), options))).toBe(openApiText(openApiDocument(routes, options)));
});

test('named schemas become components; what arrives and what leaves differ only where they do', () => {
  const { components } = openApiDocument(routes, options);
  expect(Object.keys(components['schemas'] ?? {}).filter((name) => !name.endsWith('Members'))).toEqual([
    'FieldError',
    'Line',
    'Order',
    'OrderInput',
    'OrderListOutput',
    'Problem',
    'TreePutInput',
  ]);
  expect(components['schemas']?.['Order']).toMatchObject({
    required: ['id', 'lines', 'note'],
    properties: { lines: { items: { $ref: '#/components/schemas/Line' } } },
  });
  expect(components['schemas']?.['OrderInput']).toMatchObject({ required: ['id', 'lines'] });
  expect(components['schemas']?.['TreePutInput']).toMatchObject({ properties: { child: { $ref: '#/components/schemas/TreePutInput' } } });
});

test('a schema with the name of an error schema is a component of its own', () => {
  const named = (id: string) => output(z.strictObject({ [id]: z.string() }).meta({ id }));
  const own = ['Problem', 'FieldError'].map((id) => row({ operationId: `${id}_list`, path: `/v1/${id}`, response: named(id) }));
  // oxlint-disable-next-line typescript/no-explicit-any -- a document of any shape
  const { paths, components } = openApiDocument(own, { title: 'Own', version: '1' }) as any;
  for (const id of ['Problem', 'FieldError']) {
    const { $ref } = paths[`/v1/${id}`].get.responses[200].content['application/json'].schema;
    expect($ref).toBe(`#/components/schemas/Order${id}`);
    expect(components.schemas[`Order${id}`].required).toEqual([id]);
    expect(components.schemas[id].required).toContain('code');
  }
});

test('a controller that is called like the resource keeps the plain name, whichever schema is wider or comes first; pages follow their items', () => {
  const named = (fields: string[]) =>
    output(z.strictObject(Object.fromEntries(fields.map((field) => [field, z.string()]))).meta({ id: 'Note' }));
  const paged = (schema: RouteSchema) => output(page(schema.schema));
  const crud = (controller: string, path: string, schema: RouteSchema) => {
    const facts = { controller, metadata: { openapi: { 'x-kit-crud': { resource: 'note' } } } };
    const id = controller.toLowerCase();
    return [
      row({ ...facts, operationId: `${id}_list`, path, response: paged(schema) }),
      row({ ...facts, operationId: `${id}_read`, path: `${path}/:id`, response: schema }),
    ];
  };
  const [narrow, wide] = [named(['id']), named(['id', 'title', 'text'])];
  // oxlint-disable-next-line typescript/no-explicit-any -- a document of any shape
  const schemasOf = (rows: readonly CompiledRoute[]): any => (openApiDocument(rows, options).components as any).schemas;
  for (const [main, other] of [[narrow, wide], [wide, narrow]] as const)
    for (const [first, second] of [['/a', '/z'], ['/z', '/a']] as const) {
      const schemas = schemasOf([...crud('NoteController', first, main), ...crud('BoardNoteController', second, other)]);
      expect(Object.keys(schemas).filter((name) => name.includes('Note'))).toEqual(['BoardNote', 'BoardNotePage', 'Note', 'NotePage']);
      expect(Object.keys(schemas.Note.properties)).toHaveLength(main === wide ? 3 : 1);
      expect(schemas.NotePage.properties.items.items).toEqual({ $ref: '#/components/schemas/Note' });
      expect(schemas.BoardNotePage.properties.items.items).toEqual({ $ref: '#/components/schemas/BoardNote' });
    }
  // Without such a controller the widest one keeps it.
  const others = schemasOf([...crud('ArchiveController', '/a', narrow), ...crud('BoardController', '/b', wide)]);
  expect([Object.keys(others.Note.properties).length, Object.keys(others.ArchiveNote.properties).length]).toEqual([3, 1]);
}); // prettier-ignore

test('two different schemas with one name in one controller are a fault that says how to name them', () => {
  const named = (field: string) => output(z.strictObject({ [field]: z.string() }).meta({ id: 'Order' }));
  const rows = ['a', 'b', 'c'].map((field) => row({ operationId: `order_${field}`, path: `/v1/${field}`, response: named(field) }));
  const sentence = 'OrderController has two different schemas that are named "Order".';
  expect(() => openApiDocument(rows, options)).toThrow(sentence);
  expect(schemaNameFaults(rows)).toEqual([
    { id: 'E003', message: sentence, hint: expect.stringContaining(".meta({ id: 'OrderSummary' })") },
  ]);
});

test('errors with further members have them in their schemas, also those of an application', () => {
  const { out_of_stock } = defineErrors('members-test', {
    out_of_stock: { status: 409, detail: 'Nothing left.', members: { left: { type: 'integer', description: 'How many are left.' } } },
  });
  const raised = { status: 409, code: 'out_of_stock', detail: 'Nothing left.', members: out_of_stock.members };
  const left = { type: 'integer', description: 'How many are left.' };
  const conflictOf = (document: OpenApiDocument) =>
    operation(document, '/v1/orders', 'get').responses['409']?.content?.['application/problem+json'];
  const document = openApiDocument([row({ raises: [raised, coreErrors.permission_denied] })], options);
  expect(document.components['schemas']).not.toHaveProperty('OutOfStockMembers');
  expect(conflictOf(document)).toEqual({
    schema: {
      allOf: [{ $ref: '#/components/schemas/Problem' }, { properties: { code: { enum: ['out_of_stock', 'write_conflict'] }, left } }],
    },
  });
  // Members that several responses have are a component; codes with the same members share it.
  const closed = { status: 409, code: 'shop_closed', detail: 'The shop is closed.', members: { left } };
  const several = openApiDocument(
    [row({ raises: [raised] }), row({ operationId: 'order_create', method: 'POST', raises: [raised, closed] })],
    options,
  );
  expect(several.components['schemas']).toMatchObject({ OutOfStockMembers: { type: 'object', properties: { left } } });
  expect(several.components['schemas']).not.toHaveProperty('ShopClosedMembers');
  const referred = [{ $ref: '#/components/schemas/Problem' }, { $ref: '#/components/schemas/OutOfStockMembers' }];
  expect(conflictOf(several)).toEqual({
    schema: { allOf: [...referred, { properties: { code: { enum: ['out_of_stock', 'write_conflict'] } } }] },
  });
  expect(operation(several, '/v1/orders', 'post').responses['409']?.content?.['application/problem+json']).toEqual({
    schema: { allOf: [...referred, { properties: { code: { enum: ['out_of_stock', 'shop_closed', 'write_conflict'] } } }] },
  });
  // The name of a response does not depend on who else has its members.
  const namesOf = ({ components }: OpenApiDocument) => Object.keys(components['responses'] ?? {});
  expect(namesOf(several)).toEqual(expect.arrayContaining(namesOf(openApiDocument([row({ raises: [raised] })], options))));
  expect(out_of_stock({ extensions: { left: 2 } }).extensions).toEqual({ left: 2 });
  // @ts-expect-error An error has the members that it declares.
  out_of_stock({ extensions: { rest: 2 } });
});

test('a response with all members of another one and its name refers to it; responses may get further members', () => {
  const fields = { a: z.string(), b: z.string(), c: z.string(), d: z.string(), e: z.string(), f: z.string().nullable() };
  const [plain, wide] = [
    z.strictObject(fields).meta({ id: 'Key' }),
    z.strictObject({ ...fields, secret: z.string() }).meta({ id: 'IssuedKey' }),
  ];
  const body = z.strictObject({ ...fields, secret: z.string() }).meta({ id: 'KeyInput' });
  const { schemas } = openApiDocument(
    [
      row({ operationId: 'key_read', path: '/v1/keys', response: output(plain) }),
      row({ operationId: 'key_create', method: 'POST', path: '/v1/keys', body: input(body), response: output(wide) }),
    ],
    options,
  ).components;
  expect(schemas?.['Key']).not.toHaveProperty('additionalProperties');
  expect(schemas?.['IssuedKey']).toEqual({
    allOf: [{ $ref: '#/components/schemas/Key' }, { type: 'object', properties: { secret: { type: 'string' } }, required: ['secret'] }],
  });
  // Requests are closed, and stay whole.
  expect(schemas?.['KeyInput']).toMatchObject({ additionalProperties: false, properties: { a: {}, secret: {} } });
});

test('objects inside responses may get further members, too; alternatives stay as they are', () => {
  const shape = z.strictObject({
    rows: z.array(z.strictObject({ a: z.strictObject({ b: z.string() }) })),
    one: z.union([z.strictObject({ c: z.string() }), z.strictObject({ c: z.string(), d: z.string() })]),
  });
  const { schemas } = openApiDocument([row({ response: output(shape.meta({ id: 'Shape' })) })], options).components;
  const { rows, one } = (schemas!['Shape'] as { properties: { rows: object; one: object } }).properties;
  expect(JSON.stringify(rows)).not.toContain('additionalProperties');
  expect(JSON.stringify(one).match(/"additionalProperties":false/g)).toHaveLength(2);
});

test('what several operations have stands once, and no operation loses it', () => {
  const limit = (name: string, count: number) => ({ name, rate: () => ({ count, periodMs: 60_000 }), key: () => '' }) as never;
  const [client, sends] = [limit('client', 600), limit('sends', 5)];
  const found = { response: output(Order), params: input(z.strictObject({ id: z.uuid() })), path: '/v1/orders/:id' };
  const document = openApiDocument(
    [
      row({ throttles: [client] }),
      row({ ...found, operationId: 'order_get', throttles: [client] }),
      row({ ...found, operationId: 'order_put', method: 'PUT', query: input(z.strictObject({ dry: z.boolean().optional() })), throttles: [client, sends] }),
      row({ operationId: 'order_ping', path: '/v1/ping', throttles: [] }),
      row({ ...found, operationId: 'order_pay', method: 'POST', path: '/v1/orders/:id/pay', throttles: [limit('client', 1)] }),
    ],
    options,
  ); // prettier-ignore
  const { paths } = document as unknown as { paths: Record<string, Record<string, Record<string, unknown>>> };
  const item = paths['/v1/orders/{id}']!;
  expect(item['parameters']).toEqual([{ $ref: '#/components/parameters/Id' }]);
  expect(item['get']).not.toHaveProperty('parameters');
  expect(item['put']?.['parameters']).toEqual([expect.objectContaining({ name: 'dry' })]);
  expect(item['get']?.['responses']).toMatchObject({ 200: { $ref: '#/components/responses/Order' } });
  expect(document.components['responses']?.['Order']).toMatchObject({ content: { 'application/json': { schema: { $ref: '#/components/schemas/Order' } } } });
  expect(document['x-throttles']).toEqual([{ name: 'client', requests: 600, seconds: 60 }]);
  expect(item['put']?.['x-throttles']).toEqual(['client', { name: 'sends', requests: 5, seconds: 60 }]);
  expect(paths['/v1/ping']?.['get']?.['x-throttles']).toEqual([]);
  // Another limit of the same name is not that of the document.
  expect(paths['/v1/orders/{id}/pay']?.['post']?.['x-throttles']).toEqual([{ name: 'client', requests: 1, seconds: 60 }]);
  expect(diffDocuments(wholeDocument(document), document as never)).toEqual([]);
}); // prettier-ignore

test('the response of an operation never takes the name of an error', () => {
  const schema = output(z.strictObject({ a: z.string() }).meta({ id: 'NotFound' }));
  const rows = ['a', 'b'].map((id) => row({ operationId: id, path: `/v1/${id}/:id`, response: schema, raises: [coreErrors.not_found] }));
  const document = openApiDocument(rows, options);
  expect(JSON.stringify(document.components['responses']?.['NotFound'])).toContain('{"code":{"enum":["not_found"]}}');
  expect(operation(document, '/v1/a/{id}', 'get').responses['200']?.content?.['application/json']).toMatchObject({ schema: { $ref: '#/components/schemas/NotFound' } });
}); // prettier-ignore

test('a UUID is described by its format; a permission has each of its parts once', () => {
  const json = { type: 'object', properties: { id: { type: 'string', format: 'uuid', pattern: UUID_PATTERN } }, 'x-component': 'Thing' };
  const document = openApiDocument(
    [row({ response: { schema: z.unknown(), json }, permission: all(isAuthenticated, all(isAuthenticated, hasScopes()), any(isAuthenticated, isReadOnly)) })],
    options,
  ); // prettier-ignore
  const { properties } = document.components['schemas']!['Thing'] as { properties: Record<string, object> };
  expect(properties['id']).toEqual({ type: 'string', format: 'uuid' });
  expect(operation(document, '/v1/orders', 'get')['x-permission']).toBe('isAuthenticated & hasScopes & (isAuthenticated | isReadOnly)');
});

test('sensitive fields are marked and examples of the author are kept', () => {
  const document = openApiDocument(routes, options);
  expect(document.components['schemas']?.['Line']).toMatchObject({
    properties: { secret: { 'x-sensitive': true }, sku: { examples: ['A-1'] } },
  });
  expect(operation(document, '/v1/orders', 'post')).toMatchObject({
    requestBody: { required: true, content: { 'application/json': { example: { lines: [] } } } },
  });
});

test('parameters carry place, need and schema', () => {
  const document = openApiDocument(routes, options);
  expect(operation(document, '/v1/orders', 'get')['parameters']).toMatchObject([
    { name: 'page', in: 'query', schema: { type: 'integer', minimum: 1 } },
    { name: 'tag', in: 'query', schema: { type: 'array' } },
  ]);
  expect(operation(document, '/v1/orders/{id}', 'get')['parameters']).toMatchObject([
    { name: 'id', in: 'path', required: true, schema: { format: 'uuid' } },
  ]);
  expect(operation(document, '/v1/orders/{id}', 'delete')['parameters']).toMatchObject([
    { name: 'id', in: 'path', required: true, schema: { type: 'string' } },
  ]);
});

test('every way to authenticate is listed, with the scope an operation needs', () => {
  const document = openApiDocument(routes, options);
  const scopes = { 'x-scopes': ['orders:read'] };
  expect(document.components['securitySchemes']).toEqual({
    api_key: { ...apiKey.securityScheme, ...scopes },
    session: { ...session.securityScheme, ...scopes },
  });
  expect(operation(document, '/v1/orders/{id}', 'get')).toMatchObject({
    security: [{ session: [] }, { api_key: [] }],
    'x-scope': 'orders:read',
  });
  expect(operation(document, '/v1/tree', 'put').security).toEqual([{ session: [] }, { api_key: [] }, {}]);
});

test('anonymous access is read from the shape of the permission, and an unknown rule is taken for open', () => {
  const secured = (permission: CompiledRoute['permission'], method: CompiledRoute['method'] = 'GET') => {
    const document = openApiDocument([row({ permission, method, authenticators: [session] })], options);
    return operation(document, '/v1/orders', method.toLowerCase()).security;
  };
  expect(secured(any(isAuthenticated, isReadOnly))).toEqual([{ session: [] }, {}]);
  expect(secured(any(isAuthenticated, isReadOnly), 'POST')).toEqual([{ session: [] }]);
  expect(secured(isAuthenticated.not())).toEqual([{ session: [] }, {}]);
  expect(secured(hasRule(() => true))).toEqual([{ session: [] }, {}]);
  expect(secured(hasRule(() => true).and(isAuthenticated))).toEqual([{ session: [] }]);
});

test('errors are listed by status with their codes: declared ones and those the options imply', () => {
  const document = openApiDocument(routes, options);
  const create = operation(document, '/v1/orders', 'post');
  expect(create.responses['409']?.['x-error-codes']).toEqual(['out_of_stock']);
  expect(create.responses['422']?.['x-error-codes']).toEqual(['validation_error']);
  expect(codes(create)).toEqual(
    expect.arrayContaining(['malformed_body', 'too_deep', 'body_too_large', 'unsupported_media_type', 'csrf_failed', 'not_authenticated']),
  );
  // Those that any request can get stand in `default`.
  expect(codes({ ...create, responses: { ...create.responses, default: {} } })).not.toContain('too_deep');
  expect(create.responses['409']?.content?.['application/problem+json']).toMatchObject({
    schema: { allOf: [{ $ref: '#/components/schemas/Problem' }, { properties: { code: { enum: ['out_of_stock', 'write_conflict'] } } }] },
  });
  expect(document.components['schemas']!['Problem']).toMatchObject({ 'x-errors': { '409': { out_of_stock: 'Nothing left.' } } });
  const read = codes(operation(document, '/v1/orders/{id}', 'get'));
  expect(read).toEqual(expect.arrayContaining(['scope_required', 'insufficient_scope', 'not_found']));
  expect(read).not.toContain('csrf_failed');
  expect(codes(operation(document, '/v1/tree', 'put'))).not.toContain('not_authenticated');
  expect(coreErrors.csrf_failed.status).toBe(403);
});

test('every error of the database that callers can meet is documented: in the default response, or where it happens', () => {
  const { components } = openApiDocument(routes, { title: 'x', version: '1' });
  const { Error: unexpected } = components['responses'] as Readonly<Record<string, { 'x-error-codes': string[] }>>;
  const anywhere = unexpected!['x-error-codes'];
  const AT_OPERATIONS = ['too_many_cursors', 'still_referenced'];
  const met = Object.values(dbErrors).filter(({ status }) => status !== 500);
  expect(
    met
      .map(({ code }) => code)
      .filter((code) => !anywhere.includes(code))
      .sort(),
  ).toEqual(AT_OPERATIONS.sort());
});

test('the short error format is described when the application chose it', () => {
  const document = openApiDocument(routes, { ...options, errorFormat: 'detail' });
  expect(Object.keys(document.components['schemas'] ?? {})).toContain('Error');
  expect(operation(document, '/v1/orders', 'post').responses['409']?.content).toHaveProperty('application/json');
});

test('deprecation, hidden routes and version mounts are honored', () => {
  const document = openApiDocument(routes, options);
  expect(operation(document, '/v1/orders/{id}', 'delete')).toMatchObject({
    deprecated: true,
    'x-sunset': '2027-01-01T00:00:00.000Z',
    externalDocs: { url: 'https://example.org/move' },
  });
  expect(Object.keys(document.paths)).not.toContain('/internal');
  expect(openApiDocument([...routes, row({ path: '/v2/x', mount: '/v2' })], { ...options, mount: '/v2' }).paths).toHaveProperty('/v2/x');
  expect(Object.keys(openApiDocument(routes, { ...options, mount: '/v2' }).paths)).toEqual([]);
});

test('a stream describes its events', () => {
  const content = operation(openApiDocument(routes, options), '/v1/feed', 'get').responses['200']?.content;
  expect(content?.['text/event-stream']).toMatchObject({
    'x-item-schema': { properties: { data: { contentSchema: { $ref: '#/components/schemas/Line' } } } },
  });
});

test('undeclared fields are refused in requests, so the document says so; a loose schema stays loose', () => {
  const body = (schema: Schema): unknown => {
    const document = openApiDocument([row({ method: 'POST', body: input(schema) })], options);
    const { requestBody } = operation(document, '/v1/orders', 'post') as unknown as {
      requestBody: { content: Record<string, { schema: object }> };
    };
    return requestBody.content['application/json']?.schema;
  };
  expect(body(z.object({ a: z.object({ b: z.string() }) }))).toMatchObject({
    additionalProperties: false,
    properties: { a: { additionalProperties: false } },
  });
  expect(body(z.looseObject({ a: z.string() }))).toMatchObject({ additionalProperties: {} });
  expect(body(z.record(z.string(), z.number()))).toMatchObject({ additionalProperties: { type: 'number' } });
  expect(closeObjects({ allOf: [{ properties: { a: {} } }, { properties: { b: {} } }] })).toEqual({
    allOf: [{ properties: { a: {} } }, { properties: { b: {} } }],
    unevaluatedProperties: false,
  });
});

test('the schemas of a model are named components wherever they are used, and those of changes have no default', async () => {
  const items = model('order_items', {
    id: t.uuidv7().pk(),
    sku: t.text(),
    state: t.enum(['open', 'sent']).dbDefault('open'),
    secret: t.text().sensitive(),
  });
  const rows = [
    row({ operationId: 'item_list', path: '/v1/items', response: output(page(items.output)) }),
    row({ operationId: 'item_get', path: '/v1/items/:id', response: output(items.output) }),
    row({ operationId: 'item_create', method: 'POST', path: '/v1/items', body: input(items.input), response: output(items.output), status: 201 }),
    row({ operationId: 'item_change', method: 'PATCH', path: '/v1/items/:id', body: input(items.patch), response: output(items.output) }),
    row({ operationId: 'item_whole', path: '/v1/whole', response: output(z.object({ own: z.string() })) }),
  ]; // prettier-ignore
  const document = openApiDocument(rows, options);
  const { schemas } = document.components as { schemas: Record<string, { properties: Record<string, object>; required?: string[] }> };
  const reference = (name: string) => ({ $ref: `#/components/schemas/${name}` });
  expect(Object.keys(schemas).filter((name) => name.startsWith('OrderItem'))).toEqual([
    'OrderItem',
    'OrderItemInput',
    'OrderItemPage',
    'OrderItemPatch',
  ]);
  expect(Object.keys(schemas['OrderItem']?.properties ?? {})).toEqual(['id', 'sku', 'state']);
  expect(schemas['OrderItemInput']?.properties['state']).toMatchObject({ default: 'open' });
  expect(JSON.stringify(schemas['OrderItemPatch'])).not.toContain('default');
  expect(operation(document, '/v1/items/{id}', 'get').responses['200']?.content?.['application/json']?.['schema']).toEqual(
    reference('OrderItem'),
  );
  expect(operation(document, '/v1/items', 'post')['requestBody']).toMatchObject({
    content: { 'application/json': { schema: reference('OrderItemInput') } },
  });
  expect(operation(document, '/v1/items/{id}', 'patch')['requestBody']).toMatchObject({
    content: { 'application/json': { schema: reference('OrderItemPatch') } },
  });
  expect(operation(document, '/v1/items', 'get').responses['200']?.content?.['application/json']?.['schema']).toEqual(
    reference('OrderItemPage'),
  );
  expect(schemas['OrderItemPage']).toMatchObject({ properties: { items: { items: reference('OrderItem') } } });
  expect(openApiText(document)).not.toContain('x-component');
  expect((await new Validator().validate(JSON.parse(openApiText(document)) as Record<string, unknown>)).valid).toBe(true);
});
