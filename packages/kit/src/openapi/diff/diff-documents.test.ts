import { afterAll, describe, expect, test } from 'vitest';
import { filter, CrudController, resource } from '../../crud/index.ts';
import { model, t } from '../../db/index.ts';
import { columnJsonSchema } from '../../db/declare/column-json.ts';
import { UUID_PATTERN } from '../../db/values/uuid.ts';
import { jsonSchema } from '../../http/declare/json-schema.ts';
import { isAuthenticated } from '../../permissions/index.ts';
import { testApp, type TestApp } from '../../testing/test-app.ts';
import { openApiDocument } from '../document.ts';
import { allowChanges, readAllowList } from './allow-list.ts';
import { diffDocuments } from './diff-documents.ts';
import type { DocumentChange } from './document-change.ts';
import { readOpenApi } from './read-document.ts';
import { bumpOf, renderChanges } from './render-changes.ts';
import { type Aspect, type DiffRuleId, diffRules, type Trend } from './rules.ts';

const idsOf = (changes: readonly DocumentChange[]) => changes.map(({ id }) => id);
const documentOf = (operation: object, schemas: object = {}) => ({
  openapi: '3.1.1',
  paths: { '/x': { post: operation } },
  components: { schemas },
});
const json = (schema: object) => ({ content: { 'application/json': { schema } } });
const body = (schema: object) => documentOf({ requestBody: json(schema) });
const answer = (schema: object) => documentOf({ responses: { 200: json(schema) } });
const object = (properties: object, required: string[] = []) => ({ type: 'object', properties, required });
const text = { type: 'string' };
const query = (name: string, more: object = {}) => ({ name, in: 'query', schema: text, ...more });

const NOW = new Date('2026-06-15T12:00:00Z');
const sunset = (day: string) => ({ deprecated: true, 'x-sunset': `${day}T00:00:00.000Z` });
const header = (more: object) => documentOf({ responses: { 200: { headers: { ETag: { schema: text, ...more } } } } });
const secured = (...security: object[]) => documentOf({ security });
const throttled = (...throttles: object[]) => documentOf({ 'x-throttles': throttles });
const limit = (requests: number, seconds = 60) => ({ name: 'client', requests, seconds });
const scheme = (name: string) => ({
  openapi: '3.1.1',
  paths: {},
  components: { securitySchemes: { key: { type: 'apiKey', in: 'header', name } } },
});
const webhooks = (...names: string[]) => ({
  openapi: '3.1.1',
  paths: {},
  webhooks: Object.fromEntries(names.map((name) => [name, { post: { requestBody: json(object({ id: text })) } }])),
});
const servers = (...urls: string[]) => ({ openapi: '3.1.1', paths: {}, servers: urls.map((url) => ({ url })) });
const media = (...types: string[]) => ({ content: Object.fromEntries(types.map((type) => [type, {}])) });
const closed = (properties: object, required: string[] = []) => ({ ...object(properties, required), additionalProperties: false });
const alternative = (kind: string) => object({ kind: { const: kind } }, ['kind']);
const told = (propertyName: string) => ({ anyOf: [alternative('a'), alternative('b')], discriminator: { propertyName } });

/** For each aspect a schema that admits fewer values, and one that admits more. */
const aspects: Readonly<Record<Aspect, readonly [narrow: object, wide: object]>> = {
  type: [{ type: 'string' }, { type: ['string', 'boolean'] }],
  null: [{ type: 'string' }, { type: ['string', 'null'] }],
  values: [{ enum: ['a'] }, { enum: ['a', 'b'] }],
  range: [
    { type: 'integer', minimum: 2 },
    { type: 'integer', minimum: 1 },
  ],
  length: [
    { type: 'string', maxLength: 5 },
    { type: 'string', maxLength: 9 },
  ],
  count: [
    { type: 'array', items: text, maxItems: 5 },
    { type: 'array', items: text },
  ],
  pattern: [{ type: 'string', pattern: '^a' }, { type: 'string' }],
  format: [
    { type: 'integer', format: 'int32' },
    { type: 'integer', format: 'int64' },
  ],
  union: [{ anyOf: [alternative('a')] }, { anyOf: [alternative('a'), alternative('b')] }],
  additional: [closed({ a: text }), object({ a: text })],
  condition: [{ type: 'string', not: { const: 'a' } }, { type: 'string' }],
};

const aspectDifferences = Object.fromEntries(
  Object.entries(aspects).flatMap(([aspect, [narrow, wide]]) =>
    (
      [
        ['input', body],
        ['output', answer],
      ] as const
    ).flatMap(([direction, place]) => [
      [`${direction}-${aspect}-narrowed`, [place(wide), place(narrow)]],
      [`${direction}-${aspect}-widened`, [place(narrow), place(wide)]],
    ]),
  ),
) as unknown as Readonly<Record<`${'input' | 'output'}-${Aspect}-${Trend}`, readonly [object, object]>>;

