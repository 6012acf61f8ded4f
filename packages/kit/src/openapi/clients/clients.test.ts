import { stripTypeScriptTypes } from 'node:module';
import { expect, test } from 'vitest';
import * as z from 'zod';
import { createApp } from '../../app/assemble/create-app.ts';
import { Controller } from '../../http/compile/controller.ts';
import { route } from '../../http/declare/route.ts';
import { allowAny } from '../../permissions/built-ins.ts';
import { clientPlan, ClientRefused } from './client-plan.ts';
import { rowOf } from './client-row.ts';
import { pythonClient } from './python-client.ts';
import { pythonText, PythonTypes } from './python-types.ts';
import { typescriptClient } from './typescript-client.ts';
import { TypescriptDates } from './typescript-dates.ts';
import { typeOf } from './typescript-types.ts';

const options = { title: 'x */ throw 1; //\n"""', version: '1\n2' };
const HOSTILE = 'ends */ globalThis.broken = true; /* """\nimport this\u2028 `${x}` </script>';

class ThingController extends Controller {
  read = route.get(
    '/:id',
    {
      permission: allowAny,
      summary: HOSTILE,
      description: HOSTILE,
      query: z.strictObject({ 'odd-name': z.string().optional().meta({ description: HOSTILE }), from: z.string().optional() }),
      response: z.strictObject({ class: z.literal(HOSTILE), 'a b': z.string().nullable(), __proto: z.number() }).meta({ id: 'Response' }),
    },
    () => ({ class: HOSTILE, 'a b': null, __proto: 1 }) as never,
  );
}

const routesOf = (controller: new () => Controller) =>
  createApp({ database: 'sqlite::memory:', log: { level: 'silent' }, docs: false, mount: { '/v1': { '/things': controller } } }).routes;

test('a text of the API never becomes code, whatever it holds', async () => {
  const plan = clientPlan(routesOf(ThingController), options);
  const text = typescriptClient(plan);
  const module = (await import(`data:text/javascript,${encodeURIComponent(stripTypeScriptTypes(text))}`)) as { createClient: () => object };
  expect(Object.keys(module.createClient())).toEqual(['connection', 'thing']);
  expect('broken' in globalThis).toBe(false);
  expect(text).not.toContain('</script');
  // A schema with a name of the runtime has another one.
  expect(text).toContain('export type ResponseSchema = ');
  expect(text).toContain('): Call<ResponseSchema> {');
  const python = pythonClient(plan);
  // Outside of string literals nothing of it is left: every line that has a part of it is one literal.
  for (const line of python.split('\n').filter((each) => each.includes('globalThis')))
    expect(line).toMatch(/"(?:[^"\\]|\\.)*globalThis(?:[^"\\]|\\.)*"/);
  expect(python).not.toMatch(/^import this$/m);
  expect(python).toContain('from_: Union[str, None] = None');
});

test('lists of choices and of composed objects are lists of the whole', () => {
  const [text, flag] = [{ type: 'string' }, { type: 'boolean' }];
  const object = { type: 'object', properties: { a: text, 'b|': flag }, required: ['a'] };
  const listed = (items: object) => typeOf({ type: 'array', items }).replaceAll(/\s+/g, ' ');
  expect(listed({ anyOf: [object, { type: 'null' }] })).toBe('readonly ({ readonly a: string; readonly "b|"?: boolean; } | null)[]');
  expect(listed({ allOf: [object, { properties: { c: text } }] })).toBe(
    'readonly ({ readonly a: string; readonly "b|"?: boolean; } & { readonly c?: string; })[]',
  );
  expect(listed(object)).toBe('readonly { readonly a: string; readonly "b|"?: boolean; }[]');
  expect(listed({ type: 'array', items: text })).toBe('readonly (readonly string[])[]');
});

