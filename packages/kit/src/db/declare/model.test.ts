import { kyselyOf, type Tables } from '../kysely/index.ts';
import { describe, expect, expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import { t } from './column.ts';
import { migration } from '../migrations/migration.ts';
import { model, type Model } from './model.ts';
import { softDelete, softDeleteUnique, timestamps, userStamps, versioned } from './standard-columns.ts';
import { modelFaults } from './model-faults.ts';
import { insert } from '../rows/repository.ts';
import type { Db } from '../engine/db.ts';
import type { Input, Insert, Patch, Row, Update } from './rows.ts';
import type { Schema } from '../values/standard-schema.ts';

const users = model('users', { id: t.uuidv7().pk(), email: t.text({ max: 40, format: 'email' }).unique(), password: t.text().sensitive() });
const orders = model(
  'orders',
  {
    id: t.uuidv7().pk(),
    owner_id: t.ref(() => users, { onDelete: 'cascade' }),
    total: t.decimal(12, 2),
    status: t.enum(['draft', 'paid']).dbDefault('draft'),
    count: t.bigint().default(1n),
    note: t.text(5).nullable(),
    data: t.json(z.object({ tags: z.array(z.string().max(3)) })).nullable(),
    raw: t.bytes().nullable(),
    at: t.timestamp().nullable(),
    days: t.array(t.date()).nullable(),
    level: t.int({ min: 0, max: 9 }).nullable(),
    ...timestamps(),
    ...softDelete(),
  },
  { indexes: [{ columns: ['owner_id', '-created_at'] }] },
);
const OWNER = '018f4a52-0000-7000-8000-00000000000A';

function run<O>(schema: Schema<unknown, O>, value: unknown): { value?: O; issues?: { path: string; code: string | undefined }[] } {
  const result = schema['~standard'].validate(value);
  if (result instanceof Promise) throw new Error('asynchronous');
  if (result.issues === undefined) return { value: result.value };
  return { issues: result.issues.map((issue) => ({ path: (issue.path ?? []).map(String).join('.'), code: issue.code })) };
}

describe('types', () => {
  test('rows, inserts, updates and table maps follow from the declaration', () => {
    expectTypeOf<Row<typeof orders>['total']>().toEqualTypeOf<string>();
    expectTypeOf<Row<typeof orders>['status']>().toEqualTypeOf<'draft' | 'paid'>();
    expectTypeOf<Row<typeof orders>['data']>().toEqualTypeOf<{ tags: string[] } | null>();
    expectTypeOf<Row<typeof orders>['created_at']>().toEqualTypeOf<Date>();
    expectTypeOf<Row<typeof orders>['days']>().toEqualTypeOf<string[] | null>();
    expectTypeOf<{ owner_id: string; total: string }>().toExtend<Insert<typeof orders>>();
    // @ts-expect-error the total has no default
    expectTypeOf<{ owner_id: string }>().toExtend<Insert<typeof orders>>();
    expectTypeOf<{ status: 'paid' }>().toExtend<Update<typeof orders>>();
    expectTypeOf<Row<typeof orders>['owner_id']>().toEqualTypeOf<string>();
    expectTypeOf<Row<typeof notes>['anything']>().toBeUnknown();
    expectTypeOf<Row<typeof notes>['ledger_id']>().toEqualTypeOf<bigint>();
    type Shop = Tables<{ orders: typeof orders }>;
    expectTypeOf<keyof Shop['orders']>().toEqualTypeOf<keyof Row<typeof orders>>();
    const queries = (db: Db): unknown[] => [
      () => kyselyOf<Shop>(db).selectFrom('orders').select('total'),
      // @ts-expect-error no such table
      () => kyselyOf<Shop>(db).selectFrom('oders'),
      // @ts-expect-error no such column
      () => kyselyOf<Shop>(db).selectFrom('orders').select('totl'),
      () => db.transaction((tx) => insert(tx, users, { email: 'x', password: 'y' })),
    ];
    expect(queries).toBeTypeOf('function');
  });
});

const notes = model('notes', {
  id: t.uuidv7().pk(),
  owner_id: t.ref(() => users).readOnly(),
  ledger_id: t.ref<bigint>(() => ledgers),
  anything: t.json(),
  search_rank: t.int().default(0).internal(),
  ...timestamps(),
  ...userStamps(),
  ...versioned(),
  ...softDelete({ by: () => users }),
});
const ledgers = model('ledgers', { id: t.bigint().pk() });

describe('what clients may write', () => {
  test('the type of the input has neither generated keys nor read-only nor internal columns', () => {
    expectTypeOf<keyof Input<typeof notes>>().toEqualTypeOf<'ledger_id' | 'anything'>();
    expectTypeOf<keyof Patch<typeof notes>>().toEqualTypeOf<'ledger_id' | 'anything'>();
    const create = (db: Db, body: Input<typeof notes>): unknown => {
      // @ts-expect-error the owner is not part of what a client sends
      void (() => insert(db, notes, body));
      return () => insert(db, notes, { ...body, owner_id: OWNER });
    };
    expect(create).toBeTypeOf('function');
  });

  test('internal columns are in no schema, and stamps are shown but not accepted', () => {
    const properties = (schema: Schema): string[] =>
      Object.keys(schema['~standard'].jsonSchema?.output({ target: 'draft-2020-12' })['properties'] as object);
    expect(properties(notes.input)).toEqual(['ledger_id', 'anything']);
    expect(properties(notes.patch)).toEqual(['ledger_id', 'anything']);
    expect(properties(notes.output)).toEqual([
      'id',
      'owner_id',
      'ledger_id',
      'anything',
      'created_at',
      'updated_at',
      'created_by',
      'updated_by',
      'version',
      'deleted_at',
      'deleted_by',
    ]);
  });

  test('a key made by the database is not accepted from clients', () => {
    const tokens = model('tokens', { id: t.uuid().dbDefault('random').pk(), label: t.text() });
    expect(run(tokens.input, { id: OWNER, label: 'x' }).issues).toMatchObject([{ path: 'id' }]);
  });

  test('softDeleteUnique leaves deleted rows out of the index', () => {
    const { table } = model('members', { id: t.uuidv7().pk(), email: t.text(), ...softDelete() }, { indexes: [softDeleteUnique('email')] });
    expect(table.indexes).toEqual([{ name: 'members_email_unique', columns: ['email'], unique: true, where: 'deleted_at is null' }]);
  });
});

describe('input', () => {
  test('columns with a default are optional: absent or null lets the database fill them', () => {
    const { value } = run(orders.input, { owner_id: OWNER, total: '1.5', status: null, note: null });
    expect(value).toEqual({ owner_id: OWNER, total: '1.5', note: null });
    const schema = orders.input['~standard'].jsonSchema?.input({ target: 'draft-2020-12' });
    expect(schema?.['required']).toEqual(['owner_id', 'total']);
    expect(schema?.['properties']).toMatchObject({ status: { type: ['string', 'null'], enum: ['draft', 'paid', null], default: 'draft' } });
  });

  test('JSON becomes the values code works with', () => {
    const { value } = run(orders.input, {
      owner_id: OWNER,
      total: '1.50',
      count: '9223372036854775807',
      at: '2026-02-28T10:00:00+02:00',
      raw: 'AQID',
      days: ['2024-02-29'],
      data: { tags: ['a'] },
    });
    expect(value).toMatchObject({
      count: 9223372036854775807n,
      at: new Date('2026-02-28T08:00:00Z'),
      raw: new Uint8Array([1, 2, 3]),
      days: ['2024-02-29'],
      data: { tags: ['a'] },
    });
  });

  test('keys and columns that the application sets are not accepted', () => {
    const { issues } = run(orders.input, {
      id: OWNER,
      owner_id: OWNER,
      total: '1',
      created_at: '2026-01-01T00:00:00Z',
      deleted_at: null,
      extra: 1,
    });
    expect(issues?.map(({ path, code }) => `${path} ${code}`).sort()).toEqual([
      'created_at unknown_field',
      'deleted_at unknown_field',
      'extra unknown_field',
      'id unknown_field',
    ]);
  });

  test('every fault is reported at once, with its place', () => {
    const { issues } = run(orders.input, { total: 1, status: 'gone', note: 'too long', level: 10, at: 'yesterday', days: ['2023-02-29'] });
    expect(issues?.map(({ path }) => path).sort()).toEqual(['at', 'days.0', 'level', 'note', 'owner_id', 'status', 'total']);
  });

  test.each([
    ['total', '1.555'],
    ['total', '12345678901.00'],
    ['total', '1e3'],
    ['count', '9223372036854775808'],
    ['count', 7],
    ['note', 'a\0'],
    ['note', '\ud800'],
    ['note', 'e\u0301e\u0301e\u0301'],
    ['owner_id', `urn:uuid:${OWNER}`],
    ['raw', 'not base64!'],
    ['at', '2026-02-30T00:00:00Z'],
    ['at', '2016-12-31T23:59:60Z'],
    ['at', '0000-01-01T00:00:00Z'],
    ['data', { tags: ['toolong'] }],
    ['data', { tags: ['\0'] }],
  ])('%s refuses %j when it could not be stored or means something else', (column, value) => {
    const body = { owner_id: OWNER, total: '1', [column]: value };
    expect(run(orders.input, body).issues?.map(({ path }) => path.split('.')[0])).toEqual([column]);
  });

  test('lengths count characters, not UTF-16 units', () => {
    expect(run(orders.input, { owner_id: OWNER, total: '1', note: '😀😀😀😀😀' }).issues).toBeUndefined();
    expect(run(orders.input, { owner_id: OWNER, total: '1', note: '😀😀😀😀😀😀' }).issues).toHaveLength(1);
  });

  test('prototype keys are unknown fields', () => {
    const body = JSON.parse(`{"owner_id": "${OWNER}", "total": "1", "__proto__": {"x": 1}}`) as unknown;
    expect(run(orders.input, body).issues).toEqual([{ path: '__proto__', code: 'unknown_field' }]);
  });

  test.each([[null], ['text'], [[]], [7]])('%j is no body', (body) => {
    expect(run(orders.input, body).issues?.length).toBeGreaterThan(0);
  });
});

describe('patch and output', () => {
  test('a patch needs nothing and refuses keys, unknown fields and null where a column has none', () => {
    expect(run(orders.patch, {})).toEqual({ value: {} });
    expect(run(orders.patch, { note: null, total: '2' })).toEqual({ value: { note: null, total: '2' } });
    expect(run(orders.patch, { total: null }).issues).toEqual([{ path: 'total', code: 'invalid_type' }]);
    expect(run(orders.patch, { id: OWNER }).issues).toEqual([{ path: 'id', code: 'unknown_field' }]);
  });

  test('an output is the row in JSON form, without sensitive and unknown columns', () => {
    const row = { id: OWNER, email: 'a@b.c', password: 'geheim', joined: 'from elsewhere' };
    expect(run(users.output, row)).toEqual({ value: { id: OWNER, email: 'a@b.c' } });
    expect(JSON.stringify(users.output['~standard'].jsonSchema?.output({ target: 'draft-2020-12' }))).not.toContain('password');
    expect(JSON.stringify(users.input['~standard'].jsonSchema?.input({ target: 'draft-2020-12' }))).toContain('"x-sensitive":true');
  });

  test('a row that lacks a column is a fault, not a hole in the answer', () => {
    expect(run(users.output, { id: OWNER }).issues).toEqual([{ path: 'email', code: 'required' }]);
  });
});

describe('declarations that are wrong fail at start-up with a sentence', () => {
  test.each<[string, () => Model, RegExp]>([
    ['no primary key', () => model('a', { name: t.text() }), /no primary key: add one, usually id: t\.uuidv7\(\)\.pk\(\)/],
    ['a name that is not snake_case', () => model('Orders', { id: t.uuidv7().pk() }), /names are snake_case/],
    ['a table of the database itself', () => model('pg_orders', { id: t.uuidv7().pk() }), /belong to the database/],
    ['a reserved column', () => model('a', { id: t.uuidv7().pk(), ctid: t.text() }), /column "ctid": the name is reserved/],
    ['a trap of JavaScript objects', () => model('a', { id: t.uuidv7().pk(), constructor: t.text() }), /reserved/],
    [
      'an index on a misspelt column',
      () => model('a', { id: t.uuidv7().pk(), email: t.text() }, { indexes: [{ columns: ['emial'] }] }),
      /did you mean "email"\?/,
    ],
    [
      'a column twice in an index',
      () => model('a', { id: t.uuidv7().pk() }, { indexes: [{ columns: ['id', '-id'] }] }),
      /names a column twice/,
    ],
    [
      'two indexes of one name',
      () => model('a', { id: t.uuidv7().pk() }, { indexes: [{ columns: ['id'] }, { columns: ['-id'] }] }),
      /two indexes/,
    ],
    [
      'an unknown key column',
      () => model('a', { id: t.uuid() }, { primaryKey: ['idd'] }),
      /primary key names an unknown column "idd" \(did you mean "id"\?\)\./,
    ],
    ['a nullable key', () => model('a', { id: t.uuid().nullable() }, { primaryKey: ['id'] }), /cannot be nullable/],
    ['an enum without values', () => model('a', { id: t.uuidv7().pk(), kind: t.enum([]) }), /distinct values/],
    ['a decimal with more scale than precision', () => model('a', { id: t.uuidv7().pk(), price: t.decimal(2, 3) }), /precision/],
    ['an array of JSON', () => model('a', { id: t.uuidv7().pk(), list: t.array(t.json()) }), /use t\.json\(\)/],
    ['something that is no column', () => model('a', { id: t.uuidv7().pk(), name: 'text' as never }), /declare it with t\.text/],
    ['a name PostgreSQL would cut', () => model('a'.repeat(64), { id: t.uuidv7().pk() }), /at most 63/],
  ])('%s', (_name, declare, sentence) => {
    expect(declare).toThrow(sentence);
  });

  test('several faults are reported together', () => {
    expect(() => model('Bad', { Name: t.text() })).toThrow(/snake_case.*column "Name".*no primary key/);
  });

  test('faults between models are found when all of them are known', () => {
    const child = model('children', {
      id: t.uuidv7().pk(),
      user_id: t.ref('user'),
      other: t.ref(() => users, { column: 'password' }),
      gone: t.ref(() => users, { onDelete: 'set null' }),
    });
    expect(modelFaults([users, child])).toEqual([
      'Model "children", column "user_id": references an unknown table "user" (did you mean "users"?).',
      'Model "children", column "other": references "users.password", which is neither the primary key nor unique.',
      'Model "children", column "gone": on delete "set null" needs .nullable().',
    ]);
    expect(modelFaults([users, model('users', { id: t.uuid().pk() })])).toEqual(['Two models are called "users".']);
    expect(modelFaults([users, orders])).toEqual([]);
  });

  test('a reference to a composite key must say which column', () => {
    const pair = model('pairs', { a: t.int().pk(), b: t.int().pk() });
    const child = model('children', { id: t.uuidv7().pk(), pair_id: t.ref(() => pair) });
    expect(modelFaults([pair, child])).toEqual([
      'Model "children", column "pair_id": a reference to "pairs" must name one column: its key is composite.',
    ]);
  });
});

test('a string where a list belongs is refused with what to give', () => {
  expect(() => t.enum('paid' as never)).toThrow('t.enum(): values is "paid"; use a list: [ … ].');
  expect(() => migration('0001_a', 'x' as never)).toThrow('migration("0001_a"): operations is "x"; use a list: [ … ].');
});

test('a reference to something else than a model is refused where it is written', () => {
  for (const target of [users, undefined, '']) expect(() => t.ref(target as never)).toThrow('use a function that returns the model');
});