/** For each rule the two documents that differ in nothing else. A rule without a line does not compile. */
const differences: Readonly<Record<DiffRuleId, readonly [object, object]>> = {
  'operation-removed': [documentOf({}), { paths: {} }],
  'operation-removed-early': [documentOf(sunset('2026-06-16')), { paths: {} }],
  'operation-removed-after-sunset': [documentOf(sunset('2026-06-14')), { paths: {} }],
  'operation-added': [{ paths: {} }, documentOf({})],
  'operation-id-changed': [documentOf({ operationId: 'a' }), documentOf({ operationId: 'b' })],
  'operation-deprecated': [documentOf({}), documentOf({ deprecated: true })],
  'operation-undeprecated': [documentOf(sunset('2026-07-01')), documentOf({})],
  'end-event-removed': [documentOf({ 'x-end-event': 'end' }), documentOf({})],
  'end-event-added': [documentOf({}), documentOf({ 'x-end-event': 'end' })],
  'sunset-earlier': [documentOf(sunset('2026-08-01')), documentOf(sunset('2026-07-01'))],
  'sunset-later': [documentOf(sunset('2026-07-01')), documentOf({ deprecated: true })],
  'path-parameter-renamed': [
    { paths: { '/x/{id}': { get: { parameters: [{ name: 'id', in: 'path', required: true, schema: text }] } } } },
    { paths: { '/x/{key}': { get: { parameters: [{ name: 'key', in: 'path', required: true, schema: text }] } } } },
  ],
  'parameter-removed': [documentOf({ parameters: [query('a')] }), documentOf({})],
  'parameter-removed-after-sunset': [documentOf({ parameters: [query('a', sunset('2026-06-14'))] }), documentOf({})],
  'parameter-added': [documentOf({}), documentOf({ parameters: [query('a')] })],
  'required-parameter-added': [documentOf({}), documentOf({ parameters: [query('a', { required: true })] })],
  'parameter-became-required': [documentOf({ parameters: [query('a')] }), documentOf({ parameters: [query('a', { required: true })] })],
  'parameter-became-optional': [documentOf({ parameters: [query('a', { required: true })] }), documentOf({ parameters: [query('a')] })],
  'parameter-style-changed': [documentOf({ parameters: [query('a')] }), documentOf({ parameters: [query('a', { explode: false })] })],
  'parameter-deprecated': [documentOf({ parameters: [query('a')] }), documentOf({ parameters: [query('a', { deprecated: true })] })],
  'body-added': [documentOf({}), documentOf({ requestBody: { required: true, ...json(text) } })],
  'optional-body-added': [documentOf({}), body(text)],
  'body-removed': [body(text), documentOf({})],
  'body-became-required': [body(text), documentOf({ requestBody: { required: true, ...json(text) } })],
  'body-became-optional': [documentOf({ requestBody: { required: true, ...json(text) } }), body(text)],
  'input-media-type-removed': [documentOf({ requestBody: media('a/b', 'a/c') }), documentOf({ requestBody: media('a/b') })],
  'input-media-type-added': [documentOf({ requestBody: media('a/b') }), documentOf({ requestBody: media('a/b', 'a/c') })],
  'output-media-type-removed': [documentOf({ responses: { 200: media('a/b', 'a/c') } }), documentOf({ responses: { 200: media('a/b') } })],
  'output-media-type-added': [documentOf({ responses: { 200: media('a/b') } }), documentOf({ responses: { 200: media('a/b', 'a/c') } })],
  'response-removed': [documentOf({ responses: { 200: {}, 304: {} } }), documentOf({ responses: { 200: {} } })],
  'response-added': [documentOf({ responses: { 200: {} } }), documentOf({ responses: { 200: {}, 207: {} } })],
  'response-header-removed': [header({}), documentOf({ responses: { 200: {} } })],
  'response-header-added': [documentOf({ responses: { 200: {} } }), header({})],
  'response-header-optional': [header({ required: true }), header({})],
  'response-header-required': [header({}), header({ required: true })],
  'error-status-removed': [documentOf({ responses: { 409: {} } }), documentOf({ responses: {} })],
  'error-status-added': [documentOf({ responses: {} }), documentOf({ responses: { 409: {} } })],
  'error-code-removed': [documentOf({ responses: { 409: { 'x-error-codes': ['a'] } } }), documentOf({ responses: {} })],
  'error-code-added': [documentOf({ responses: {} }), documentOf({ responses: { 409: { 'x-error-codes': ['a'] } } })],
  'error-code-moved': [
    documentOf({ responses: { 409: { 'x-error-codes': ['a'] } } }),
    documentOf({ responses: { 422: { 'x-error-codes': ['a'] } } }),
  ],
  'scope-required': [documentOf({}), documentOf({ 'x-scope': 'a' })],
  'scope-dropped': [documentOf({ 'x-scope': 'a' }), documentOf({})],
  'scope-changed': [documentOf({ 'x-scope': 'a' }), documentOf({ 'x-scope': 'b' })],
  'permission-changed': [documentOf({ 'x-permission': 'a' }), documentOf({ 'x-permission': 'b' })],
  'security-tightened': [secured({ key: [] }, {}), secured({ key: [] })],
  'security-loosened': [secured({ key: [] }), secured({ key: [] }, { session: [] })],
  'security-scheme-changed': [scheme('X-Key'), scheme('Authorization')],
  'throttle-added': [throttled(), throttled(limit(10))],
  'throttle-tightened': [throttled(limit(10)), throttled(limit(10, 120))],
  'throttle-loosened': [throttled(limit(10)), throttled(limit(20))],
  'throttle-removed': [throttled(limit(10)), throttled()],
  'webhook-removed': [webhooks('a', 'b'), webhooks('a')],
  'webhook-added': [webhooks('a'), webhooks('a', 'b')],
  'server-removed': [servers('https://a', 'https://b'), servers('https://a')],
  'server-added': [servers('https://a'), servers('https://a', 'https://b')],
  'input-property-removed': [body(closed({ a: text })), body(closed({}))],
  'input-property-ignored': [body(object({ a: text })), body(object({}))],
  'input-property-added': [body(object({})), body(object({ a: text }))],
  'input-property-required': [body(object({ a: text })), body(object({ a: text }, ['a']))],
  'input-property-optional': [body(object({ a: text }, ['a'])), body(object({ a: text }))],
  'input-default-changed': [body({ type: 'integer', default: 1 }), body({ type: 'integer', default: 2 })],
  'output-property-removed': [answer(object({ a: text })), answer(object({}))],
  'output-property-added': [answer(object({})), answer(object({ a: text }))],
  'output-property-optional': [answer(object({ a: text }, ['a'])), answer(object({ a: text }))],
  'output-property-required': [answer(object({ a: text })), answer(object({ a: text }, ['a']))],
  'property-deprecated': [answer(object({ a: text })), answer(object({ a: { ...text, deprecated: true } }))],
  'discriminator-changed': [answer(told('kind')), answer(told('type'))],
  ...aspectDifferences,
};

