import { request as httpRequest } from 'node:http';
import { afterAll, beforeAll, expect, test } from 'vitest';
import * as z from 'zod';
import { byName, people, type Person } from '../../../test/crud/shop.ts';
import type { AuditEntry } from '../../auth/request/audit-sink.ts';
import type { EventEntry } from '../../app/declare/registry.ts';
import { createTable, migration, model, t, timestamps } from '../../db/index.ts';
import { insertMany } from '../../db/rows/repository.ts';
import { isAuthenticated, isStaff } from '../../permissions/index.ts';
import { describeDatabases } from '../../testing/databases.ts';
import { testApp, type TestApp } from '../../testing/test-app.ts';
import { CrudController, one, resource, visibleTo, writableBy } from '../index.ts';

const makers = model('makers', { id: t.uuidv7().pk(), org: t.text(20).readOnly(), name: t.text(100) });
const indexes = [{ columns: ['owner_id', 'sku'], unique: true }];
const things = model(
  'things',
  {
    id: t.uuidv7().pk(),
    owner_id: t.uuid().readOnly(),
    sku: t.text(40),
    title: t.text(2000).nullable(),
    note: t.text(2000).dbDefault('none').nullable(),
    amount: t.int({ min: 0 }).nullable(),
    ratio: t.float().nullable(),
    price: t.decimal(12, 2).nullable(),
    big: t.bigint().nullable(),
    is_new: t.bool().nullable(),
    at: t.timestamp().nullable(),
    day: t.date().nullable(),
    data: t.json().nullable(),
    facts: t.json().dbDefault({}),
    labels: t.array(t.text()).nullable(),
    bytes: t.bytes().nullable(),
    kind: t.enum(['a', 'b', '-c']).dbDefault('a'),
    rank: t.int().dbDefault(0),
    maker_id: t.ref(() => makers).nullable(),
    secret: t.text(100).nullable().sensitive(),
    hidden: t.text(100).nullable(),
    ...timestamps(),
  },
  { indexes },
);
const tables = migration('0001_things', [
  createTable('makers', makers.columns),
  createTable('things', { ...things.columns, maker_id: t.ref('makers').nullable() }, { indexes }),
]);

const makerResource = resource(makers, { tenant: 'org' });
const thingResource = resource(things, {
  owner: 'owner_id',
  relations: { maker: one(() => makers, 'maker_id') },
  fields: { rank: writableBy(isStaff), hidden: visibleTo(isStaff, { hidden: 'null' }) },
  events: true,
});
const options = {
  permission: isAuthenticated,
  ordering: { by: ['sku'], default: ['sku'] },
  expand: ['maker'],
  export: ['csv', 'jsonl'],
  import: { formats: ['csv', 'jsonl'], by: 'sku' },
} as const;
class ThingController extends CrudController(thingResource, options) {}
class MakerController extends CrudController(makerResource, { permission: isAuthenticated }) {}

const hooked = model('hooked', { id: t.uuidv7().pk(), name: t.text(50), upper: t.text(50).readOnly() });
const hookedTable = migration('0001_hooked', [createTable('hooked', hooked.columns)]);
let hookCalls = 0;
const hookedResource = resource(hooked, {
  unscoped: true,
  fields: { upper: visibleTo(isStaff) },
  computed: { shout: { requires: ['upper'], response: z.string(), value: ({ upper }: { upper: string }) => `${upper}!` } },
  hooks: {
    create: async ({ input }, next) => {
      hookCalls += 1;
      return next({ ...input, upper: input.name.toUpperCase() });
    },
  },
});
const coded = model(
  'coded',
  { id: t.uuidv7().pk(), owner_id: t.uuid().readOnly(), code: t.text(20), label: t.text(50).nullable() },
  { indexes: [{ columns: ['owner_id', 'code'], unique: true }] },
);
const codedTable = migration('0001_coded', [
  createTable('coded', coded.columns, { indexes: [{ columns: ['owner_id', 'code'], unique: true }] }),
]);
class CodedController extends CrudController(resource(coded, { owner: 'owner_id', fields: { code: writableBy(isStaff) } }), {
  permission: isAuthenticated,
  export: ['csv'],
  import: { formats: ['csv'], by: 'code' },
}) {}
class HookedController extends CrudController(hookedResource, {
  permission: isAuthenticated,
  import: { formats: ['jsonl'], rowsMax: 100, bytesMax: 5000 },
}) {}