test('dates of lists and of other names of a schema need no constant that comes later', () => {
  const dates = new TypescriptDates({
    All: { type: 'array', items: { $ref: '#/components/schemas/Event' } },
    Event: { properties: { at: { type: 'string', format: 'x-date' }, parts: { $ref: '#/components/schemas/All' } } },
    Plain: { properties: { at: { type: 'string' } } },
    Time: { type: ['string', 'null'], format: 'x-date' },
  });
  expect(dates.constants([])).toEqual([]);
  expect(dates.constants(['eventDates'])).toEqual(['const eventDates: Dates = { at: 0, get parts() { return eventDates; } };']);
  expect([dates.of([{ $ref: '#/components/schemas/Time' }]), dates.of([{ $ref: '#/components/schemas/Plain' }])]).toEqual(['0', undefined]);
});

test('the same routes give the same bytes, whatever order they were mounted in', () => {
  const routes = routesOf(ThingController);
  for (const emit of [typescriptClient, pythonClient])
    expect(emit(clientPlan(routes.toReversed(), options))).toBe(emit(clientPlan(routes, options)));
});

test('a deprecated operation is marked in every method, so that --check finds a client from before', () => {
  const rows = [{ id: 'a' }];
  const shopOf = (deprecated: boolean | { since: string; sunset?: string }) =>
    class ShopController extends Controller {
      list = route.get(
        '/',
        {
          permission: allowAny,
          summary: 'Read orders',
          deprecated,
          query: z.strictObject({ cursor: z.string().optional() }),
          response: z.strictObject({ items: z.array(z.strictObject({ id: z.string() })), next: z.string().nullable() }),
        },
        () => ({ items: rows, next: null }),
      );
    };
  const textsOf = (deprecated: boolean | { since: string; sunset?: string }) =>
    [typescriptClient, pythonClient].map((emit) => emit(clientPlan(routesOf(shopOf(deprecated)), { title: 'x', version: '1' })));
  const plain = textsOf(false);
  expect(plain.join('')).not.toMatch(/deprecated/i);
  const [typescript, python] = textsOf({ since: '2026-01-01', sunset: '2027-01-01' });
  // The function, its pages, and both methods of the client.
  expect(typescript?.match(/^ *\* @deprecated Works until 2027-01-01\.$/gm)).toHaveLength(4);
  // Both, of the synchronous and the asynchronous client.
  expect(python?.match(/^ *"(?:Read orders|Every item of `list`, page by page\.) Deprecated\. Works until 2027-01-01\."$/gm)).toHaveLength(
    4,
  );
  expect(textsOf({ since: '2026-01-01', sunset: '2027-02-01' })).not.toEqual([typescript, python]);
  expect(textsOf(true)[0]).toContain('@deprecated May be removed.');
});

test('names of the API that the file has already are other names, and two of one name are refused', () => {
  const Rows = z.strictObject({ items: z.array(z.string()), next: z.string().nullable() });
  const query = z.strictObject({ cursor: z.string().optional(), 'x-y': z.string().optional(), x_y: z.string().optional() });
  class ConnectionController extends Controller {
    list = route.get('/', { permission: allowAny, query, response: Rows }, () => ({ items: [], next: null }));
    all = route.get('/all', { permission: allowAny, operationId: 'delete' }, () => undefined);
    send = route.get('/send', { permission: allowAny, operationId: 'send' }, () => undefined);
    int = route.get('/int', { permission: allowAny, response: z.strictObject({ str: z.int() }).meta({ id: 'email' }) }, () => ({ str: 1 }));
  }
  const plan = clientPlan(routesOf(ConnectionController), { title: 'x', version: '1' });
  const [typescript, python] = [typescriptClient(plan), pythonClient(plan)];
  for (const part of [
    'export function deleteCall(',
    'export function sendCall(',
    'export function connectionListAll(',
    '    connectionController: {',
    '      listAll: (args, call) => connectionListAll(connection, args, call),',
    '      all: (call) => deleteCall(connection, call),',
  ])
    expect(typescript).toContain(part);
  for (const part of [
    'def int_(self',
    'def list_all(self',
    'x_y: Union[str, None] = None, x_y_2: Union[str, None] = None',
    'class emailSchema(',
  ])
    expect(python).toContain(part);

  const Taken = z.strictObject({ a: z.int() });
  class TwiceController extends Controller {
    one = route.get('/', { permission: allowAny, response: Taken.meta({ id: 'Response' }) }, () => ({ a: 1 }));
    two = route.get('/two', { permission: allowAny, response: Taken.meta({ id: 'ResponseSchema' }) }, () => ({ a: 1 }));
  }
  expect(() => typescriptClient(clientPlan(routesOf(TwiceController), { title: 'x', version: '1' }))).toThrow(
    'Two parts of the API are called ResponseSchema in the client.',
  );
});

