import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { createApp } from '../../../app/assemble/create-app.ts';
import type { Fault } from '../../../options/fault.ts';
import { resource } from '../../../crud/checks/declare-resource.ts';
import { CrudController } from '../../../crud/serve/controller.ts';
import { model, t } from '../../../db/index.ts';
import { Controller } from '../../../http/compile/controller.ts';
import { jsonSchema } from '../../../http/declare/json-schema.ts';
import { filePart, multipart } from '../../../http/input/multipart.ts';
import { raw } from '../../../http/declare/raw.ts';
import { route, type Route } from '../../../http/declare/route.ts';
import { allowAny } from '../../../permissions/built-ins.ts';
import { mcp } from '../module.ts';
import { readMcpOptions, type McpOptions } from '../options.ts';
import { toolName, toolOf } from './tool.ts';
import { toolFaults, toolRoutes } from './tool-table.ts';

const Out = jsonSchema<object>({ type: 'object', properties: { ok: { type: 'boolean' } }, required: ['ok'] });
const facts = { permission: allowAny, response: Out, summary: 'Tells whether all is well' } as const;

function routesOf(controllers: Readonly<Record<string, Controller>>, options: McpOptions = {}) {
  const mount = Object.fromEntries(Object.entries(controllers));
  const app = createApp({ database: 'sqlite::memory:', mount: { '/v1': mount }, log: { level: 'silent' } });
  return toolRoutes(app.routes, readMcpOptions(options));
}

function controllerOf(routes: Readonly<Record<string, Route>>, tags: readonly string[] = []): Controller {
  class ThingController extends Controller {
    static override readonly tags = tags;
    constructor() {
      super();
      Object.assign(this, routes);
    }
  }
  return new ThingController();
}

const faultsOf = (routes: Readonly<Record<string, Route>>): Fault[] => toolFaults(routesOf({ '/things': controllerOf(routes) }));

describe('operations that cannot be tools are E028', () => {
  test.each<[string, Route, RegExp]>([
    ['a stream of events', route.stream('/a', { ...facts, tool: true }, async function* () {}), /a stream of events cannot be a tool/],
    [
      'a response that is not JSON',
      route.get('/a', { ...facts, response: raw('text/csv'), tool: true }, () => ''),
      /a response that is not JSON/,
    ],
    [
      'a body that is a file',
      route.post('/a', { ...facts, tool: true, body: raw(['text/csv']) }, () => ({ ok: true })),
      /a body that is not JSON cannot be the arguments/,
    ],
    [
      'a form with files',
      route.post('/a', { ...facts, tool: true, body: multipart({ file: filePart({ mediaTypes: ['text/csv'], bytesMax: 100 }) }) }, () => ({
        ok: true,
      })),
      /a body that is not JSON cannot be the arguments/,
    ],
    [
      'a cookie that is required',
      route.get('/a', { ...facts, tool: true, cookies: z.object({ theme: z.string() }) }, () => ({ ok: true })),
      /agents send no cookies, and the operation requires one/,
    ],
    [
      'a body that is a list',
      route.post('/a', { ...facts, tool: true, body: z.array(z.string()) }, () => ({ ok: true })),
      /body is not one object with properties/,
    ],
    [
      'an argument in two parts',
      route.post('/:id', { ...facts, tool: true, params: z.object({ id: z.string() }), body: z.object({ id: z.string() }) }, () => ({
        ok: true,
      })),
      /the argument "id" is in two parts of the request: params and body/,
    ],
    [
      'a mapping of what the operation does not take',
      route.post('/a', { ...facts, tool: { arguments: { 'query.nmae': 'x' } }, query: z.object({ name: z.string() }) }, () => ({
        ok: true,
      })),
      /tool\.arguments names "query\.nmae"/,
    ],
  ])('%s', (_, made, message) => {
    const faults = faultsOf({ made });
    expect(faults.map(({ id }) => id)).toEqual(['E028']);
    expect(`${faults[0]?.message} ${faults[0]?.hint}`).toMatch(message);
    expect(faults[0]?.hint).toMatch(/./);
  });

  test('two tools of one name, and the app does not start with them', async () => {
    const same = { ...facts, tool: { name: 'twice' } } as const;
    const controller = controllerOf({ one: route.get('/a', same, () => ({ ok: true })), two: route.get('/b', same, () => ({ ok: true })) });
    expect(toolFaults(routesOf({ '/things': controller })).map(({ id, message }) => [id, message])).toEqual([
      ['E028', 'ThingController.two: the tool "twice" has the name of ThingController.one.'],
    ]);
    const app = createApp({
      database: 'sqlite::memory:',
      mount: { '/v1': { '/things': controller } },
      modules: [mcp()],
      log: { level: 'silent' },
    });
    await expect(app.ready()).rejects.toThrow(/E028 .*twice/);
    await app.close();
  });

  test('a name that clients would reject is refused where it is given', () => {
    const named = (name: string) => () => faultsOf({ made: route.get('/a', { ...facts, tool: { name } }, () => ({ ok: true })) });
    for (const name of ['with space', 'ä', 'x'.repeat(129), '']) expect(named(name)).toThrow(/tool/);
    for (const name of ['a.b-c_D9', 'x'.repeat(128)]) expect(named(name)()).toEqual([]);
  });
});

