import fc from 'fast-check';
import { expect, inject, test } from 'vitest';
import { byName, people, type Person } from '../../test/crud/shop.ts';
import { createTable, migration, model, t, timestamps, versioned } from '../db/index.ts';
import { insertMany } from '../db/repository.ts';
import { isAuthenticated, isStaff } from '../permissions/index.ts';
import { describeDatabases } from '../testing/databases.ts';
import { fakeClock } from '../testing/fake-clock.ts';
import { testApp, type TestApp } from '../testing/test-app.ts';
import { createPostgresDatabase, createSqliteDatabase } from '../testing/test-database.ts';
import { count, CrudController, visibleTo } from './index.ts';

// The list that cannot leak, for resources that nobody wrote: columns, scope, hidden fields, filters, orders, pages, rows and requests are generated.
// Two databases differ in what `ann` may not see. She must get the same bytes from both.

const IS_LONG = process.env['KIT_TEST_LONG'] === '1';
const RESOURCES = IS_LONG ? 150 : 10;
const REQUESTS = IS_LONG ? 120 : 25;
const CURSOR_KEYS = 'A'.repeat(43);

/** Kinds of columns, and values of each that a row may have. */
const kinds = {
  text: { column: () => t.text(40), values: ['', 'a', 'Ab', 'é', 'thing', '100%', '_', '0'] },
  int: { column: () => t.int(), values: [0, -1, 7, 2_147_483_647] },
  decimal: { column: () => t.decimal(8, 2), values: ['0.00', '1.50', '-3.25', '99999.99'] },
  bool: { column: () => t.bool(), values: [true, false] },
  enum: { column: () => t.enum(['open', 'paid']), values: ['open', 'paid'] },
  timestamp: { column: () => t.timestamp(), values: [new Date(Date.UTC(2026, 0, 1)), new Date(Date.UTC(2026, 5, 1, 12))] },
} as const;
type Kind = keyof typeof kinds;

interface GeneratedColumn {
  readonly name: string;
  readonly kind: Kind;
  readonly isNullable: boolean;
  /** Hidden from all but staff: left out, shown as null, or unknown to everybody. */
  readonly hidden: 'no' | 'omit' | 'null' | 'internal';
  readonly isFiltered: boolean;
  readonly isOrdered: boolean;
}

interface GeneratedResource {
  readonly columns: readonly GeneratedColumn[];
  readonly scope: 'owner' | 'tenant' | 'both' | 'rows';
  readonly page: { readonly default: number; readonly count: 'none' | 'exact' | { readonly upTo: number } };
  readonly etag: 'optional' | 'required' | false;
}

const column = (name: string) =>
  fc.record({
    name: fc.constant(name),
    kind: fc.constantFrom<Kind>(...(Object.keys(kinds) as Kind[])),
    isNullable: fc.boolean(),
    hidden: fc.constantFrom('no' as const, 'no' as const, 'omit' as const, 'null' as const, 'internal' as const),
    isFiltered: fc.boolean(),
    isOrdered: fc.boolean(),
  });

const resources: fc.Arbitrary<GeneratedResource> = fc.record({
  columns: fc.integer({ min: 2, max: 6 }).chain((length) => fc.tuple(...Array.from({ length }, (_, index) => column(`c${index}`)))),
  scope: fc.constantFrom('owner', 'tenant', 'both', 'rows'),
  page: fc.record({
    default: fc.constantFrom(2, 5, 50),
    count: fc.constantFrom<GeneratedResource['page']['count']>('none', 'exact', { upTo: 5 }),
  }),
  etag: fc.constantFrom<GeneratedResource['etag']>('optional', 'required', false),
});

/** A column that only some may see may be NULL: `hidden: 'null'` asks for it, and a row of hers must not need a value that she cannot send. */
const isNullable = ({ isNullable: declared, hidden }: GeneratedColumn): boolean => declared || hidden !== 'no';

