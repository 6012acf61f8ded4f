import fc from 'fast-check';
import { expect, inject, test } from 'vitest';
import { z } from 'zod';
import { byName, people, type Person } from '../../test/crud/shop.ts';
import { createTable, migration, model, t, timestamps, versioned } from '../db/index.ts';
import { insertMany } from '../db/rows/repository.ts';
import { isAuthenticated, isOwner, isStaff } from '../permissions/index.ts';
import { describeDatabases } from '../testing/databases.ts';
import { fakeClock } from '../testing/fake-clock.ts';
import { testApp, type TestApp } from '../testing/test-app.ts';
import { createPostgresDatabase, createSqliteDatabase } from '../testing/test-database.ts';
import { count, CrudController, many, one, resource, visibleTo } from './index.ts';
import { scaled } from '../../../../test/provision/scale.ts';

// Non-interference for generated resources: columns, scope, hidden fields, computed fields, relations, filters, orders, pages, rows and requests
// are generated. Two databases differ only in what `ann` may not see. She must get the same bytes from both.

const RESOURCES = scaled(10, 150);
const REQUESTS = scaled(25, 120);
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

/**
 * Who sees a column: everyone; staff, while others get no property or null; the owner of the row, likewise; or nobody, by the model or by the
 * resource.
 */
type Hidden = 'no' | 'omit' | 'null' | 'row' | 'row-null' | 'internal' | 'hidden';

interface GeneratedColumn {
  readonly name: string;
  readonly kind: Kind;
  readonly isNullable: boolean;
  readonly hidden: Hidden;
  readonly isFiltered: boolean;
  readonly isOrdered: boolean;
}

/** A column of the related row. It has the name of a column of the row itself. */
interface FolderColumn {
  readonly name: string;
  readonly kind: Kind;
  readonly hidden: 'no' | 'omit';
  readonly isFiltered: boolean;
}

interface GeneratedResource {
  readonly columns: readonly GeneratedColumn[];
  readonly folder: readonly FolderColumn[];
  /** Columns that each computed field requires, by its name. */
  readonly computed: Readonly<Record<string, readonly string[]>>;
  /** Columns that the controller shows; undefined: all. */
  readonly output: readonly string[] | undefined;
  readonly scope: 'owner' | 'tenant' | 'both' | 'rows' | 'unscoped';
  readonly page: { readonly default: number; readonly count: 'none' | 'exact' | { readonly upTo: number } };
  readonly etag: 'optional' | 'required' | false;
}

const anyKind = fc.constantFrom<Kind>(...(Object.keys(kinds) as Kind[]));
const column = (name: string, hidden: readonly Hidden[]) =>
  fc.record({
    name: fc.constant(name),
    kind: anyKind,
    isNullable: fc.boolean(),
    hidden: fc.constantFrom(...hidden),
    isFiltered: fc.boolean(),
    isOrdered: fc.boolean(),
  });

/** The first column is decided per row and the second is hidden from `ann`, so that the worlds of every resource differ. */
const columnsOf = fc
  .integer({ min: 2, max: 6 })
  .chain((length) =>
    fc.tuple(
      ...Array.from({ length }, (_, index) =>
        column(
          `c${index}`,
          index === 0
            ? ['row', 'row-null']
            : index === 1
              ? ['hidden', 'internal', 'omit', 'null']
              : ['no', 'no', 'no', 'omit', 'null', 'row', 'internal', 'hidden'],
        ),
      ),
    ),
  );

const isRuledByRow = ({ hidden }: GeneratedColumn): boolean => hidden === 'row' || hidden === 'row-null';
const isUnknown = ({ hidden }: GeneratedColumn): boolean => hidden === 'internal' || hidden === 'hidden';

const resources: fc.Arbitrary<GeneratedResource> = columnsOf.chain((columns) => {
  const names = columns.map(({ name }) => name);
  // A computed field may say what it likes about a column that `hidden` names: such a field is no leak.
  const required = columns.filter((each) => !isUnknown(each)).map(({ name }) => name);
  return fc.record({
    columns: fc.constant(columns),
    folder: fc.tuple(
      ...columns.map(({ name, kind }) =>
        fc.record({
          name: fc.constant(name),
          kind: fc.oneof(fc.constant(kind), anyKind),
          hidden: fc.constantFrom('no' as const, 'no' as const, 'omit' as const),
          isFiltered: fc.constantFrom(true, true, false),
        }),
      ),
    ),
    computed: fc.record({
      ruled: fc.constant(['c0']),
      mixed: fc.subarray(required, { minLength: 1 }),
      related: fc.constantFrom(...names).map((name) => [`folder.${name}`]),
      both: fc.constantFrom(...names).map((name) => ['c0', `folder.${name}`]),
    }),
    output: fc.option(
      fc.subarray(required).map((shown) => ['id', 'owner_id'].concat(shown)),
      { nil: undefined },
    ),
    scope: fc.constantFrom('owner', 'tenant', 'both', 'rows', 'unscoped', 'unscoped'),
    page: fc.record({
      default: fc.constantFrom(2, 5, 50),
      count: fc.constantFrom<GeneratedResource['page']['count']>('none', 'exact', { upTo: 5 }),
    }),
    etag: fc.constantFrom<GeneratedResource['etag']>('optional', 'required', false),
  });
});