test('a tool that nothing describes is W021', () => {
  const { summary: _summary, ...plain } = facts;
  const faults = (made: Route) => faultsOf({ made }).map(({ id }) => id);
  expect(faults(route.get('/a', { ...plain, tool: true }, () => ({ ok: true })))).toEqual(['W021']);
  expect(faults(route.get('/a', { ...plain, tool: { description: 'Tells whether all is well.' } }, () => ({ ok: true })))).toEqual([]);
  expect(faults(route.get('/a', { ...facts, tool: true }, () => ({ ok: true })))).toEqual([]);
});

describe('include', () => {
  class Reports extends Controller {
    static override readonly tags = ['reports'];
    daily = route.get('/daily', facts, () => ({ ok: true }));
    secret = route.get('/secret', { ...facts, tool: false }, () => ({ ok: true }));
    hidden = route.get('/hidden', { ...facts, hidden: true }, () => ({ ok: true }));
  }
  class Others extends Controller {
    static override readonly tags = ['others'];
    one = route.get('/one', facts, () => ({ ok: true }));
    marked = route.get('/marked', { ...facts, tool: true }, () => ({ ok: true }));
  }
  const names = (include?: McpOptions['include']) =>
    routesOf({ '/reports': new Reports(), '/others': new Others() }, include === undefined ? {} : { include }).map(toolName);

  test('nothing is a tool by default but what says so', () => {
    expect(names()).toEqual(['others_marked']);
  });

  test('selects by tag, controller or function; `tool: false` and hidden operations stay out', () => {
    expect(names(['reports'])).toEqual(['reports_daily', 'others_marked']);
    expect(names([Others])).toEqual(['others_one', 'others_marked']);
    expect(names(({ method }) => method === 'GET')).toEqual(['reports_daily', 'others_one', 'others_marked']);
    expect(names(['nothing'])).toEqual(['others_marked']);
  });

  test('aliases are never tools: one operation is one tool, whatever selects it', () => {
    const notes = model('notes', { id: t.uuidv7().pk(), title: t.text(20) });
    class NoteController extends CrudController(resource(notes, { unscoped: true }), {
      permission: allowAny,
      filters: { title: ['eq'] },
      operations: {
        list: { tool: false },
        query: { tool: true },
        create: false,
        retrieve: false,
        update: false,
        partialUpdate: false,
        destroy: false,
      },
    }) {}
    const found = (include?: McpOptions['include']) => {
      const app = createApp({
        database: 'sqlite::memory:',
        modules: [{ name: 'notes', models: [notes] }],
        mount: { '/v1': { '/notes': NoteController } },
        log: { level: 'silent' },
      });
      expect(app.routes.map(({ field }) => field)).toEqual(expect.arrayContaining(['query', 'queryAlias']));
      return toolRoutes(app.routes, readMcpOptions(include === undefined ? {} : { include })).map(({ field, method }) => [field, method]);
    };
    for (const include of [undefined, ['notes'], [NoteController], () => true])
      expect(found(include as McpOptions['include']).filter(([field]) => field?.startsWith('query'))).toEqual([['query', 'QUERY']]);
  });

  test('a value that selects nothing by mistake is refused', () => {
    for (const include of [[''], [Date], 'reports', [1]]) expect(() => readMcpOptions({ include: include as never })).toThrow(/include/);
  });
});