function declare(name: string, { columns, scope, page, etag }: GeneratedResource) {
  const own = Object.fromEntries(
    columns.map((each) => {
      const base = kinds[each.kind].column();
      const typed = each.hidden === 'internal' ? base.nullable().internal() : isNullable(each) ? base.nullable() : base;
      return [each.name, typed];
    }),
  );
  const all = {
    id: t.uuidv7().pk(),
    org: t.text(20).dbDefault('').readOnly(),
    owner_id: t.uuid().dbDefault('00000000-0000-7000-8000-000000000000').readOnly(),
    ...own,
    ...timestamps(),
    ...versioned(),
  };
  const table = model(name, all as typeof all & Record<string, never>);
  const shown = columns.filter(({ hidden }) => hidden !== 'internal');
  const options = {
    permission: isAuthenticated,
    ...(scope === 'tenant' || scope === 'both' ? { tenant: 'org' } : {}),
    ...(scope === 'owner' || scope === 'both' ? { owner: 'owner_id' } : {}),
    ...(scope === 'rows' ? { rows: ({ user }: { user: { id: string } }) => ({ owner_id: user.id }) } : {}),
    version: 'version',
    fields: Object.fromEntries(
      columns.flatMap(({ name: each, hidden }) => (hidden === 'omit' || hidden === 'null' ? [[each, visibleTo(isStaff, { hidden })]] : [])),
    ),
    filters: Object.fromEntries(shown.filter(({ isFiltered }) => isFiltered).map(({ name: each }) => [each, ['eq', 'ne', 'in', 'isnull']])),
    ordering: { by: ['created_at', ...shown.filter(({ isOrdered }) => isOrdered).map(({ name: each }) => each)] },
    search: shown.filter(({ kind, hidden }) => kind === 'text' && hidden === 'no').map(({ name: each }) => each),
    page,
    etag,
    export: ['csv', 'jsonl'],
    stats: { by: shown.map(({ name: each }) => each), metrics: { rows: count() } },
    meta: true,
    bulk: { update: true, destroy: true },
  };
  const { search, stats, fields, filters, ...rest } = options;
  const given = {
    ...rest,
    ...(search.length === 0 ? {} : { search }),
    ...(stats.by.length === 0 ? {} : { stats }),
    ...(Object.keys(fields).length === 0 ? {} : { fields }),
    ...(Object.keys(filters).length === 0 ? {} : { filters }),
  };
  class Generated extends (CrudController as (model: object, options: object) => new () => object)(table, given) {}
  Object.defineProperty(Generated, 'name', { value: name.replace('generated_', 'Generated') });
  const module = { name: `generated_${name}`, models: [table], migrations: [migration('0001_initial', [createTable(name, all)])] };
  return { table, module, controller: Generated };
}

const id = (group: number, index: number) => `01890000-0000-7000-8${String(group).padStart(3, '0')}-${String(index).padStart(12, '0')}`;
const valueOf = ({ kind }: GeneratedColumn, pick: number): unknown => kinds[kind].values[pick % kinds[kind].values.length];

/** Her rows are alike in both worlds but for the columns she may not see; the rows of others are not. */
function rowsOf(generated: GeneratedResource, world: 0 | 1) {
  const at = (index: number) => new Date(Date.UTC(2026, 0, 1 + (index % 9)));
  const row = (key: string, person: Person, index: number, shift: number) => ({
    id: key,
    org: people[person].tenant as string,
    owner_id: people[person].id,
    ...Object.fromEntries(
      generated.columns.map((each, place) => {
        const pick = index * 7 + place * 3 + (each.hidden === 'no' ? 0 : shift);
        return [each.name, isNullable(each) && pick % 4 === 0 ? null : valueOf(each, pick)];
      }),
    ),
    created_at: at(index),
    updated_at: at(index),
  });
  const hers = Array.from({ length: 12 }, (_, index) => row(id(1, index), 'ann', index, world));
  // By tenant she sees the rows of her colleagues; by owner she does not.
  const colleagues = Array.from({ length: generated.scope === 'tenant' ? 0 : 3 + 9 * world }, (_, index) =>
    row(id(2 + world, index), 'bob', index + world, world),
  );
  const foreign = Array.from({ length: 8 - 5 * world }, (_, index) => row(id(4 + world, index), 'cid', index, world));
  return [...hers, ...colleagues, ...foreign];
}