/** A column that only some may see may be NULL: `hidden: 'null'` requires it, and `ann` cannot send a value for her own rows. */
const isNullable = ({ isNullable: declared, hidden }: GeneratedColumn): boolean => declared || hidden !== 'no';

const OPERATORS = ['eq', 'ne', 'in', 'isnull'];
const operatorsOf = (kind: Kind): string[] => (kind === 'text' ? [...OPERATORS, 'starts'] : OPERATORS);

/** The value tells every required value: a leak of one of them changes the response. */
const computedField = (requires: readonly string[]) => ({
  requires,
  response: z.string(),
  value: (row: Record<string, unknown>) => JSON.stringify(row),
});

function declare(name: string, { columns, folder, computed, output, scope, page, etag }: GeneratedResource) {
  const own = Object.fromEntries(
    columns.map((each) => {
      const base = kinds[each.kind].column();
      const typed = each.hidden === 'internal' ? base.nullable().internal() : isNullable(each) ? base.nullable() : base;
      return [each.name, typed];
    }),
  );
  const folderName = name.replace('generated', 'folders');
  const ofFolder = { id: t.uuidv7().pk(), ...Object.fromEntries(folder.map((each) => [each.name, kinds[each.kind].column().nullable()])) };
  const folders = model(folderName, ofFolder as typeof ofFolder & Record<string, never>);
  const all = {
    id: t.uuidv7().pk(),
    org: t.text(20).dbDefault('').readOnly(),
    owner_id: t.uuid().dbDefault('00000000-0000-7000-8000-000000000000').readOnly(),
    ...own,
    ...timestamps(),
    ...versioned(),
  };
  const table = model(name, { ...all, folder_id: t.ref(() => folders).nullable() } as typeof all & { folder_id: never });
  const shown = columns.filter((each) => !isUnknown(each));
  const open = shown.filter((each) => !isRuledByRow(each));
  const names = (some: readonly { readonly name: string }[]) => some.map((each) => each.name);
  const rules = columns.flatMap((each) =>
    each.hidden === 'omit' || each.hidden === 'null'
      ? [[each.name, visibleTo(isStaff, { hidden: each.hidden })]]
      : isRuledByRow(each)
        ? [[each.name, visibleTo(isOwner(), { hidden: each.hidden === 'row' ? 'omit' : 'null' })]]
        : [],
  );
  const policy = (resource as (model: object, options: object) => object)(table, {
    ...(scope === 'unscoped' ? { unscoped: true } : {}),
    ...(scope === 'tenant' || scope === 'both' ? { tenant: 'org' } : {}),
    ...(scope === 'owner' || scope === 'both' ? { owner: 'owner_id' } : {}),
    ...(scope === 'rows' ? { rows: ({ user }: { user: { id: string } }) => ({ owner_id: user.id }) } : {}),
    version: 'version',
    relations: { folder: one(() => folders, 'folder_id') },
    hidden: names(columns.filter(({ hidden }) => hidden === 'hidden')),
    fields: Object.fromEntries(rules),
    computed: Object.fromEntries(Object.entries(computed).map(([field, requires]) => [field, computedField(requires)])),
  });
  const search = names(shown.filter(({ kind, hidden }) => kind === 'text' && hidden === 'no'));
  const options = {
    permission: isAuthenticated,
    filters: Object.fromEntries([
      ...open.filter(({ isFiltered }) => isFiltered).map((each) => [each.name, operatorsOf(each.kind)]),
      ...folder.filter(({ isFiltered }) => isFiltered).map((each) => [`folder.${each.name}`, operatorsOf(each.kind)]),
    ]),
    ordering: { by: ['created_at', ...names(open.filter(({ isOrdered }) => isOrdered))] },
    ...(search.length === 0 ? {} : { search }),
    ...(output === undefined ? {} : { output }),
    expand: ['folder'],
    page,
    etag,
    export: ['csv', 'jsonl'],
    ...(open.length === 0 ? {} : { stats: { by: names(open), metrics: { rows: count() } } }),
    meta: true,
    bulk: { update: true, destroy: true },
  };
  const folderPolicy = (resource as (model: object, options: object) => object)(folders, {
    unscoped: true,
    relations: { rows: many(() => table as never, 'folder_id', { limit: 3 }) },
    fields: Object.fromEntries(folder.filter(({ hidden }) => hidden === 'omit').map((each) => [each.name, visibleTo(isStaff)])),
  });
  const base = CrudController as unknown as (policy: object, options: object) => new () => object;
  class Generated extends base(policy, options) {}
  class GeneratedFolders extends base(folderPolicy, { permission: isAuthenticated, expand: ['rows'], meta: true }) {}
  Object.defineProperty(Generated, 'name', { value: name.replace('generated_', 'Generated') });
  Object.defineProperty(GeneratedFolders, 'name', { value: name.replace('generated_', 'Folders') });
  const module = {
    name: `generated_${name}`,
    models: [folders, table],
    migrations: [
      migration('0001_initial', [
        createTable(folderName, ofFolder),
        createTable(name, { ...all, folder_id: t.ref(folderName).nullable() } as never),
      ]),
    ],
  };
  return { table, folders, module, controller: Generated, folderController: GeneratedFolders };
}