test('controllers, methods, arguments and schemas with names of the Python module have other names', () => {
  const Rows = z.strictObject({ items: z.array(z.string()), next: z.string().nullable() });
  const Named = (id: string) => z.strictObject({ self: z.string(), cast: z.string() }).meta({ id });
  class EventController extends Controller {
    static override readonly tags = ['events'];
    note = route.get('/', { permission: allowAny, response: Named('note') }, () => ({ self: '', cast: '' }));
    getUrl = route.get('/a', { permission: allowAny, response: Named('max') }, () => ({ self: '', cast: '' }));
    getURL = route.get('/b', { permission: allowAny, operationId: 'other', response: Named('TypeError') }, () => ({ self: '', cast: '' }));
    list = route.get(
      '/list',
      { permission: allowAny, query: z.strictObject({ cast: z.string(), _Operation: z.string() }), response: Rows },
      () => ({ items: [], next: null }),
    );
  }
  const python = pythonClient(clientPlan(routesOf(EventController), { title: 'x', version: '1' }));
  for (const part of [
    'class _Events_:',
    '        self.events = _Events_(self._http)',
    'def note_(self',
    'def get_url(self',
    'def get_url_2(self',
    'class maxSchema(Model):\n    self: str\n    cast: str',
    'class TypeErrorSchema(Model):',
    'def list(self, *, cast_: str, _Operation: str, ',
  ])
    expect(python).toContain(part);

  class 注文Controller extends Controller {
    read = route.get('/', { permission: allowAny, operationId: 'a' }, () => undefined);
  }
  class 顧客Controller extends Controller {
    read = route.get('/', { permission: allowAny, operationId: 'b' }, () => undefined);
  }
  const { routes } = createApp({
    database: 'sqlite::memory:',
    log: { level: 'silent' },
    docs: false,
    mount: { '/v1': { '/one': 注文Controller, '/two': 顧客Controller } },
  });
  expect(() => clientPlan(routes, { title: 'x', version: '1' })).toThrow(
    '注文Controller and 顧客Controller are both called apiController in the client. Give them different tags.',
  );
});

test('texts beyond the first plane, tuples and JSON of any shape have types in both languages', () => {
  expect(pythonText('😀 ü "')).toBe(String.raw`"\U0001f600 \u00fc \""`);
  const types = new PythonTypes({}, []);
  expect(
    types.of({ type: 'array', prefixItems: [{ type: 'string' }, { type: 'integer' }], items: { type: 'boolean' } }, 'Pair', {
      role: 'argument',
    }),
  ).toBe('List[Union[str, int, bool]]');
  // Through `Record`, a type that contains itself would not compile.
  expect(typeOf({ type: 'object', additionalProperties: { $ref: '#/components/schemas/Json' } })).toBe('{ readonly [name: string]: Json }');
});

test('an operation that a method cannot express is refused with a sentence', () => {
  class OddController extends Controller {
    any = route.get('/files/*', { permission: allowAny }, () => undefined);
    body = route.post(
      '/send',
      { permission: allowAny, query: z.strictObject({ body: z.string().optional() }), body: z.strictObject({ a: z.string() }) },
      () => undefined,
    );
    日本 = route.get('/japan', { permission: allowAny }, () => undefined);
    header = route.get('/header', { permission: allowAny, headers: z.object({ 'x-needed': z.string() }) }, () => undefined);
  }
  const refused = (): unknown => clientPlan(routesOf(OddController), { title: 'x', version: '1' });
  expect(refused).toThrow(ClientRefused);
  for (const sentence of [
    'has a path of any length',
    'which are one argument',
    'OddController.日本 has no letter or digit of ASCII',
    'requires the header x-needed',
  ])
    expect(refused).toThrow(sentence);
});