interface Request {
  readonly method: string;
  readonly path: string;
  readonly payload?: object;
  readonly headers?: Readonly<Record<string, string>>;
}

function requestsOf({ columns }: GeneratedResource): fc.Arbitrary<Request> {
  const name = fc.constantFrom(...columns.map((each) => each.name), 'id', 'owner_id', 'org', 'created_at', 'version', 'nope');
  const text = fc.constantFrom(
    '',
    'a',
    '7',
    '1.50',
    'true',
    'open',
    '2026-01-01T00:00:00.000Z',
    'null',
    people.bob.id,
    id(1, 3),
    id(2, 0),
    '%',
  );
  // A value that the column can have, so that the filter would decide something.
  const fitting = fc
    .tuple(fc.constantFrom(...columns), fc.constantFrom('', '__eq', '__ne', '__in', '__isnull'), fc.nat({ max: 7 }))
    .map(([each, op, pick]) => {
      const value = valueOf(each, pick);
      const text = op === '__isnull' ? 'true' : value instanceof Date ? value.toISOString() : String(value);
      return `${each.name}${op}=${encodeURIComponent(text)}`;
    });
  const term = fc.oneof(
    { weight: 3, arbitrary: fitting },
    fc
      .tuple(name, fc.constantFrom('', '__eq', '__ne', '__in', '__isnull', '__gte', '__like'), text)
      .map(([of, op, value]) => `${of}${op}=${encodeURIComponent(value)}`),
    fc.tuple(fc.constantFrom('', '-'), name).map(([sign, of]) => `ordering=${sign}${of}`),
    fc.array(name, { minLength: 1, maxLength: 3 }).map((names) => `fields=${names.join()}`),
    text.map((value) => `search=${encodeURIComponent(value)}`),
    fc.constantFrom('limit=1', 'limit=3', 'limit=0', 'count=true', 'offset=1', 'cursor=AAAA', 'expand=owner', 'deleted=only'),
  );
  const query = fc.array(term, { maxLength: 3 }).map((terms) => (terms.length === 0 ? '' : `?${terms.join('&')}`));
  const key = fc.constantFrom(id(1, 0), id(1, 5), id(1, 11), id(2, 0), id(3, 1), id(4, 0), id(5, 1), id(9, 9), 'not-a-uuid');
  const tag = fc.constantFrom<Readonly<Record<string, string>>>(
    {},
    { 'if-match': '"77"' },
    { 'if-match': '*' },
    { 'if-none-match': '"1"' },
  );
  const members = fc.dictionary(name, fc.constantFrom<unknown>('a', 7, true, null, '1.50', 'open', people.bob.id), { maxKeys: 3 });
  const tree: fc.Arbitrary<object> = fc.letrec((tie) => ({
    node: fc.oneof(
      { maxDepth: 2 },
      fc
        .tuple(name, fc.constantFrom<unknown>('a', 7, null, true, { eq: 'open' }, { isnull: true }, { in: ['a', 7] }))
        .map(([of, value]) => ({ [of]: value })),
      fc.array(tie('node'), { minLength: 1, maxLength: 2 }).map((and) => ({ and })),
      fc.array(tie('node'), { minLength: 1, maxLength: 2 }).map((or) => ({ or })),
      tie('node').map((not) => ({ not })),
    ),
  })).node;
  return fc.oneof(
    { weight: 6, arbitrary: fc.tuple(query, tag).map(([asked, headers]) => ({ method: 'GET', path: asked, headers })) },
    { weight: 2, arbitrary: fc.tuple(key, query, tag).map(([of, asked, headers]) => ({ method: 'GET', path: `/${of}${asked}`, headers })) },
    { weight: 3, arbitrary: tree.map((where) => ({ method: 'POST', path: '/query', payload: { where } })) },
    {
      weight: 1,
      arbitrary: fc
        .tuple(fc.constantFrom('csv', 'jsonl'), query)
        .map(([format, asked]) => ({ method: 'GET', path: `/export?format=${format}${asked.replace('?', '&')}` })),
    },
    {
      weight: 1,
      arbitrary: fc
        .tuple(name, query)
        .map(([by, asked]) => ({ method: 'GET', path: `/stats?group_by=${by}&metrics=rows${asked.replace('?', '&')}` })),
    },
    { weight: 1, arbitrary: fc.constant({ method: 'GET', path: '/meta' }) },
    // What changes her own rows would make later requests depend on it: writes that must be refused, and rows that are not hers.
    {
      weight: 2,
      arbitrary: fc
        .tuple(fc.constantFrom('PATCH', 'PUT', 'DELETE'), key, members)
        .map(([method, of, payload]) => ({ method, path: `/${of}`, payload, headers: { 'if-match': '"77"' } })),
    },
    { weight: 1, arbitrary: members.map((payload) => ({ method: 'POST', path: '', payload: { ...payload, nope: 1 } })) },
    {
      weight: 1,
      arbitrary: fc
        .tuple(fc.array(key, { minLength: 1, maxLength: 3 }), members)
        .map(([ids, changes]) => ({ method: 'POST', path: '/bulk-update', payload: { ids: [...ids, id(9, 9)], changes } })),
    },
  );
}