interface Answer {
  readonly status: number;
  // oxlint-disable-next-line typescript/no-explicit-any -- tests look at whatever the server answered
  readonly body: any;
}

describeDatabases('import', (database) => {
  let app: TestApp;
  let address: string;
  const audited: AuditEntry[] = [];
  const published: EventEntry[] = [];

  beforeAll(async () => {
    app = await testApp({
      database: database.db,
      authenticators: [byName],
      tenant: ({ user }) => (user === null ? null : people[user.username as Person].tenant),
      mount: { '/v1': { '/things': ThingController, '/makers': MakerController, '/hooked': HookedController, '/coded': CodedController } },
      modules: [
        { name: 'things', models: [makers, things], migrations: [tables] },
        { name: 'hooked', models: [hooked], migrations: [hookedTable] },
        { name: 'coded', models: [coded], migrations: [codedTable] },
        {
          name: 'recorders',
          provides: () => ({
            audit: { record: async (tx, entries) => tx.afterCommit(() => audited.push(...entries)) },
            events: { publish: async (tx, entries) => tx.afterCommit(() => published.push(...entries)) },
          }),
        },
      ],
    });
    address = await app.app.listen({ port: 0 });
  });
  afterAll(() => app.close());

  const send = async (person: Person, url: string, payload: string | Buffer, type = 'text/csv'): Promise<Answer> => {
    const response = await app.inject({ method: 'POST', url: `/v1/${url}`, headers: { 'x-user': person, 'content-type': type }, payload });
    return { status: response.statusCode, body: response.json() };
  };
  const exported = async (person: Person, query = '') =>
    (await app.inject({ url: `/v1/things/export${query}`, headers: { 'x-user': person } })).body;
  const rows = async (person: Person) =>
    database.db.query<Record<string, unknown>>('select * from things where owner_id = $1 order by sku', [people[person].id]);
  const clear = async () => {
    await database.db.query('delete from things');
    audited.length = published.length = 0;
  };
  const faults = ({ body }: Answer) =>
    (body.errors as { location: (string | number)[]; code: string }[]).map(({ location, code }) => `${location.join('.')} ${code}`);

  test('a row of more than 1,000 columns is 413 before its names are compared; below that, faults stop at their limit', async () => {
    await clear();
    const names = (count: number) => Array.from({ length: count }, (_, index) => `n${index}`);
    const members = (count: number) => JSON.stringify(Object.fromEntries(names(count).map((name) => [name, 1])));
    const started = process.cpuUsage();
    const many = [
      await send('ann', 'things/import', `${names(40_000).join()}\n1\n`),
      await send('ann', 'things/import', `${members(5_000)}\n`, 'application/x-ndjson'),
      // Empty cells have no size, only a number.
      await send('ann', 'things/import', `sku\n${','.repeat(9_000_000)}\n`),
    ];
    expect(many.map(({ status, body }) => [status, body.code, body.columns_max])).toEqual(many.map(() => [413, 'body_too_large', 1_000]));
    // It was half a minute for the header alone, and grew with its square.
    expect(process.cpuUsage(started).user / 1_000).toBeLessThan(5_000);
    for (const [file, type] of [
      [`${names(1_000).join()}\n1\n`, 'text/csv'],
      [`${'sku,'.repeat(999)}sku\n1\n`, 'text/csv'],
      [`${members(1_000)}\n`, 'application/x-ndjson'],
    ] as const) {
      const refused = await send('ann', 'things/import', file, type);
      expect([refused.status, faults(refused).length]).toEqual([422, 50]);
    }
    expect(await rows('ann')).toEqual([]);
  });

  test('CSV and JSON Lines are imported through the create input; known columns that are not input are ignored and listed', async () => {
    await clear();
    const csv = await send('ann', 'things/import', 'sku,amount,id,created_at,title\r\na,1,whatever,x,"two\nlines"\r\nb,,,,""\r\n');
    expect([csv.status, csv.body]).toEqual([201, { created: 2, updated: 0, dry_run: false, ignored: ['id', 'created_at'] }]);
    const jsonl = await send('ann', 'things/import', '{"sku":"c","amount":5,"data":{"x":1}}\n\n{"sku":"d"}', 'application/x-ndjson');
    expect([jsonl.status, jsonl.body.created]).toEqual([201, 2]);
    expect((await rows('ann')).map(({ sku, title, amount, note }) => [sku, title, amount, note])).toEqual([
      ['a', 'two\nlines', 1, 'none'],
      ['b', '', null, 'none'],
      ['c', null, 5, 'none'],
      ['d', null, null, 'none'],
    ]);
    expect([audited.length, published.length, audited[0]?.metadata]).toEqual([4, 4, { via: 'import' }]);
  });

  test("75: =1+1 leaves as '=1+1 and returns as =1+1, a text that starts with ' too", async () => {
    await clear();
    await insertMany(
      database.db,
      things,
      ['=1+1', "'quoted", "'=x", '-5', '+1', '@a', '\ttab', '\nline', "'", 'plain', '＝1', ';=1', "a;'-1", 'x\t＠y'].map(
        (title, index) => ({
          owner_id: people.ann.id,
          sku: `s${index}`,
          title,
        }),
      ),
    );
    const file = await exported('ann', '?fields=sku,title');
    expect(file).toContain(`s0,'=1+1\r\n`);
    const before = await rows('ann');
    await database.db.query('delete from things');
    expect((await send('ann', 'things/import', file)).status).toBe(201);
    expect((await rows('ann')).map(({ title }) => title)).toEqual(before.map(({ title }) => title));
    expect(await exported('ann', '?fields=sku,title')).toHaveLength(file.length);
  });

  test('75: export → import → export is the same on the writable columns, for random rows in both formats', async () => {
    const random = generator(database.dialect === 'sqlite' ? 7 : 8);
    const input = [
      'sku',
      'title',
      'note',
      'amount',
      'ratio',
      'price',
      'big',
      'is_new',
      'at',
      'day',
      'data',
      'facts',
      'labels',
      'bytes',
      'kind',
    ];
    for (const format of ['csv', 'jsonl']) {
      await clear();
      const made = Array.from({ length: 150 }, (_, index) => ({
        owner_id: people.ann.id,
        sku: `${index}`.padStart(4, '0'),
        ...random.row(),
      }));
      await insertMany(database.db, things, made);
      const query = `?format=${format}&fields=${input.join()}`;
      const first = await exported('ann', query);
      await database.db.query('delete from things');
      const answer = await send('ann', 'things/import', first, format === 'csv' ? 'text/csv' : 'application/x-ndjson');
      expect([format, answer.status, answer.body]).toEqual([format, 201, { created: 150, updated: 0, dry_run: false, ignored: ['id'] }]);
      const withoutKeys = (text: string) => text.replaceAll(/[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}/g, 'key');
      expect(withoutKeys(await exported('ann', query))).toBe(withoutKeys(first));
    }
  });

  test('75: the whole export of a caller is imported again, columns included that it may not write: they stay as they are', async () => {
    for (const [format, type] of [
      ['csv', 'text/csv'],
      ['jsonl', 'application/x-ndjson'],
    ] as const) {
      await clear();
      await insertMany(database.db, things, [
        { owner_id: people.ann.id, sku: 'a', title: 'one', rank: 3, hidden: 'x' },
        { owner_id: people.ann.id, sku: 'b', title: 'two' },
      ]);
      const file = await exported('ann', `?format=${format}`);
      expect(file).toMatch(/rank/);
      const again = await send('ann', 'things/import?mode=upsert', file.replace('one', 'new'), type);
      expect([format, again.status, again.body.updated, again.body.ignored]).toEqual([
        format,
        201,
        2,
        expect.arrayContaining(['id', 'rank']),
      ]);
      const kept = [
        ['new', 3, 'x'],
        ['two', 0, null],
      ];
      const stored = async () => (await rows('ann')).map(({ title, rank, hidden }) => [title, rank, hidden]);
      expect(await stored()).toEqual(kept);
      // A new row has the default: any other value would be written.
      await database.db.query(`delete from things where sku = 'a'`);
      const made = await send('ann', 'things/import?mode=upsert', file, type);
      expect([made.status, made.body.fields]).toEqual([403, ['rank']]);
      expect(await stored()).toEqual([kept[1]]);
      await database.db.query(`delete from things`);
      const plain = await send('ann', 'things/import', format === 'csv' ? 'sku,rank\nc,0\n' : '{"sku":"c","rank":0}', type);
      expect([plain.status, plain.body.ignored]).toEqual([201, ['rank']]);
    }
  });

  test('75: rows are found by a column that the caller may not write, and keep it', async () => {
    await insertMany(database.db, coded, [{ owner_id: people.ann.id, code: 'c1', label: 'old' }]);
    const again = await send('ann', 'coded/import?mode=upsert', 'code,label\nc1,new\n');
    expect([again.status, again.body]).toEqual([201, { created: 0, updated: 1, dry_run: false, ignored: ['code'] }]);
    const made = await send('ann', 'coded/import?mode=upsert', 'code,label\nc1,newer\nc2,x\n');
    expect([made.status, made.body.fields]).toEqual([403, ['code']]);
    expect(await database.db.query('select code, label from coded')).toEqual([{ code: 'c1', label: 'new' }]);
  });

  test('75: a column that the caller gets as null is not compared: a guess and a miss have one answer', async () => {
    await clear();
    await insertMany(database.db, things, [{ owner_id: people.ann.id, sku: 'a', hidden: 'x' }]);
    const guess = (text: string) => send('ann', 'things/import?mode=upsert', `sku,hidden\na,${text}\n`);
    const [hit, miss, empty] = [await guess('x'), await guess('y'), await guess('')];
    expect([hit.status, { ...hit.body, request_id: null }]).toEqual([403, { ...miss.body, request_id: null }]);
    expect([empty.status, (await rows('ann'))[0]?.['hidden']]).toEqual([201, 'x']);
  });

  test('77: faults name row and column, all at once up to 50, and nothing is written', async () => {
    await clear();
    const lines = Array.from({ length: 9_999 }, (_, index) => `s${index},${index === 9_997 ? 'many' : 1}`);
    const late = await send('ann', 'things/import', `sku,amount\n${lines.join('\n')}\n`);
    expect([late.status, faults(late)]).toEqual([422, ['body.9999.amount invalid_type']]);
    const several = await send('ann', 'things/import', 'sku,amount,nope,data,amount\nx,-1,,,1\n,1,,{,1\ny\n');
    expect(faults(await send('ann', 'things/import', 'sku\na\n"z'))).toEqual(['body.3 invalid']);
    expect([several.status, faults(several)]).toEqual([
      422,
      ['body.1.nope unknown_field', 'body.1.amount duplicate', 'body.3.data invalid', 'body.3.sku required', 'body.4 invalid'],
    ]);
    const many = await send('ann', 'things/import', `sku,amount\n${Array.from({ length: 80 }, () => 'x,many').join('\n')}`);
    expect(faults(many)).toHaveLength(50);
    for (const [text, type] of [
      ['{"sku":1}', 'application/x-ndjson'],
      ['[]', 'application/x-ndjson'],
      ['{"sku":"a","__proto__":{}}', 'application/x-ndjson'],
      ['{"sku":"a"}\n{"error":{"code":"internal_error"}}', 'application/x-ndjson'],
    ] as const)
      expect([text, (await send('ann', 'things/import', text, type)).status]).toEqual([text, 422]);
    expect((await send('ann', 'things/import', Buffer.from([0x73, 0x6b, 0x75, 0x0a, 0xff]))).status).toBe(400);
    expect(await rows('ann')).toEqual([]);
    expect(audited).toEqual([]);
  });

  test('lines of a CSV file end with CR LF, LF or CR, also in one file; empty lines are no rows and are counted', async () => {
    await clear();
    const file = 'sku,title\na,one\r\nb,"two\r\nlines"\rc,three\n\r\nd,\r\n';
    expect((await send('ann', 'things/import', file)).body).toMatchObject({ created: 4 });
    expect((await rows('ann')).map(({ sku, title }) => [sku, title])).toEqual([
      ['a', 'one'],
      ['b', 'two\r\nlines'],
      ['c', 'three'],
      ['d', null],
    ]);
    expect(faults(await send('ann', 'things/import', 'sku,amount\n\ne,1\n\r\n\nf,many\n'))).toEqual(['body.6.amount invalid_type']);
    expect(faults(await send('ann', 'things/import', 'sku,amount\n\ne,1\n\nf,"1\n'))).toEqual(['body.5 invalid']);
    expect(faults(await send('ann', 'things/import', '{"sku":"e"}\n\n\n{"sku":1}\n', 'application/x-ndjson'))).toEqual([
      'body.4.sku invalid_type',
    ]);
  });

  test('JSON of a file is read as strictly as a body: nesting, keys given twice, keys of prototypes, numbers out of range', async () => {
    await clear();
    const deep = (levels: number) => '['.repeat(levels) + ']'.repeat(levels);
    const lines = [
      ['{"sku":"a","sku":"b"}', 'body.1.sku invalid'],
      ['{"sku":"a","data":{"x":1,"x":2}}', 'body.1.data.x invalid'],
      ['{"sku":"a","data":{"__proto__":{"is_staff":true}}}', 'body.1.data.__proto__ invalid'],
      ['{"sku":"a","data":{"constructor":1}}', 'body.1.data.constructor invalid'],
      ['{"sku":"a","data":{"x":1e999}}', 'body.1.data.x invalid'],
      [`{"sku":"a","data":${deep(32)}}`, 'body.1 invalid'],
      [`{"sku":"a","data":${deep(100_000)}}`, 'body.1 invalid'],
    ] as const;
    for (const [line, fault] of lines) {
      const refused = await send('ann', 'things/import', line, 'application/x-ndjson');
      expect([line.slice(0, 60), refused.status, faults(refused)]).toEqual([line.slice(0, 60), 422, [fault]]);
    }
    for (const cell of ['{"x":1,"x":2}', '{"__proto__":1}', '{"x":1e999}', deep(32), deep(100_000)]) {
      const refused = await send('ann', 'things/import', `sku,data\na,"${cell.replaceAll('"', '""')}"\n`);
      expect([cell.slice(0, 60), refused.status, faults(refused)]).toEqual([cell.slice(0, 60), 422, ['body.2.data invalid']]);
      expect(JSON.stringify(refused.body)).not.toContain('stack');
    }
    expect(await rows('ann')).toEqual([]);
    expect((await send('ann', 'things/import', `sku,data\na,"${deep(31)}"\n`)).status).toBe(201);
    expect((await send('ann', 'things/import', `{"sku":"b","data":${deep(31)}}`, 'application/x-ndjson')).status).toBe(201);
  });

  test('77: dry_run does everything, hooks too, and leaves no row, event or audit entry', async () => {
    await clear();
    const answer = await send('ann', 'things/import?dry_run=true', 'sku\na\nb\n');
    expect([answer.status, answer.body]).toEqual([200, { created: 2, updated: 0, dry_run: true, ignored: [] }]);
    hookCalls = 0;
    const withHook = await send('ann', 'hooked/import?dry_run=true', '{"name":"x"}', 'application/x-ndjson');
    expect([withHook.status, hookCalls]).toEqual([200, 1]);
    expect(await rows('ann')).toEqual([]);
    expect(await database.db.query('select * from hooked')).toEqual([]);
    expect([audited, published]).toEqual([[], []]);
    await send('ann', 'hooked/import', '{"name":"x"}', 'application/x-ndjson');
    expect(await database.db.query('select upper from hooked')).toEqual([{ upper: 'X' }]);
  });

  test('5: a reference to a row of another tenant is unknown, at its row', async () => {
    await clear();
    const [own, foreign] = await insertMany(database.db, makers, [
      { org: 'north', name: 'n' },
      { org: 'south', name: 's' },
    ]);
    const refused = await send('ann', 'things/import', `sku,maker_id\na,${own!.id}\nb,${foreign!.id}\n`);
    expect([refused.status, faults(refused)]).toEqual([422, ['body.3.maker_id unknown_reference']]);
    expect((await send('ann', 'things/import', `sku,maker_id,maker.name\na,${own!.id},ignored\n`)).body).toMatchObject({
      created: 1,
      ignored: ['maker.name'],
    });
  });

  test('35: a column the caller may not write is 403 with its name; staff may', async () => {
    await clear();
    const refused = await send('ann', 'things/import', 'sku,rank\na,5\n');
    expect([refused.status, refused.body.fields]).toEqual([403, ['rank']]);
    expect((await send('ann', 'things/import', '{"sku":"a","rank":5}', 'application/x-ndjson')).status).toBe(403);
    expect(faults(await send('ann', 'things/import', 'sku,hiddn\na,5\n'))).toEqual(['body.1.hiddn unknown_field']);
    expect((await send('sue', 'things/import', 'sku,rank\na,5\n')).status).toBe(201);
  });

  test('32: a computed field that the caller does not see is as unknown as a misspelling; staff may have it in the file', async () => {
    const line = (name: string) => `{"name":"x","${name}":"y"}`;
    const sent = async (person: Person, name: string) => send(person, 'hooked/import?dry_run=true', line(name), 'application/x-ndjson');
    const [hidden, unknown] = [await sent('ann', 'shout'), await sent('ann', 'shoud')];
    expect([hidden.status, faults(hidden)]).toEqual([422, ['body.1.shout unknown_field']]);
    expect([unknown.status, faults(unknown)]).toEqual([422, ['body.1.shoud unknown_field']]);
    expect((await sent('sue', 'shout')).body.ignored).toEqual(['shout']);
  });

  test("upsert changes the caller's row with the same key and makes the others; a foreign one is neither seen nor changed", async () => {
    await clear();
    await insertMany(database.db, things, [
      { owner_id: people.ann.id, sku: 'a', title: 'old', amount: 1 },
      { owner_id: people.bob.id, sku: 'b', title: 'bobs' },
    ]);
    const answer = await send('ann', 'things/import?mode=upsert', 'sku,title\na,new\nb,mine\n');
    expect([answer.status, answer.body]).toEqual([201, { created: 1, updated: 1, dry_run: false, ignored: [] }]);
    expect((await rows('ann')).map(({ sku, title, amount }) => [sku, title, amount])).toEqual([
      ['a', 'new', 1],
      ['b', 'mine', null],
    ]);
    expect((await rows('bob')).map(({ title }) => title)).toEqual(['bobs']);
    expect(faults(await send('ann', 'things/import?mode=upsert', 'sku,title\na,1\na,2\n'))).toEqual(['body.3.sku duplicate']);
    const twice = await send('ann', 'things/import', 'sku\nnew\na\n');
    expect([twice.status, faults(twice)]).toEqual([409, ['body.3.sku not_unique']]);
    expect((await rows('ann')).length).toBe(2);
    expect((await send('ann', 'hooked/import?mode=upsert', '{"name":"x"}', 'application/x-ndjson')).status).toBe(422);
  });

  test('of upserts of a new value at once one makes the row and the others change it, with keys of requests and without', async () => {
    await clear();
    const all = await Promise.all(
      Array.from({ length: 8 }, (_, index) =>
        app.inject({
          method: 'POST',
          url: '/v1/things/import?mode=upsert',
          headers: { 'x-user': 'ann', 'content-type': 'text/csv', ...(index % 2 === 0 ? { 'idempotency-key': `upsert-${index}` } : {}) },
          payload: `sku,amount\nraced,${index}\n`,
        }),
      ),
    );
    const results = all.map((response) => [response.statusCode, response.json().created, response.json().updated].join());
    expect(results.toSorted()).toEqual(['201,0,1', '201,0,1', '201,0,1', '201,0,1', '201,0,1', '201,0,1', '201,0,1', '201,1,0']);
    expect((await rows('ann')).map(({ sku }) => sku)).toEqual(['raced']);
  });

  test('a form with a file is imported; the name or media type says the format', async () => {
    await clear();
    const form = async (name: string, type: string, text: string, field = 'file') => {
      const body = new FormData();
      body.append(field, new Blob([text], { type }), name);
      const response = await fetch(`${address}/v1/things/import`, { method: 'POST', headers: { 'x-user': 'ann' }, body });
      return { status: response.status, body: await response.json() } as Answer;
    };
    expect((await form('x.csv', 'application/octet-stream', 'sku\na\n')).body).toMatchObject({ created: 1 });
    expect((await form('x.jsonl', 'application/octet-stream', '{"sku":"b"}')).body).toMatchObject({ created: 1 });
    expect((await form('x', 'application/x-ndjson', '{"sku":"c"}')).body).toMatchObject({ created: 1 });
    expect(faults(await form('x.csv', 'text/csv', 'sku\na\n', 'upload'))).toEqual(['body.upload unknown_field', 'body.file required']);
  });

  test('78: a body over the limit is 413 before the rest is read; so are too many rows', async () => {
    // The request is never ended: the answer does not wait for the rest.
    const status = await new Promise<number | undefined>((resolve, reject) => {
      const headers = { 'x-user': 'ann', 'content-type': 'text/csv' };
      const sending = httpRequest(`${address}/v1/things/import`, { method: 'POST', headers }, (response) => {
        response.resume();
        resolve(response.statusCode);
        sending.destroy();
      });
      sending.on('error', reject);
      const line = `sku,${'x'.repeat(1500)}\n`;
      const head = 'sku,title\n';
      const text = head + line.repeat(Math.ceil((10 * 1024 * 1024) / line.length));
      sending.write(text.slice(0, 10 * 1024 * 1024 + 1));
    });
    expect(status).toBe(413);
    const manyRows = await send('ann', 'things/import', `sku\n${Array.from({ length: 10_001 }, (_, index) => index).join('\n')}`);
    expect([manyRows.status, manyRows.body.rows_max]).toEqual([413, 10_000]);
    expect((await send('ann', 'hooked/import', '{"name":"x"}\n'.repeat(101), 'application/x-ndjson')).status).toBe(413);
    expect((await send('ann', 'hooked/import', ' '.repeat(5001), 'application/x-ndjson')).status).toBe(413);
    expect((await send('ann', 'hooked/import', '{}', 'text/csv')).status).toBe(415);
  });

  test('79: other reads are answered while an import of 10,000 rows runs, none waiting for its end', async () => {
    await clear();
    await insertMany(database.db, things, [{ owner_id: people.bob.id, sku: 'b' }]);
    const lines = Array.from({ length: 10_000 }, (_, index) => `sku-${index},${index},some title`);
    const progress = { isOver: false };
    const importing = send('ann', 'things/import', `sku,amount,title\n${lines.join('\n')}`).finally(() => (progress.isOver = true));
    let meanwhile = 0;
    while (!progress.isOver) {
      const listed = await fetch(`${address}/v1/things`, { headers: { 'x-user': 'bob' } });
      expect(((await listed.json()) as { items: unknown[] }).items).toHaveLength(1);
      if (!progress.isOver) meanwhile += 1;
    }
    expect((await importing).body).toMatchObject({ created: 10_000 });
    expect(meanwhile).toBeGreaterThan(20);
    expect(await database.db.query('select count(*) as count from things')).toEqual([{ count: 10_001 }]);
  }, 60_000);

  test('83: an import by a column that is no input, or not unique, stops the start', async () => {
    const faultsOf = async (by: string) => {
      class Wrong extends CrudController(thingResource, { ...options, import: { formats: ['csv'], by: by as 'sku' } }) {}
      const started = testApp({
        database: database.db,
        authenticators: [byName],
        tenant: () => 'north',
        mount: { '/v1': { '/things': Wrong, '/makers': MakerController } },
      });
      return started.then(
        async (each) => {
          await each.close();
          return [];
        },
        (error: { faults: { id: string; message: string }[] }) => error.faults.map(({ id, message }) => `${id} ${message}`),
      );
    };
    expect(await faultsOf('skew')).toEqual([expect.stringMatching(/^E012 .*"skew"/)]);
    expect(await faultsOf('title')).toEqual([expect.stringMatching(/^E014 .*"title"/)]);
    expect(await faultsOf('id')).toEqual([expect.stringMatching(/^E012 .*"id"/)]);
  });
});