const diff = (before: object, after: object) => diffDocuments(before as never, after as never, { now: NOW });
const plain = (changes: readonly DocumentChange[]) => allowChanges(changes, [], NOW);

const mapped = (mapping?: object) => ({
  ...answer({
    anyOf: [{ $ref: '#/components/schemas/A' }, { $ref: '#/components/schemas/B' }],
    discriminator: { propertyName: 'kind', mapping },
  }),
  components: { schemas: { A: alternative('a'), B: alternative('b') } },
});
const parameter = (more: object) => documentOf({ parameters: [{ name: 'a', in: 'query', ...more }] });
const found = (before: object, after: object) =>
  diffDocuments(before as never, after as never).map(({ id, message }) => `${id} ${message}`);

test('a discriminator that is removed, or whose values stand for other alternatives, breaks callers', () => {
  const [before, swapped] = [mapped({ a: '#/components/schemas/A' }), mapped({ a: '#/components/schemas/B' })];
  const without = answer({ anyOf: [alternative('a'), alternative('b')] });
  expect(found(answer(told('kind')), without)).toEqual(['discriminator-changed is not told apart by a property any more.']);
  expect(found(without, answer(told('kind')))).toEqual([]);
  expect(found(before, swapped)).toEqual(['discriminator-changed has "a" for B, was for A.']);
  expect(found(before, mapped())).toEqual(['discriminator-changed has "a" for a, was for A.']);
  expect(found(mapped({ A: '#/components/schemas/A' }), mapped())).toEqual([]);
});

test('a parameter that becomes JSON, or ceases to be, is written in another way', () => {
  const [plain, content] = [parameter({ schema: text }), parameter({ content: { 'application/json': { schema: text } } })];
  expect(found(plain, content)).toEqual(['parameter-style-changed is written as application/json, was form, exploded.']);
  expect(found(content, plain)).toEqual(['parameter-style-changed is written as form, exploded, was application/json.']);
});

test('a number or truth value in a query may become any string: it was sent as one', () => {
  for (const type of ['integer', 'number', 'boolean']) {
    expect(found(parameter({ schema: { type } }), parameter({ schema: text }))).toEqual(['input-type-widened can be any string now.']);
    expect(
      idsOf(diffDocuments(parameter({ schema: { type } }) as never, parameter({ schema: { ...text, maxLength: 3 } }) as never)),
    ).toContain('input-type-narrowed');
  }
  expect(idsOf(diffDocuments(parameter({ schema: text }) as never, parameter({ schema: { type: 'integer' } }) as never))).toContain(
    'input-type-narrowed',
  );
});

test('unions that lead to each other have an end', () => {
  const circle = (more: object[] = []) => ({
    ...answer({ $ref: '#/components/schemas/A' }),
    components: {
      schemas: {
        A: { anyOf: [{ $ref: '#/components/schemas/B' }, { type: 'string' }] },
        B: { oneOf: [{ $ref: '#/components/schemas/A' }, { type: 'integer' }, ...more] },
      },
    },
  });
  expect(found(circle(), circle())).toEqual([]);
  expect(found(circle(), circle([{ type: 'boolean' }])).join()).toContain('can be boolean now.');
});