/** What of an answer a caller can see. */
const visible = ({ statusCode, body, headers }: { statusCode: number; body: string; headers: object }) => ({
  status: statusCode,
  body: body.replaceAll(/"request_id":"[^"]*"/g, ''),
  headers: Object.fromEntries(Object.entries(headers).filter(([name]) => name !== 'x-request-id' && name !== 'date')),
});

describeDatabases('resources that nobody wrote', (database) => {
  test('give a caller the same bytes in two worlds that differ only in what she may not see', async () => {
    const server = (inject as (key: string) => unknown)('postgresUrl');
    const second = database.dialect === 'sqlite' ? await createSqliteDatabase() : await createPostgresDatabase(server as string);
    const generated = fc.sample(resources, RESOURCES);
    const declared = generated.map((each, index) => declare(`generated_${index}`, each));
    const worlds: TestApp[] = [];
    try {
      for (const world of [0, 1] as const)
        worlds.push(
          await testApp({
            database: world === 0 ? database.url : second.url,
            modules: declared.map(({ module }) => module),
            authenticators: [byName],
            tenant: ({ user }) => (user === null ? null : people[user.username as Person].tenant),
            settings: { cursorKeys: CURSOR_KEYS },
            clock: fakeClock(new Date(Date.UTC(2026, 0, 20))),
            mount: { '/v1': Object.fromEntries(declared.map(({ controller }, index) => [`/r${index}`, controller as never])) },
            prepare: async ({ db }) => {
              for (const [index, { table }] of declared.entries())
                await insertMany(db, table, rowsOf(generated[index] as GeneratedResource, world) as never);
            },
          }),
        );
      const both = async (person: Person, place: number, { method, path, payload, headers = {} }: Request) => {
        const send = (world: TestApp) =>
          world.inject({
            method: method as 'GET',
            url: `/v1/r${place}${path}`,
            headers: { 'x-user': person, ...headers },
            ...(payload === undefined ? {} : { payload }),
          });
        const [one, two] = await Promise.all(worlds.map(send));
        return [visible(one!), visible(two!)] as const;
      };
      let found = 0;
      for (const [place, resource] of generated.entries()) {
        for (const request of fc.sample(requestsOf(resource), REQUESTS)) {
          const [one, two] = await both('ann', place, request);
          expect(two, `of ${JSON.stringify({ resource, request })}`).toEqual(one);
          expect(one.status, `of ${JSON.stringify({ resource, request, one })}`).toBeLessThan(500);
          if (one.status === 200) found += 1;
        }
        // Otherwise the worlds would be alike, and the test would show nothing.
        const [one, two] = await both('cid', place, { method: 'GET', path: '?limit=50' });
        expect(two.body).not.toBe(one.body);
      }
      expect(found).toBeGreaterThan(RESOURCES * REQUESTS * 0.1);
    } finally {
      for (const world of worlds) await world.close();
      await second.remove();
    }
  });
});