test('a second controller with the tag of the first changes none of its names', () => {
  class OrderController extends Controller {
    static override readonly tags = ['orders'];
    read = route.get('/:id', { permission: allowAny }, () => undefined);
  }
  class AdminOrderController extends OrderController {}
  class ArchivedOrderController extends OrderController {}
  const namesOf = (mount: Readonly<Record<`/${string}`, new () => Controller>>) => {
    const { routes } = createApp({ database: 'sqlite::memory:', log: { level: 'silent' }, docs: false, mount: { '/v1': mount } });
    return Object.fromEntries(clientPlan(routes, { title: 'x', version: '1' }).groups.map((each) => [each.operations[0]!.path, each.name]));
  };
  expect(namesOf({ '/orders': OrderController })).toEqual({ '/v1/orders/{id}': 'orders' });
  expect(namesOf({ '/archive': ArchivedOrderController, '/admin/orders': AdminOrderController, '/orders': OrderController })).toEqual({
    '/v1/orders/{id}': 'orders',
    '/v1/archive/{id}': 'archivedOrder',
    '/v1/admin/orders/{id}': 'adminOrder',
  });
});

test('every list that can have a second page has all(), also a read with a body, and no other list has', () => {
  const Rows = z.strictObject({ items: z.array(z.string()), next: z.string().nullable() });
  const empty = () => ({ items: [], next: null });
  const cursor = z.strictObject({ cursor: z.string().optional() });
  const body = z.strictObject({ text: z.string() });
  class ListController extends Controller {
    list = route.get('/', { permission: allowAny, query: cursor, response: Rows }, empty);
    types = route.get('/types', { permission: allowAny, response: Rows }, empty);
    limited = route.get(
      '/limited',
      { permission: allowAny, query: z.strictObject({ limit: z.string().optional() }), response: Rows },
      empty,
    );
    query = route.query('/', { permission: allowAny, query: cursor, body, response: Rows }, empty);
    queryAlias = route.post('/query', { permission: allowAny, throttled: false, query: cursor, body, response: Rows }, empty);
    search = route.query('/search', { permission: allowAny, query: cursor, body, response: Rows }, empty);
    report = route.post('/report', { permission: allowAny, throttled: false, query: cursor, body, response: Rows }, empty);
  }
  const [group] = clientPlan(routesOf(ListController), { title: 'x', version: '1' }).groups;
  expect(group!.operations.flatMap(({ itemsName }) => itemsName ?? []).toSorted()).toEqual(['all', 'queryAll', 'searchAll']);
});

test('`fields` and `expand` of a schema that extends another one have the names of both', () => {
  const text = { type: 'string' };
  const schemas: Record<string, object> = {
    Part: { type: 'object', properties: { size: text } },
    WholePart: { allOf: [{ $ref: 'Part' }, { type: 'object', properties: { color: text } }] },
    Key: { type: 'object', properties: { id: text, part: { anyOf: [{ $ref: 'WholePart' }, { type: 'null' }] } }, required: ['id'] },
    IssuedKey: { allOf: [{ $ref: 'Key' }, { type: 'object', properties: { secret: text }, required: ['secret'] }] },
  };
  const query = [
    { name: 'fields', isJoined: true, schema: {} },
    { name: 'expand', isJoined: true, schema: { items: { enum: ['part'] } } },
  ];
  const row = rowOf({ $ref: 'IssuedKey' }, { isPage: false, query, body: undefined, listed: [] }, (value) => schemas[value?.$ref] ?? value);
  expect(row).toMatchObject({ relations: ['part'], fields: ['id', 'part', 'secret', 'part.size', 'part.color'] });
});