describe('the difference between two documents', () => {
  test.each(Object.entries(differences))('%s is reported, and nothing else', (id, [before, after]) => {
    const changes = diff(before, after);
    expect(idsOf(changes)).toEqual([id]);
    expect(changes[0]?.level).toBe(diffRules[id as DiffRuleId].level);
    expect([diff(before, before), diff(after, after)]).toEqual([[], []]);
  });

  test('goes through references, lists, unions and recursive schemas', () => {
    const schemas = (member: object) => ({
      Node: { type: 'object', properties: { value: member, children: { type: 'array', items: { $ref: '#/components/schemas/Node' } } } },
    });
    const node = (member: object) =>
      documentOf({ responses: { 200: json({ anyOf: [{ $ref: '#/components/schemas/Node' }, { type: 'null' }] }) } }, schemas(member));
    expect(diff(node({ type: 'integer' }), node({ type: 'number' }))).toMatchObject([
      { id: 'output-type-widened', operation: 'POST /x', place: '200 value', component: 'Node.value', message: 'can be number now.' },
    ]);
    expect(diff(node(text), node(text))).toEqual([]);
  });

  test('a reference with something beside it, and one that leads to itself, come to an end', () => {
    const schemas = (length: number) => ({
      Self: { $ref: '#/components/schemas/Self' },
      Tree: {
        allOf: [{ $ref: '#/components/schemas/Base' }, object({ child: { $ref: '#/components/schemas/Tree', description: 'Below.' } })],
      },
      Base: object({ name: { type: 'string', maxLength: length }, self: { $ref: '#/components/schemas/Self' } }),
    });
    const tree = (length: number) => documentOf({ requestBody: json({ $ref: '#/components/schemas/Tree' }) }, schemas(length));
    expect(diff(tree(9), tree(5))).toMatchObject([{ id: 'input-length-narrowed', place: 'body name' }]);
    expect(diff(tree(9), tree(9))).toEqual([]);
  });

  test('the same values in other words are no change', () => {
    const forms: [object, object][] = [
      [{ type: 'string', nullable: true }, { type: ['string', 'null'] }],
      [{ type: ['string', 'null'], maxLength: 5 }, { anyOf: [{ type: 'string', maxLength: 5 }, { type: 'null' }] }],
      [{ const: 'a' }, { enum: ['a'] }],
      [
        { type: 'integer', minimum: 1 },
        { type: 'integer', exclusiveMinimum: 0 },
      ],
      [
        { type: 'number', minimum: 1, exclusiveMinimum: true },
        { type: 'number', exclusiveMinimum: 1 },
      ],
      [object({ a: text, b: text }, ['a']), { allOf: [object({ a: text }, ['a']), object({ b: text })] }],
      [{ oneOf: [alternative('a'), alternative('b')] }, { anyOf: [alternative('b'), alternative('a')] }],
      [
        { type: 'string', description: 'Old.' },
        { type: 'string', description: 'New.' },
      ],
      [{ anyOf: [text] }, text],
      [{ type: 'string', minLength: 0 }, text],
    ];
    for (const [a, b] of forms) {
      for (const place of [body, answer]) {
        expect([a, b, idsOf(diff(place(a), place(b)))]).toEqual([a, b, []]);
        expect([b, a, idsOf(diff(place(b), place(a)))]).toEqual([b, a, []]);
      }
    }
  });

  test('the same in other words is no change: a limit by its name, the parts of a permission in another order, a format and its pattern', () => {
    const [client, sends] = [limit(10), { name: 'sends', requests: 5, seconds: 60 }];
    const named = (throttles: unknown[], common: object[] = [client]) => ({
      ...documentOf({ 'x-throttles': throttles }),
      'x-throttles': common,
    });
    expect(diff(throttled(client, sends), named(['client', sends]))).toEqual([]);
    expect(idsOf(diff(named(['client', sends]), named(['client', sends], [limit(9)])))).toEqual(['throttle-tightened']);
    expect(idsOf(diff(named(['client', sends]), named([sends])))).toEqual(['throttle-removed']);
    const permitted = (rule: string) => documentOf({ 'x-permission': rule });
    expect(diff(permitted('a & (b(x) & (c | d)) & a'), permitted('(c | d) & b(x) & a'))).toEqual([]);
    for (const other of ['a & b(x)', 'a & b(x) & c | d', 'a & (b(x) | (c | d))', 'a & b(y) & (c | d)'])
      expect(idsOf(diff(permitted('a & b(x) & (c | d)'), permitted(other)))).toEqual(['permission-changed']);
    const uuid = { type: 'string', format: 'uuid' };
    expect(diff(answer({ ...uuid, pattern: UUID_PATTERN }), answer(uuid))).toEqual([]);
    expect(idsOf(diff(answer({ ...uuid, pattern: '^a' }), answer(uuid)))).toEqual(['output-pattern-widened']);
  });

  test('what cannot be decided counts as the worse: another pattern breaks who sends and who reads', () => {
    const [a, b] = [
      { type: 'string', pattern: '^a' },
      { type: 'string', pattern: '^[a-z]' },
    ];
    expect(idsOf(diff(body(a), body(b)))).toEqual(['input-pattern-narrowed']);
    expect(idsOf(diff(answer(a), answer(b)))).toEqual(['output-pattern-widened']);
  });

  test('more digits of a decimal are more numbers; digits moved to the other side of the point cannot be decided', () => {
    const decimal = (precision: number, scale: number) => ({
      type: 'string',
      ...columnJsonSchema(t.decimal(precision, scale).settings, 'input'),
    });
    expect(idsOf(diff(body(decimal(10, 2)), body(decimal(12, 2))))).toEqual(['input-pattern-widened']);
    expect(idsOf(diff(body(decimal(12, 2)), body(decimal(10, 2))))).toEqual(['input-pattern-narrowed']);
    expect(idsOf(diff(answer(decimal(10, 0)), answer(decimal(14, 4))))).toEqual(['output-pattern-widened']);
    expect(idsOf(diff(answer(decimal(14, 4)), answer(decimal(10, 0))))).toEqual(['output-pattern-narrowed']);
    expect(idsOf(diff(body(decimal(10, 2)), body(decimal(10, 4))))).toEqual(['input-pattern-narrowed']);
    expect(idsOf(diff(answer(decimal(10, 2)), answer(decimal(10, 4))))).toEqual(['output-pattern-widened']);
    expect(diff(body(decimal(4, 4)), body(decimal(4, 4)))).toEqual([]);
  });

  test('of an open and a closed limit the stricter one counts', () => {
    const number = (limits: object) => ({ type: 'number', ...limits });
    const integer = (limits: object) => ({ type: 'integer', ...limits });
    const [closed, open] = [number({ minimum: 0 }), number({ exclusiveMinimum: 0 })];
    expect(idsOf(diff(answer(closed), answer(open)))).toEqual(['output-range-narrowed']);
    expect(idsOf(diff(answer(open), answer(closed)))).toEqual(['output-range-widened']);
    expect(idsOf(diff(body(closed), body(open)))).toEqual(['input-range-narrowed']);
    expect(diff(body(number({ minimum: -5, exclusiveMinimum: 0 })), body(open))).toEqual([]);
    expect(diff(answer(integer({ minimum: 1, maximum: 9 })), answer(integer({ exclusiveMinimum: 0, exclusiveMaximum: 10 })))).toEqual([]);
    expect(idsOf(diff(body(integer({ maximum: 9 })), body(integer({ exclusiveMaximum: 9 }))))).toEqual(['input-range-narrowed']);
    expect(diff(body(closed), body(open))[0]?.message).toBe('has exclusiveMinimum 0, was minimum 0.');
  });

  test('an alternative that another one covers is no new one', () => {
    const before = { anyOf: [{ type: 'number' }, text] };
    const after = { anyOf: [{ type: 'number' }, { type: 'integer', minimum: 1 }, text] };
    expect([diff(answer(before), answer(after)), diff(body(after), body(before))]).toEqual([[], []]);
  });

  test('properties that only one side uses are compared on that side', () => {
    const shape = (more: object) => object({ id: { ...text, ...more } });
    expect(
      idsOf(diff(body({ ...shape({}), additionalProperties: false }), body({ ...shape({ readOnly: true }), additionalProperties: false }))),
    ).toEqual(['input-property-removed']);
    expect(diff(answer(shape({})), answer(shape({ readOnly: true })))).toEqual([]);
    expect(idsOf(diff(answer(shape({})), answer(shape({ writeOnly: true }))))).toEqual(['output-property-removed']);
  });

  test('the schemas of events, of errors, of response headers and of stream events are compared as output', () => {
    const event = (schema: object) => ({
      paths: {},
      webhooks: { 'order.paid': { post: { requestBody: json(object({ data: schema })) } } },
    });
    expect(diff(event({ type: 'integer' }), event({ type: 'number' }))).toMatchObject([
      { id: 'output-type-widened', operation: 'webhook order.paid', place: 'body data' },
    ]);
    const failure = (codes: string[], schema: object) =>
      documentOf({ responses: { 409: { ...json(object({ code: { enum: codes }, etag: schema })), 'x-error-codes': codes } } });
    expect(idsOf(diff(failure(['a'], text), failure(['a', 'b'], { type: ['string', 'null'] })))).toEqual([
      'output-null-widened',
      'error-code-added',
    ]);
    // As the toolkit writes it: codes are values of `code`, and those that every operation may meet stand in `Error`.
    const problem = (codes: string[]) => ({
      ...documentOf({ responses: { 409: json({ allOf: [object({}), object({ code: { enum: [...codes, 'write_conflict'] } })] }) } }),
      components: { responses: { Error: { 'x-error-codes': ['write_conflict'] } } },
    });
    expect(diff(problem(['a', 'b']), problem(['a']))).toMatchObject([{ id: 'error-code-removed', place: '409 b' }]);
    expect(diff(failure(['a', 'write_conflict'], text), problem(['a'])).filter(({ id }) => id.startsWith('error-code'))).toEqual([]);
    expect(idsOf(diff(header({}), header({ schema: { type: 'integer' } })))).toEqual(['output-type-narrowed', 'output-type-widened']);
    const stream = (schema: object) =>
      documentOf({ responses: { 200: { content: { 'text/event-stream': { 'x-item-schema': schema } } } } });
    expect(idsOf(diff(stream(object({ a: text })), stream(object({}))))).toEqual(['output-property-removed']);
    // As the toolkit writes it: the data of an event is a text with JSON in it.
    const data = (schema: object) => ({
      ...stream(object({ data: { type: 'string', contentSchema: { $ref: '#/components/schemas/Line' } } })),
      components: { schemas: { Line: schema } },
    });
    expect(diff(data(object({ a: text, b: text })), data(object({ a: text })))).toMatchObject([
      { id: 'output-property-removed', place: '200 event data.b' },
    ]);
    const described = data(object({ a: { ...text, description: 'A text.' } }));
    expect(diff(data(object({ a: text })), described)).toEqual([]);
  });

  test('names of properties are values: more of them are accepted, and a description changes nothing', () => {
    const map = (names: object) => body({ type: 'object', propertyNames: names, additionalProperties: text });
    expect(diff(map({ enum: ['a'] }), map({ enum: ['a'], description: 'A color.' }))).toEqual([]);
    expect(idsOf(diff(map({ enum: ['a'] }), map({ enum: ['a', 'b'] })))).toEqual(['input-values-widened']);
    expect(idsOf(diff(map({ enum: ['a', 'b'] }), map({ enum: ['a'] })))).toEqual(['input-values-narrowed']);
  });

  test('a list of values and alternatives of one value each are the same', () => {
    const [list, choice] = [body({ enum: ['a', 'b'] }), body({ anyOf: [{ const: 'a' }, { const: 'b' }] })];
    expect([diff(list, choice), diff(choice, list)]).toEqual([[], []]);
    expect(idsOf(diff(list, body({ anyOf: [{ const: 'a' }, { const: 'c' }] })))).toEqual(['input-union-narrowed', 'input-union-widened']);
  });

  test('a property that is required and not listed, and one with a name of every object', () => {
    const open = (required: string[]) => body({ type: 'object', properties: { a: text }, required });
    expect(idsOf(diff(open([]), open(['b'])))).toEqual(['input-property-required']);
    expect(idsOf(diff(open(['b']), open([])))).toEqual(['input-property-optional']);
    expect(idsOf(diff(body(closed({ constructor: text })), body(closed({}))))).toEqual(['input-property-removed']);
  });

  test('more scopes of a scheme are a tighter rule where the document has no `x-scope`', () => {
    expect(idsOf(diff(secured({ oauth: ['a'] }), secured({ oauth: ['a', 'b'] })))).toEqual(['security-tightened']);
    const scoped = (scope: string) => documentOf({ 'x-scope': scope, security: [{ key: [scope] }] });
    expect(idsOf(diff(scoped('a'), scoped('b')))).toEqual(['scope-changed']);
    const inherited = { openapi: '3.1.1', security: [{ key: [] }], paths: { '/x': { post: {} } } };
    expect(idsOf(diff({ ...inherited, security: [] }, inherited))).toEqual(['security-tightened']);
  });

  test('removal of what is deprecated without a date is breaking, and the sentence names the missing date', () => {
    expect(diff(documentOf({ deprecated: true }), { paths: {} })).toMatchObject([
      { id: 'operation-removed', message: 'was removed. It was deprecated without a sunset date.' },
    ]);
    expect(diff(documentOf({ parameters: [query('a', sunset('2026-07-01'))] }), documentOf({}))).toMatchObject([
      { id: 'parameter-removed', message: 'was removed before its sunset date 2026-07-01.' },
    ]);
  });

  test('requires a version, and is rendered as text, JSON and Markdown', () => {
    const [before, after] = differences['parameter-removed'];
    const changes = diff(before, after);
    expect([bumpOf(changes), bumpOf([]), bumpOf(diff(after, before))]).toEqual(['major', 'patch', 'minor']);
    expect(renderChanges(plain(changes), 'text')).toBe('breaking parameter-removed: POST /x: query a was removed.\nVersion: major.');
    expect(JSON.parse(renderChanges(plain(changes), 'json'))).toMatchObject({ bump: 'major', changes: [{ id: 'parameter-removed' }] });
    expect(renderChanges(plain(changes), 'markdown')).toContain('| breaking `parameter-removed` | POST /x: query a | was removed. |');
    expect(renderChanges(plain([]), 'text')).toBe('Nothing changed for callers.');
  });

  test('a change of a named schema is one line, with the number of operations that have it', () => {
    const shared = (schema: object) => ({
      paths: Object.fromEntries(
        ['/a', '/b', '/c'].map((path) => [path, { get: { responses: { 200: json({ $ref: '#/components/schemas/Order' }) } } }]),
      ),
      components: { schemas: { Order: schema } },
    });
    const changes = diff(shared(object({ a: text })), shared(object({})));
    expect(changes).toHaveLength(3);
    expect(renderChanges(plain(changes), 'text')).toBe(
      'breaking output-property-removed: GET /a: 200 a (Order.a; 2 more operations) was removed.\nVersion: major.',
    );
  });
});