/** Random rows from a seed: every kind of column, with values that file formats stumble over. */
function generator(seed: number) {
  let state = seed;
  const next = (max: number) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state % max;
  };
  const pieces = [
    'a',
    'Z',
    ' ',
    ',',
    '"',
    '""',
    "'",
    '=',
    '+',
    '-',
    '@',
    '＝',
    '\t',
    '\r',
    '\n',
    '\r\n',
    ';',
    'é',
    '💥',
    '\u2028',
    '\\',
    '{',
    ']',
    'null',
    '0',
    '﻿',
  ];
  const text = () => Array.from({ length: next(6) }, () => pieces[next(pieces.length)]).join('');
  const json = (): unknown => [null, true, 5, -1.5, text(), [text(), 1], { [`k${next(3)}`]: text(), deep: { x: [null] } }][next(7)];
  const maybe = <V>(value: () => V) => (next(5) === 0 ? null : value());
  const row = () => ({
    title: maybe(text),
    note: maybe(text),
    amount: maybe(() => next(1000)),
    ratio: maybe(() => (next(2_000_000) - 1_000_000) / 7),
    price: maybe(() => `${next(2) === 0 ? '-' : ''}${1 + next(9999)}.${String(next(100)).padStart(2, '0')}`),
    big: maybe(() => BigInt(next(1_000_000)) * 9_007_199_254_741n * (next(2) === 0 ? -1n : 1n)),
    is_new: maybe(() => next(2) === 0),
    at: maybe(() => new Date(next(2_000_000_000) * 1000 + next(1000))),
    day: maybe(() => `20${10 + next(80)}-0${1 + next(9)}-1${next(9)}`),
    data: maybe(() => json() ?? { x: null }),
    facts: json(),
    labels: maybe(() => Array.from({ length: next(3) }, text)),
    bytes: maybe(() => new Uint8Array(Array.from({ length: next(20) }, () => next(256)))),
    kind: (['a', 'b', '-c'] as const)[next(3)]!,
  });
  return { row };
}
