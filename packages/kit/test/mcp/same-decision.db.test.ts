import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { createApp, migrateApp, type App } from '../../src/app/index.ts';
import { accounts, createUser } from '../../src/contrib/accounts/index.ts';
import { apiKeys, createApiKey } from '../../src/contrib/apikeys/index.ts';
import { mcp } from '../../src/contrib/mcp/index.ts';
import { CrudController, resource, visibleTo, writableBy } from '../../src/crud/index.ts';
import { createTable, migration, model, t, versioned } from '../../src/db/index.ts';
import { Controller, route } from '../../src/http/index.ts';
import { all, any, hasScopes, isStaff, isSuperuser, not } from '../../src/permissions/index.ts';
import { describeDatabases } from '../../src/testing/databases.ts';
import { fetchThrough } from './fetch-through.ts';

// For random callers and random arguments a tool and its route decide, do and answer the same.

const columns = {
  id: t.uuidv7().pk(),
  owner_id: t.uuid().readOnly(),
  title: t.text(20),
  pages: t.int({ min: 1, max: 9 }).default(1),
  margin: t.int().nullable(),
  ...versioned(),
};
const notes = model('notes', columns, { indexes: [{ columns: ['owner_id', '-id'] }] });
const noteResource = resource(notes, {
  owner: { column: 'owner_id', unless: isStaff },
  version: 'version',
  fields: { margin: { ...visibleTo(isStaff), ...writableBy(isStaff) } },
});
class NoteController extends CrudController(noteResource, {
  permission: hasScopes(),
  scope: 'notes',
  filters: { title: ['eq', 'contains'], pages: ['gte', 'in'] },
  ordering: { by: ['title', 'pages'] },
  operations: {
    list: { tool: true },
    retrieve: { tool: true },
    create: { tool: true },
    update: { tool: true },
    partialUpdate: { tool: true },
    destroy: { tool: true, permission: any(isStaff, isSuperuser) },
  },
}) {}

const Sum = z.object({ sum: z.number() });
class MathController extends Controller {
  static override readonly permission = hasScopes({ allowUnscoped: true });
  add = route.post(
    '/add',
    {
      permission: not(isSuperuser),
      tool: true,
      summary: 'Add two integers',
      body: z.object({ a: z.int(), b: z.int().max(5) }),
      response: Sum,
    },
    ({ body }) => ({ sum: body.a + body.b }),
  );
  staff = route.get('/staff', { permission: isStaff, tool: true, summary: 'Only for staff', response: Sum }, () => ({ sum: 1 }));
  both = route.get(
    '/both',
    { permission: all(isStaff, isSuperuser), scope: 'math:both', tool: true, summary: 'Only for superusers of the staff', response: Sum },
    () => ({ sum: 2 }),
  );
}

interface Caller {
  readonly key: string;
  readonly flags: string;
  readonly scopes: readonly string[];
}

const SCOPES = [[], ['notes:read'], ['notes:write'], ['notes:*'], ['math:both'], ['*']] as const;
/** Routes by the name of their tool. */
const ROUTES: Readonly<Record<string, { method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'; path: string }>> = {
  note_list: { method: 'GET', path: '/v1/notes' },
  note_retrieve: { method: 'GET', path: '/v1/notes/:id' },
  note_create: { method: 'POST', path: '/v1/notes' },
  note_update: { method: 'PUT', path: '/v1/notes/:id' },
  note_partial_update: { method: 'PATCH', path: '/v1/notes/:id' },
  note_destroy: { method: 'DELETE', path: '/v1/notes/:id' },
  math_add: { method: 'POST', path: '/v1/math/add' },
  math_staff: { method: 'GET', path: '/v1/math/staff' },
  math_both: { method: 'GET', path: '/v1/math/both' },
};
const QUERY: ReadonlySet<string> = new Set(['title__contains', 'pages__gte', 'limit', 'ordering', 'fields']);