describe('the list of allowed changes', () => {
  const changes = diff(...differences['parameter-removed']);
  const entry = { id: 'parameter-removed', operation: 'POST /x', until: '2026-06-15', reason: 'Nobody sent it.' };

  test('an entry allows its change to the end of its day, and not on the day after', () => {
    expect(allowChanges(changes, [entry], new Date('2026-06-15T23:59:59Z'))).toMatchObject({
      remaining: [],
      allowed: [{ entry }],
      expired: [],
    });
    const late = allowChanges(changes, [entry], new Date('2026-06-16T00:00:00Z'));
    expect(late).toMatchObject({ remaining: changes, allowed: [], expired: [entry], unused: [] });
    expect(renderChanges(late, 'text')).toContain('Expired on 2026-06-15, no longer allowed: parameter-removed: POST /x.');
  });

  test('an entry is for one rule, operation and place; one that matches nothing is reported', () => {
    const others = [
      { ...entry, id: 'body-removed' },
      { ...entry, operation: 'GET /x' },
      { ...entry, place: 'query b' },
    ];
    expect(allowChanges(changes, others, NOW)).toMatchObject({ remaining: changes, allowed: [], unused: others });
    for (const wide of [
      { ...entry, operation: '*' },
      { ...entry, place: 'query a' },
    ])
      expect(allowChanges(changes, [wide], NOW).remaining).toEqual([]);
  });

  test('an entry that expires on the day of a sunset, for an operation whose limits change too', () => {
    const old = { ...documentOf({ ...sunset('2026-06-16'), 'x-throttles': ['client'] }), 'x-throttles': [limit(10)] };
    const tighter = { ...old, 'x-throttles': [limit(5)] };
    const gone = { openapi: '3.1.1', paths: {} };
    const until = { operation: 'POST /x', until: '2026-06-15', reason: 'Agreed on.' };
    const [early, slower] = [
      { ...until, id: 'operation-removed-early' },
      { ...until, id: 'throttle-tightened', place: 'throttle client' },
    ];
    const at = (day: string, revision: object) => {
      const now = new Date(`${day}T12:00:00Z`);
      return allowChanges(diffDocuments(old, revision as never, { now }), [early, slower], now);
    };
    const ids = ({ remaining, allowed, expired, unused }: ReturnType<typeof at>) => [
      idsOf(remaining),
      allowed.map(({ change }) => change.id),
      expired.length,
      unused.length,
    ];
    expect(ids(at('2026-06-15', gone))).toEqual([[], ['operation-removed-early'], 0, 1]);
    // The removal needs no entry from the day of its sunset on; the list is reported as expired all the same.
    expect(ids(at('2026-06-16', gone))).toEqual([['operation-removed-after-sunset'], [], 2, 0]);
    expect(ids(at('2026-06-15', tighter))).toEqual([[], ['throttle-tightened'], 0, 1]);
    // An announced end allows the removal, not a lower limit until then.
    expect(ids(at('2026-06-16', tighter))).toEqual([['throttle-tightened'], [], 2, 0]);
  });

  test('the version counts allowed changes: callers see them all the same', () => {
    expect(renderChanges(allowChanges(changes, [entry], NOW), 'text')).toBe(
      'Allowed until 2026-06-15: parameter-removed: POST /x. Nobody sent it.\nVersion: major.',
    );
  });

  test('every fault of the list is named', () => {
    expect(readAllowList({}).faults).toEqual([expect.stringContaining('JSON array')]);
    expect(
      readAllowList([{ ...entry, id: 'parameter-removd', until: '2026-02-30', raeson: '' }, { ...entry, until: undefined }, 1]).faults,
    ).toEqual([
      'Entry 1: there is no member "raeson". Did you mean "reason"?',
      'Entry 1: there is no rule "parameter-removd". Did you mean "parameter-removed"?',
      'Entry 1: "until" is a day such as "2026-12-31", not "2026-02-30".',
      'Entry 2: "until" is missing, or is not a non-empty string.',
      'Entry 3: it is not an object.',
    ]);
  });
});