const id = (group: number, index: number) => `01890000-0000-7000-8${String(group).padStart(3, '0')}-${String(index).padStart(12, '0')}`;
const valueOf = ({ kind }: { readonly kind: Kind }, pick: number): unknown => kinds[kind].values[pick % kinds[kind].values.length];
const FOLDERS = 4;

/** Everyone sees every folder; the worlds differ in the columns that only staff see. */
function foldersOf({ folder }: GeneratedResource, world: 0 | 1) {
  return Array.from({ length: FOLDERS }, (_, index) => ({
    id: id(6, index),
    ...Object.fromEntries(folder.map((each, place) => [each.name, valueOf(each, index + place + (each.hidden === 'no' ? 0 : world))])),
  }));
}

/** Rows that `ann` sees are alike in both worlds but for the values she may not see. The other rows differ, and so does their number. */
function rowsOf(generated: GeneratedResource, world: 0 | 1) {
  const at = (index: number) => new Date(Date.UTC(2026, 0, 1 + (index % 9)));
  const row = (key: string, person: Person, index: number) => ({
    id: key,
    org: people[person].tenant as string,
    owner_id: people[person].id,
    folder_id: index % 5 === 4 ? null : id(6, index % FOLDERS),
    ...Object.fromEntries(
      generated.columns.map((each, place) => {
        const isSeen = each.hidden === 'no' || (isRuledByRow(each) && person === 'ann');
        const pick = index * 7 + place * 3 + (isSeen ? 0 : world);
        return [each.name, isNullable(each) && pick % 4 === 0 ? null : valueOf(each, pick)];
      }),
    ),
    created_at: at(index),
    updated_at: at(index),
  });
  const several = (number: number, group: number, person: Person, shift = 0) =>
    Array.from({ length: number }, (_, index) => row(id(group, index), person, index + shift));
  const { scope } = generated;
  return [
    ...several(12, 1, 'ann'),
    // By tenant she sees the rows of her colleagues, but not of the other tenant; unscoped she sees all rows; else only her own.
    ...(scope === 'tenant' || scope === 'unscoped' ? several(6, 2, 'bob') : several(3 + 9 * world, 2 + world, 'bob', world)),
    ...(scope === 'unscoped' ? several(4, 4, 'cid') : several(8 - 5 * world, 4 + world, 'cid', world)),
  ];
}

interface Request {
  /** The folders' controller. Default: the resource's. */
  readonly at?: 'folders';
  readonly method: string;
  readonly path: string;
  readonly payload?: object;
  readonly headers?: Readonly<Record<string, string>>;
}

/**
 * The requests by which a value could leave under another name: every relation filter, as a parameter and in a tree, above and below its relation;
 * and every computed field, alone and beside all others, on each path that shows rows.
 */