describe('arguments', () => {
  const tool = (made: Route) => {
    const [found] = routesOf({ '/things': controllerOf({ made }) });
    if (found === undefined) throw new Error('no tool');
    return toolOf(found);
  };

  test('are renamed where a name is in two parts, and a body that is no object gets a name', () => {
    const renamed = tool(
      route.post(
        '/:id',
        {
          ...facts,
          tool: { arguments: { 'query.id': 'filter_id', 'body.id': 'new_id' } },
          params: z.object({ id: z.string() }),
          query: z.object({ id: z.string().optional() }),
          body: z.object({ id: z.string(), title: z.string() }),
        },
        () => ({ ok: true }),
      ),
    );
    expect(Object.fromEntries([...renamed.arguments].map(([name, { part, name: inside }]) => [name, `${part}.${inside}`]))).toEqual({
      id: 'params.id',
      filter_id: 'query.id',
      new_id: 'body.id',
      title: 'body.title',
    });
    const whole = tool(
      route.post('/a', { ...facts, tool: { arguments: { body: 'lines' } }, body: z.array(z.string()) }, () => ({ ok: true })),
    );
    expect(whole.entry.inputSchema).toMatchObject({ required: ['lines'], properties: { lines: { type: 'array' } } });
  });

  test('are also the declared headers, by names that agents can write', () => {
    const { arguments: found, entry } = tool(
      route.post('/a', { ...facts, tool: true, headers: z.object({ 'x-batch-id': z.string() }) }, () => ({ ok: true })),
    );
    expect(found.get('x_batch_id')).toMatchObject({ part: 'headers', name: 'x-batch-id' });
    expect(entry.inputSchema).toMatchObject({ required: ['x_batch_id'], properties: { x_batch_id: { type: 'string' } } });
  });

  test('keep apart two definitions of one name', () => {
    const named = (type: string) => ({ $defs: { Size: { type } }, type: 'object', properties: { [type]: { $ref: '#/$defs/Size' } } });
    const { inputSchema } = tool(
      route.post(
        '/a',
        { ...facts, tool: true, query: jsonSchema<object>(named('string')), body: jsonSchema<object>(named('integer')) },
        () => ({ ok: true }),
      ),
    ).entry;
    expect(inputSchema).toMatchObject({
      properties: { string: { $ref: '#/$defs/Size' }, integer: { $ref: '#/$defs/Size2' } },
      $defs: { Size: { type: 'string' }, Size2: { type: 'integer' } },
    });
  });

  test('are described by one object at the root, whatever the schema refers to', () => {
    const Address = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
    const body = jsonSchema<object>({
      $ref: '#/$defs/Order',
      $defs: { Order: { allOf: [{ type: 'object', properties: { to: { $ref: '#/$defs/Address' } }, required: ['to'] }] }, Address },
    });
    const { inputSchema } = tool(route.post('/a', { ...facts, tool: true, body }, () => ({ ok: true }))).entry;
    expect(inputSchema).toMatchObject({
      type: 'object',
      required: ['to'],
      properties: { to: { $ref: '#/$defs/Address' } },
      $defs: { Address },
    });
    expect(JSON.stringify(inputSchema)).not.toContain('x-mcp-header');
  });
});

test('what may be null is written with anyOf, with its rules and without a list of types', () => {
  const body = jsonSchema<object>({
    type: 'object',
    properties: {
      note: { type: ['string', 'null'], maxLength: 5, description: 'A note.' },
      kind: { type: ['string', 'null'], enum: ['a', null] },
      odd: { type: ['string', 'null'], enum: ['a'] },
    },
  });
  const [found] = routesOf({ '/things': controllerOf({ made: route.post('/a', { ...facts, tool: true, body }, () => ({ ok: true })) }) });
  expect(toolOf(found as never).entry.inputSchema.properties).toEqual({
    note: { description: 'A note.', anyOf: [{ type: 'string', maxLength: 5 }, { type: 'null' }] },
    kind: { anyOf: [{ type: 'string', enum: ['a'] }, { type: 'null' }] },
    odd: { type: ['string', 'null'], enum: ['a'] },
  });
});

test('formats that official clients do not know are left out; values are left as they are', () => {
  const body = jsonSchema<object>({
    type: 'object',
    properties: {
      total: { type: 'string', format: 'decimal', pattern: '^1$' },
      at: { type: 'string', format: 'date-time' },
      format: { type: 'object', default: { format: 'decimal', 'x-a': 1, type: ['string', 'null'] } },
    },
  });
  const [found] = routesOf({ '/things': controllerOf({ made: route.post('/a', { ...facts, tool: true, body }, () => ({ ok: true })) }) });
  expect(toolOf(found as never).entry.inputSchema.properties).toEqual({
    total: { type: 'string', pattern: '^1$' },
    at: { type: 'string', format: 'date-time' },
    format: { type: 'object', default: { format: 'decimal', 'x-a': 1, type: ['string', 'null'] } },
  });
});

test('hints come from the operation, and an operation can only ask for more caution', () => {
  const hints = (made: Route) => {
    const [found] = routesOf({ '/things': controllerOf({ made }) });
    const { readOnlyHint, destructiveHint, idempotentHint } = toolOf(found as never).entry.annotations;
    return [readOnlyHint, destructiveHint, idempotentHint];
  };
  const answer = () => ({ ok: true });
  expect(hints(route.get('/a', { ...facts, tool: true }, answer))).toEqual([true, false, true]);
  expect(hints(route.get('/a', { ...facts, tool: { destructive: true } }, answer))).toEqual([false, true, true]);
  expect(hints(route.post('/a', { ...facts, tool: true, status: 201 }, answer))).toEqual([false, false, false]);
  expect(hints(route.post('/a', { ...facts, tool: { destructive: true }, status: 201 }, answer))).toEqual([false, true, false]);
  expect(hints(route.post('/a', { ...facts, tool: true }, answer))).toEqual([false, true, false]);
  expect(hints(route.put('/a', { ...facts, tool: true }, answer))).toEqual([false, true, true]);
  expect(hints(route.delete('/a', { ...facts, tool: true }, answer))).toEqual([false, true, true]);
  // There is no way to say that a change is harmless.
  expect(() => faultsOf({ made: route.post('/a', { ...facts, tool: { destructive: false as never } }, answer) })).toThrow(/destructive/);
});