describe('reading a document', () => {
  test('other versions, other files and references outside of it are refused with a sentence', () => {
    const fault = (value: unknown) => readOpenApi(typeof value === 'string' ? value : JSON.stringify(value));
    expect(fault({ swagger: '2.0', paths: {} })).toEqual({
      fault: 'is a Swagger 2.0 document, which is not supported. Convert it to OpenAPI 3.0 or newer first.',
    });
    expect(fault({ openapi: '4.0.0', paths: {} })).toEqual({
      fault: 'is an OpenAPI 4.0.0 document. Versions 3.0, 3.1 and 3.2 are supported.',
    });
    expect(fault('openapi: 3.1.0')).toMatchObject({ fault: expect.stringContaining('is not an OpenAPI document in JSON') });
    expect(fault({ openapi: '3.1.0' })).toMatchObject({ fault: expect.stringContaining('it has no `openapi` and `paths`') });
    expect(fault({ openapi: '3.1.0', paths: { '/x': { $ref: 'https://example.org/x.json' } } })).toMatchObject({
      fault: expect.stringContaining('Nothing is fetched'),
    });
    for (const openapi of ['3.0.3', '3.1.1', '3.2.0']) expect(fault({ openapi, paths: {} })).toHaveProperty('document');
  });
});

test('a document of 5 MB is compared in seconds, also where every operation uses every schema', () => {
  const names = Array.from({ length: 1500 }, (_, index) => `Model${index}`);
  const large = (length: number) => {
    const schemas = Object.fromEntries(
      names.map((name, index) => [
        name,
        closed({
          ...Object.fromEntries(
            Array.from({ length: 28 }, (_, field) => [
              `field_${field}`,
              {
                type: ['string', 'null'],
                maxLength: field === 0 ? length : 9,
                description: 'A field with a sentence about what it means to callers.',
              },
            ]),
          ),
          next: { $ref: `#/components/schemas/${names[(index + 1) % names.length]}` },
        }),
      ]),
    );
    const paths = Object.fromEntries(
      names.slice(0, 500).map((name, index) => [
        `/x${index}`,
        {
          post: {
            requestBody: json({ $ref: `#/components/schemas/${name}` }),
            responses: { 200: json({ anyOf: [{ $ref: `#/components/schemas/${name}` }, { type: 'null' }] }) },
          },
        },
      ]),
    );
    return { openapi: '3.1.1', paths, components: { schemas } };
  };
  const [before, after] = [large(9), large(9)];
  expect(JSON.stringify(before).length).toBeGreaterThan(5_000_000);
  const started = performance.now();
  expect(diff(before, after)).toEqual([]);
  expect(diff({ ...before, paths: Object.fromEntries(Object.entries(before.paths).slice(0, 3)) }, large(5)).length).toBeGreaterThan(4000);
  // About two seconds on a quiet core.
  expect(performance.now() - started).toBeLessThan(60_000);
});