function detoursOf({ folder, computed, columns }: GeneratedResource): Request[] {
  const filters = folder.flatMap((each): Request[] => {
    const own = columns.find(({ name }) => name === each.name) as GeneratedColumn;
    const operators = operatorsOf(each.kind).filter((operator) => operator !== 'ne' && operator !== 'in');
    return operators.flatMap((operator) =>
      // Values of the row's own column of this name too: a leak answers questions about them.
      [0, 3].flatMap((pick): Request[] => {
        const value = operator === 'isnull' ? pick === 0 : valueOf(pick === 3 ? own : each, pick);
        const leaf = { [operator]: value };
        const text = encodeURIComponent(value instanceof Date ? value.toISOString() : String(value));
        const query = (where: object): Request => ({ method: 'POST', path: '/query', payload: { where } });
        return [
          query({ [`folder.${each.name}`]: leaf }),
          query({ folder: { is: { [each.name]: leaf } } }),
          query({ folder: { is: { [`folder.${each.name}`]: leaf } } }),
          { method: 'GET', path: `?folder__${each.name}__${operator}=${text}` },
          { method: 'GET', path: `?folder.${each.name}__${operator}=${text}` },
        ];
      }),
    );
  });
  const fields = ['', ...Object.keys(computed).map((name) => `fields=${name}`)].flatMap((asked): Request[] => [
    { method: 'GET', path: `?${asked}` },
    { method: 'GET', path: `/${id(1, 0)}?${asked}` },
    { method: 'GET', path: `/${id(2, 0)}?${asked}` },
    { method: 'GET', path: `/${id(4, 0)}?${asked}` },
    { method: 'GET', path: `?expand=folder&${asked}` },
    { method: 'GET', path: `/export?format=csv&${asked}` },
    { method: 'GET', path: `/export?format=jsonl&expand=folder&${asked}` },
    { method: 'POST', path: '/query', payload: asked === '' ? {} : { fields: [asked.replace('fields=', '')] } },
    { at: 'folders', method: 'GET', path: `/${id(6, 0)}?expand=rows&${asked.replace('=', '=rows.')}` },
    { at: 'folders', method: 'GET', path: `?expand=rows&${asked.replace('=', '=rows.')}` },
  ]);
  return [...filters, ...fields];
}

function requestsOf({ columns, computed }: GeneratedResource): fc.Arbitrary<Request> {
  const name = fc.constantFrom(
    ...columns.flatMap((each) => [each.name, each.name, `folder.${each.name}`]),
    ...Object.keys(computed),
    'id',
    'owner_id',
    'org',
    'created_at',
    'version',
    'folder_id',
    'folder',
    'nope',
  );
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
    fc.constantFrom(
      'limit=1',
      'limit=3',
      'limit=0',
      'count=true',
      'offset=1',
      'cursor=AAAA',
      'expand=owner',
      'expand=folder',
      'deleted=only',
    ),
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
      tie('node').map((is) => ({ folder: { is } })),
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
            mount: {
              '/v1': Object.fromEntries(
                declared.flatMap(({ controller, folderController }, index) => [
                  [`/rows${index}`, controller as never],
                  [`/folders${index}`, folderController as never],
                ]),
              ),
            },
            prepare: async ({ db }) => {
              for (const [index, { table, folders }] of declared.entries()) {
                await insertMany(db, folders, foldersOf(generated[index] as GeneratedResource, world) as never);
                await insertMany(db, table, rowsOf(generated[index] as GeneratedResource, world) as never);
              }
            },
          }),
        );
      const both = async (person: Person, place: number, { at, method, path, payload, headers = {} }: Request) => {
        const send = (world: TestApp) =>
          world.inject({
            method: method as 'GET',
            url: `/v1/${at ?? 'rows'}${place}${path}`,
            headers: { 'x-user': person, ...headers },
            ...(payload === undefined ? {} : { payload }),
          });
        const [one, two] = await Promise.all(worlds.map(send));
        return [visible(one!), visible(two!)] as const;
      };
      let found = 0;
      for (const [place, resource] of generated.entries()) {
        const requests = [...fc.sample(requestsOf(resource), REQUESTS), ...detoursOf(resource)];
        for (const request of requests) {
          const [one, two] = await both('ann', place, request);
          expect(two, `of ${JSON.stringify({ resource, request })}`).toEqual(one);
          expect(one.status, `of ${JSON.stringify({ resource, request, one })}`).toBeLessThan(500);
          if (one.status === 200) found += 1;
        }
        // Otherwise the worlds would be alike, and the test would show nothing.
        const stored = worlds.map(({ app }) => app.db.query(`select * from generated_${place} order by id`));
        const [one, two] = await Promise.all(stored);
        expect(two).not.toEqual(one);
      }
      expect(found).toBeGreaterThan(RESOURCES * REQUESTS * 0.1);
    } finally {
      for (const world of worlds) await world.close();
      await second.remove();
    }
  });
});