describeDatabases('a tool and its route', (database) => {
  let app: App;
  const callers: Caller[] = [];
  const ids: string[] = ['01890000-0000-7000-8000-000000000000', 'not-an-id'];

  beforeAll(async () => {
    app = createApp({
      database: database.db,
      modules: [
        accounts(),
        apiKeys(),
        mcp(),
        {
          name: 'notes',
          models: [notes],
          migrations: [migration('0001_initial', [createTable('notes', columns, { indexes: [{ columns: ['owner_id', '-id'] }] })])],
        },
      ],
      mount: { '/v1': { '/notes': NoteController, '/math': MathController } },
      log: { level: 'silent' },
    });
    await migrateApp(app);
    await app.ready();
    for (const [name, is_staff, is_superuser] of [
      ['plain', false, false],
      ['staff', true, false],
      ['root', true, true],
      ['odd', false, true],
    ] as const) {
      const user = await createUser(database.db, { username: name, is_staff, is_superuser });
      for (const scopes of SCOPES) {
        const { raw } = await createApiKey(database.db, { user, name: scopes.join(' ') || 'none', scopes: [...scopes] });
        callers.push({ key: raw, flags: name, scopes });
      }
      const [row] = await database.db.query<{ id: string }>(
        'insert into notes (id, owner_id, title, pages, margin, version) values ($1, $1, $2, 3, 7, 1) returning id',
        [user.id, `of ${name}`],
      );
      ids.push(row?.id ?? '');
    }
  });
  afterAll(() => app.close());

  const message = async ({ key }: Caller, method: string, params: object) => {
    const response = await fetchThrough(app)('http://localhost/mcp', {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', authorization: `Bearer ${key}` },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    });
    const text = await response.text();
    const line =
      text
        .split('\n')
        .find((each) => each.startsWith('data: '))
        ?.slice(6) ?? text;
    return JSON.parse(line) as {
      result?: {
        tools: { name: string }[];
        nextCursor?: string;
        isError?: boolean;
        structuredContent?: unknown;
        content: { text: string }[];
      };
      error?: { code: number; message: string };
    };
  };
  const http = async ({ key }: Caller, tool: string, args: Readonly<Record<string, unknown>>) => {
    const { method, path } = ROUTES[tool] as (typeof ROUTES)[string];
    const { id, if_match, ...rest } = args as { id?: string; if_match?: string } & Record<string, unknown>;
    const entries = Object.entries(rest).filter(([name]) => method !== 'GET' || QUERY.has(name));
    const isQuery = (name: string) => method === 'GET' || name === 'fields';
    const query = new URLSearchParams(
      entries.filter(([name]) => isQuery(name)).map(([name, value]): [string, string] => [name, String(value)]),
    );
    // A tool lists 20 records unless told otherwise.
    if (tool === 'note_list' && rest['limit'] === undefined) query.set('limit', '20');
    const body = Object.fromEntries(entries.filter(([name]) => !isQuery(name)));
    const url = `${path.replace(':id', encodeURIComponent(id ?? ''))}${query.size === 0 ? '' : `?${query.toString()}`}`;
    const response = await app.inject({
      method,
      url,
      headers: { 'x-api-key': key, ...(if_match === undefined ? {} : { 'if-match': if_match }) },
      ...(['POST', 'PUT', 'PATCH'].includes(method) ? { payload: body } : {}),
    });
    return { status: response.statusCode, body: response.body === '' ? undefined : (response.json() as Record<string, unknown>) };
  };
  /** What the rows are, apart from those that each of the two has created. */
  const stored = () =>
    database.db.query('select owner_id, title, pages, margin, version from notes order by owner_id, title, pages, margin, version');

  test('the list of each caller has exactly the operations that its routes do not refuse for who it is', async () => {
    for (const caller of callers) {
      const { result } = await message(caller, 'tools/list', {});
      const accepted: string[] = [];
      for (const tool of Object.keys(ROUTES)) {
        const { status, body } = await http(caller, tool, { id: ids[0] });
        const isRefused =
          status === 401 || (status === 403 && ['insufficient_scope', 'permission_denied'].includes(String(body?.['code'])));
        if (!isRefused) accepted.push(tool);
      }
      expect([caller.flags, caller.scopes, result?.tools.map(({ name }) => name).toSorted()]).toEqual([
        caller.flags,
        caller.scopes,
        accepted.toSorted(),
      ]);
    }
  });

  const value = fc.oneof(
    fc.integer({ min: -2, max: 12 }),
    fc.string({ maxLength: 25, unit: 'grapheme-ascii' }),
    fc.boolean(),
    fc.constant(null),
  );
  const call = fc.record({
    who: fc.nat({ max: 23 }),
    tool: fc.constantFrom(...Object.keys(ROUTES)),
    id: fc.option(fc.nat({ max: 5 }), { nil: undefined }),
    body: fc.record({ title: value, pages: value, margin: value, a: value, b: value, unknown: value }, { requiredKeys: [] }),
    query: fc.record(
      {
        title__contains: fc.constantFrom('of', 'x', ''),
        pages__gte: fc.constantFrom('2', 'x'),
        limit: fc.constantFrom('1', '0', '99999'),
        ordering: fc.constantFrom('title', '-pages', 'margin'),
      },
      { requiredKeys: [] },
    ),
    if_match: fc.option(fc.constantFrom('"1"', '"2"', 'nonsense'), { nil: undefined }),
  });

  test('decide, do and answer the same, for random callers and arguments', async () => {
    await fc.assert(
      fc.asyncProperty(call, async ({ who, tool, id, body, query, if_match }) => {
        const caller = callers[who] as Caller;
        const takesId = ROUTES[tool]?.path.includes(':id') === true;
        const takesBody = ['POST', 'PUT', 'PATCH'].includes(ROUTES[tool]?.method ?? '');
        const args: Record<string, unknown> = {
          ...(takesId ? { id: ids[id ?? 0] } : {}),
          ...(takesBody ? body : {}),
          ...(tool === 'note_list' ? query : {}),
          ...(if_match !== undefined && takesId && tool !== 'note_retrieve' ? { if_match } : {}),
        };
        const before = await stored();
        const direct = await http(caller, tool, args);
        const afterHttp = await stored();
        await database.db.query('delete from notes');
        for (const row of before as Record<string, unknown>[]) await restore(row);
        const { result, error } = await message(caller, 'tools/call', { name: tool, arguments: args });
        const afterTool = await stored();
        await database.db.query('delete from notes');
        for (const row of before as Record<string, unknown>[]) await restore(row);
        expect(comparable(afterTool)).toEqual(comparable(afterHttp));
        const problem = result?.isError === true ? (JSON.parse(result.content.at(-1)?.text ?? '{}') as Record<string, unknown>) : undefined;
        const isRefused = direct.status === 401 || ['insufficient_scope', 'permission_denied'].includes(String(direct.body?.['code']));
        const expected = isRefused ? `-32602 Unknown tool: ${tool}` : direct.status >= 400 ? direct.body?.['code'] : 'fine';
        expect([tool, args, error === undefined ? (problem?.['code'] ?? 'fine') : `${error.code} ${error.message}`]).toEqual([
          tool,
          args,
          expected,
        ]);
        // Two new notes differ in their ids.
        const isCompared = expected === 'fine' && tool !== 'note_create';
        expect(isCompared ? result?.structuredContent : null).toEqual(isCompared ? direct.body : null);
      }),
      { numRuns: 120 },
    );
  }, 120_000);

  const comparable = (rows: readonly unknown[]) => rows.map((row) => JSON.stringify(row)).toSorted();
  const restore = async (row: Record<string, unknown>) => {
    const { owner_id, title, pages, margin, version } = row;
    await database.db.query('insert into notes (id, owner_id, title, pages, margin, version) values ($1, $1, $2, $3, $4, $5)', [
      owner_id,
      title,
      pages,
      margin,
      version,
    ]);
  };
});