describe('89: generic CRUD', () => {
  const notes = model('notes', {
    id: t.uuidv7().pk(),
    title: t.text(80),
    rank: t.int().dbDefault(0),
    state: t.enum(['open', 'done']).dbDefault('open'),
  });
  const apps: TestApp[] = [];
  afterAll(async () => {
    for (const app of apps) await app.close();
  });
  const declared = async (options: object) => {
    class NoteController extends CrudController(resource(notes, { unscoped: true }), {
      permission: isAuthenticated,
      ...options,
    }) {}
    const app = await testApp({ migrate: false, docs: false, mount: { '/v1': { '/notes': NoteController } } });
    apps.push(app);
    return openApiDocument(app.app.routes, { title: 'Notes', version: '1', spec: '3.1' }) as never;
  };

  test('adding a filter is additive, removing one is breaking', async () => {
    const less = await declared({ filters: { rank: ['gte'] } });
    const more = await declared({ filters: { rank: ['gte', 'lt'], mine: filter(jsonSchema({ type: 'boolean' }), () => ({})) } });
    const added = diffDocuments(less, more);
    expect(new Set(added.map(({ level }) => level))).toEqual(new Set(['additive']));
    expect(added.filter(({ operation }) => operation === 'GET /v1/notes').map(({ id, place }) => [id, place])).toEqual([
      ['parameter-added', 'query rank__lt'],
      ['parameter-added', 'query mine'],
    ]);
    const removed = diffDocuments(more, less).filter(({ operation }) => operation === 'GET /v1/notes');
    expect(removed.map(({ id, level }) => [id, level])).toEqual([
      ['parameter-removed', 'breaking'],
      ['parameter-removed', 'breaking'],
    ]);
  });

  test('so is an operator, an ordering, an expansion, an operation and a writable column; the other way round they break', async () => {
    const less = await declared({ input: ['title'], operations: { destroy: false }, ordering: { by: ['rank'] }, page: { max: 50 } });
    const more = await declared({ ordering: { by: ['rank', 'title'] }, page: { max: 100 } });
    expect(new Set(diffDocuments(less, more).map(({ level }) => level))).toEqual(new Set(['additive']));
    const ids = idsOf(diffDocuments(more, less).filter(({ level }) => level === 'breaking'));
    for (const id of ['operation-removed', 'input-property-removed', 'input-range-narrowed'] as const) expect(ids).toContain(id);
  });
});
