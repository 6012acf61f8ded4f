import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { AdminApp, type Browser } from '../../test/admin/admin-app.ts';
import { untilSomebodyWaits } from '../../test/admin/lock-wait.ts';
import type { Module } from '../app/index.ts';
import { users } from '../contrib/accounts/index.ts';
import { createTable, insert, migration, model, softDelete, t, timestamps, update } from '../db/index.ts';
import { describeDatabases } from '../testing/databases.ts';
import { modelResource } from './screen.ts';
import { auditLog } from '../../test/audit-log.ts';

const shelfColumns = { id: t.uuidv7().pk(), name: t.text({ min: 1, max: 50 }).unique() };
const shelves = model('shelves', shelfColumns);
const bookColumns = {
  id: t.uuidv7().pk(),
  title: t.text({ min: 1, max: 100 }),
  isbn: t.text(20).unique(),
  price: t.decimal(10, 2),
  pages: t.int({ min: 1 }).nullable(),
  status: t.enum(['draft', 'printed']).dbDefault('draft'),
  signed: t.bool().dbDefault(false),
  tags: t.array(t.text()).nullable(),
  extra: t.json().nullable(),
  published_on: t.date().nullable(),
  vault_code: t.text(40).nullable().sensitive(),
  editor_note: t.text(100).nullable().readOnly(),
  ...timestamps(),
  ...softDelete(),
};
const books = model('books', { ...bookColumns, shelf_id: t.ref(() => shelves).nullable(), owner_id: t.ref(() => users).nullable() });

const parcelColumns = {
  id: t.int().pk(),
  label: t.text(20),
  weight: t.decimal(8, 2),
  packed_on: t.date(),
  packed_at: t.timestamp(),
  pieces: t.int(),
  fragile: t.float(),
};
const parcels = model('parcels', parcelColumns);
const letters = model('letters', { id: t.uuidv7().pk(), body: t.text() });
const meterColumns = { id: t.bigint().pk(), label: t.text(20) };
const meters = model('meters', meterColumns);

const library: Module = {
  name: 'library',
  requires: ['accounts'],
  models: [shelves, books, parcels, meters, letters],
  migrations: [
    migration('0001_initial', [
      createTable('shelves', shelfColumns),
      createTable('books', { ...bookColumns, shelf_id: t.ref('shelves').nullable(), owner_id: t.ref('users').nullable() }),
      createTable('parcels', parcelColumns),
      createTable('meters', meterColumns),
      createTable('letters', letters.columns),
    ]),
  ],
  admin: {
    resources: [
      modelResource(shelves),
      modelResource(books, { singular: 'book' }),
      modelResource(books, { name: 'archive', readOnly: true }),
      modelResource(parcels, { columns: Object.keys(parcelColumns) }),
      modelResource(meters),
      modelResource(letters, { columns: ['body'] }),
    ],
  },
};

describeDatabases('a model of your own in the admin site', (database) => {
  let site: AdminApp;
  let staff: Browser;
  let isbns = 0;

  beforeAll(async () => {
    site = await new AdminApp(database.db, [library]).ready();
    staff = await site.browser();
  });
  afterAll(() => site.close());

  const create = (fields: object) => {
    isbns += 1;
    return site.send(staff, 'POST', 'resources/books', { title: 'Emma', isbn: `isbn-${isbns}`, price: '9.50', ...fields });
  };
  const created = async (fields: object = {}): Promise<string> => (await create(fields)).body.id;
  const titles = async (query: string): Promise<string[]> =>
    (await site.get(staff, `resources/books?${query}`)).body.items.map((item: { title: string }) => item.title);
  const read = async (id: string) => (await site.get(staff, `resources/books/${id}`)).body;

  test('gets columns, filters, search and a form from its declaration; sensitive and read-only columns are no field', async () => {
    const shape = (await site.get(staff, 'session')).body.site.resources.find((each: { name: string }) => each.name === 'books');
    expect(shape).toMatchObject({
      label: 'Books',
      singular: 'book',
      group: 'Data',
      editable: true,
      removable: true,
      searches: 'title, isbn or editor note',
    });
    const filters = shape.filters.map((filter: { name: string }) => filter.name);
    // Choices and references come first, then every other column that has one value.
    expect(filters.slice(0, 4)).toEqual(['status', 'signed', 'shelf_id', 'owner_id']);
    expect(filters).toEqual(expect.arrayContaining(['title', 'price', 'pages', 'published_on', 'deleted']));
    for (const unfit of ['id', 'tags', 'extra', 'deleted_at', 'deletion_id']) expect(filters).not.toContain(unfit);
    const fields = Object.fromEntries(shape.creation.fields.map((field: { name: string }) => [field.name, field]));
    expect(Object.keys(fields)).toEqual([
      'title',
      'isbn',
      'price',
      'pages',
      'status',
      'signed',
      'tags',
      'extra',
      'published_on',
      'shelf_id',
      'owner_id',
    ]);
    expect(fields).toMatchObject({
      title: { kind: 'text', required: true, maxLength: 100 },
      pages: { kind: 'number', nullable: true },
      status: { kind: 'select', choices: [{ value: 'draft' }, { value: 'printed' }] },
      tags: { kind: 'strings' },
      extra: { kind: 'json' },
      published_on: { kind: 'date' },
    });
    expect(JSON.stringify(shape)).not.toContain('vault_code');
  });

  test('a search that is longer than a unique column can be looks into the other columns', async () => {
    const title = 'Of the Rise and Progress of the Arts and Sciences';
    const answer = await create({ title });
    expect(answer.status).toBe(201);
    expect(await titles(`search=${encodeURIComponent(title)}`)).toEqual([title]);
    expect(await titles('search=a+book+that+nobody+has+written+yet')).toEqual([]);
    await site.send(staff, 'DELETE', `resources/books/${answer.body.id}`);
  });

  test('a filter by a reference takes an id; for anything else the response says which filter is wrong', async () => {
    const wrong = await site.get(staff, 'resources/books?filter.shelf_id=Fiction');
    expect(wrong).toMatchObject({
      status: 422,
      body: { errors: [{ location: ['query', 'filter.shelf_id'], message: 'Use the id of a record.' }] },
    });
    const unknown = await site.get(staff, 'resources/books?filter.shelf_id=019b0000-0000-7000-8000-000000000000');
    expect(unknown).toMatchObject({ status: 200, body: { items: [] } });
  });

  test('records are created, read, edited and removed, each recorded with what was before and after', async () => {
    const shelf = (await site.send(staff, 'POST', 'resources/shelves', { name: 'Fiction' })).body.id;
    const answer = await create({
      title: 'Persuasion',
      tags: ['novel'],
      extra: { a: 1 },
      pages: 240,
      published_on: '1817-12-20',
      shelf_id: shelf,
      owner_id: staff.userId,
    });
    expect(answer).toMatchObject({ status: 201, body: { message: 'Persuasion created.' } });
    const { id } = answer.body;
    const before = await read(id);
    expect(before.values).toMatchObject({
      title: 'Persuasion',
      price: '9.50',
      status: { value: 'draft' },
      signed: false,
      tags: ['novel'],
      shelf_id: { resource: 'shelves', id: shelf, text: 'Fiction' },
      owner_id: { resource: 'users', id: staff.userId, text: expect.stringMatching(/^user/) },
    });
    const listed = (await site.get(staff, 'resources/books?search=Persuasion')).body.items[0];
    expect(listed.values.shelf_id).toEqual({ resource: 'shelves', id: shelf, text: 'Fiction' });
    await site.send(staff, 'PATCH', `resources/books/${id}`, { price: '10.00', pages: null, status: 'printed' });
    const after = await read(id);
    expect(after.form.values).toMatchObject({ price: '10.00', pages: null, status: 'printed' });
    const [newest] = after.sections.at(-1).entries;
    expect(newest.title).toBe('Books updated');
    expect(newest.changes.map(({ name }: { name: string }) => name)).toEqual(expect.arrayContaining(['pages', 'price', 'status']));
    expect((await site.send(staff, 'DELETE', `resources/books/${id}`)).body.message).toBe('Persuasion deleted.');
    expect(await titles('search=Persuasion')).toEqual([]);
    expect(await titles('search=Persuasion&filter.deleted=yes')).toEqual(['Persuasion']);
    const removed = await read(id);
    expect(removed.form).toBeUndefined();
    expect(removed.sections.at(-1).entries[0].title).toBe('Books deleted');
  });

  test.each([
    ['title', { title: '' }, 'required'],
    ['title', { title: 'x'.repeat(101) }, 'too_big'],
    ['price', { price: 'cheap' }, 'invalid_format'],
    ['pages', { pages: 0 }, 'too_small'],
    ['pages', { pages: 'many' }, 'invalid_type'],
    ['status', { status: 'lost' }, 'invalid_value'],
    ['published_on', { published_on: '2026-02-30' }, 'invalid_format'],
    ['vault_code', { vault_code: 'x' }, 'unknown_field'],
    ['editor_note', { editor_note: 'x' }, 'unknown_field'],
    ['id', { id: '019b0000-0000-7000-8000-000000000000' }, 'unknown_field'],
    ['shelf_id', { shelf_id: '019b0000-0000-7000-8000-000000000000' }, 'unknown_reference'],
    ['shelf_id', { shelf_id: 'nowhere' }, 'invalid_format'],
  ])('a faulty %s in %j is a 422 at the field', async (field, given, code) => {
    const answer = await create(given);
    expect(answer).toMatchObject({ status: 422, body: { errors: [{ location: ['body', field], code: expect.any(String) }] } });
    expect(answer.body.errors[0].code).toBe(code);
  });

  test('a value that another record has is a 409 at the field, in create and edit, and nothing is recorded', async () => {
    const [one, two] = [await created({ isbn: 'taken' }), await created({ isbn: 'free' })];
    for (const answer of [await create({ isbn: 'taken' }), await site.send(staff, 'PATCH', `resources/books/${two}`, { isbn: 'taken' })])
      expect(answer).toMatchObject({
        status: 409,
        body: { code: 'conflict', errors: [{ location: ['body', 'isbn'], code: 'not_unique' }] },
      });
    expect((await read(two)).sections.at(-1).entries).toHaveLength(1);
    expect(one).not.toBe(two);
  });

  test('a record that others refer to is not removed, and the answer says why', async () => {
    const shelf = (await site.send(staff, 'POST', 'resources/shelves', { name: 'Busy' })).body.id;
    await created({ shelf_id: shelf });
    expect(await site.send(staff, 'DELETE', `resources/shelves/${shelf}`)).toMatchObject({
      status: 409,
      body: { code: 'still_referenced' },
    });
    expect((await site.get(staff, `resources/shelves/${shelf}`)).status).toBe(200);
  });

  test('the list is ordered by every kind of column and paged without gaps', async () => {
    for (const [title, price, pages] of [
      ['sort-a', '9.00', 3],
      ['sort-b', '100.00', null],
      ['sort-c', '20.00', 1],
      ['sort-d', '-1.00', null],
    ] as const)
      await created({ title, price, pages });
    expect(await titles('search=sort-&sort=price')).toEqual(['sort-d', 'sort-a', 'sort-c', 'sort-b']);
    expect((await titles('search=sort-&sort=-pages')).slice(0, 2)).toEqual(['sort-a', 'sort-c']);
    for (const sort of ['title', '-title', 'price', '-price', 'pages', '-pages', 'status', '-published_on']) {
      const walked: string[] = [];
      for (let cursor: string | null = ''; cursor !== null;) {
        const answer = await site.get(staff, `resources/books?search=sort-&limit=1&sort=${sort}&cursor=${cursor}`);
        expect(answer.status).toBe(200);
        walked.push(...answer.body.items.map((item: { title: string }) => item.title));
        cursor = answer.body.next;
      }
      expect(walked).toEqual(await titles(`search=sort-&sort=${sort}`));
      expect(new Set(walked).size).toBe(4);
    }
    expect(await titles('filter.status=printed&search=sort-')).toEqual([]);
    expect(await titles('filter.signed=no&search=sort-')).toHaveLength(4);
  });

  test('a list is ordered by long texts, too, and paged without gaps: they do not fit into a cursor', async () => {
    const made: string[] = [];
    for (const [end, character] of ['a', '字', '😀', '\u0001', 'a'].entries())
      made.push((await site.send(staff, 'POST', 'resources/letters', { body: `${character.repeat(3000)}${end}` })).body.id as string);
    for (const sort of ['body', '-body']) {
      const walked: string[] = [];
      for (let cursor: string | null = ''; cursor !== null;) {
        const { status, body } = await site.get(staff, `resources/letters?limit=1&sort=${sort}&cursor=${cursor}`);
        expect(status).toBe(200);
        walked.push(...body.items.map((item: { id: string }) => item.id));
        cursor = body.next;
      }
      expect(walked.toSorted()).toEqual(made.toSorted());
    }
  });

  describe('numbers as keys', () => {
    const walk = async (list: string, sort: string): Promise<string[]> => {
      const walked: string[] = [];
      for (let cursor: string | null = ''; cursor !== null;) {
        const { status, body } = await site.get(staff, `resources/${list}?limit=1&sort=${sort}&cursor=${cursor}`);
        expect(status).toBe(200);
        walked.push(...body.items.map((item: { id: string }) => item.id));
        cursor = body.next;
      }
      return walked;
    };

    test('negative and very large ones are paged and read', async () => {
      const rest = { label: 'p', weight: '1.50', packed_on: '2026-01-31', packed_at: site.clock.now(), pieces: 2, fragile: 0.5 };
      for (const id of [-5, 1, 2_147_483_647]) await insert(database.db, parcels, { id, ...rest });
      for (const id of [-7n, 1n, 2n ** 63n - 1n]) await insert(database.db, meters, { id, label: 'm' });
      for (const sort of Object.keys(parcelColumns)) expect(await walk('parcels', sort)).toEqual(['-5', '1', '2147483647']);
      expect(await walk('meters', '')).toEqual(['9223372036854775807', '1', '-7']);
      for (const path of ['parcels/-5', 'meters/-7', 'meters/9223372036854775807'])
        expect((await site.get(staff, `resources/${path}`)).status).toBe(200);
    });

    test.each(['x', '1.5', '99999999999', '9223372036854775808', '-9223372036854775809', '9'.repeat(100)])(
      'the id %s is that of no record',
      async (id) => {
        for (const list of ['parcels', 'meters']) expect((await site.get(staff, `resources/${list}/${id}`)).status).toBe(404);
      },
    );
  });

  test('a cursor that was tampered with is a 422 for every column and never reaches the database', async () => {
    const values = [
      1.5,
      1e300,
      2 ** 31,
      '',
      'x',
      '\0',
      '\ud800',
      '2026-02-30',
      '0000-01-01',
      '+275760-09-13T00:00:00.000Z',
      'NaN',
      '9'.repeat(30),
    ];
    const cursors = [
      ...values.map((value) => [value, '1']),
      ...['99999999999', '9'.repeat(30), '1.5', 'x'].map((id) => [null, id]),
      {},
      null,
      'ab',
      [[], '1'],
      [{ a: 1 }, '1'],
    ];
    for (const sort of ['', ...Object.keys(parcelColumns)])
      for (const cursor of cursors) {
        const text = Buffer.from(JSON.stringify(cursor)).toString('base64url');
        const { status } = await site.get(staff, `resources/parcels?sort=${sort}&cursor=${text}`);
        expect(status).toBe(422);
      }
    const answer = await site.get(staff, `resources/parcels?sort=packed_on&cursor=${Buffer.from('["x","1"]').toString('base64url')}`);
    expect(answer).toMatchObject({ status: 422, body: { errors: [{ location: ['query', 'cursor'] }] } });
  });

  test('the entry of a change names the record as its page does, however its id was written', async () => {
    const id = await created({ title: 'Capitals' });
    expect((await site.send(staff, 'PATCH', `resources/books/${id.toUpperCase()}`, { title: 'Capitals 2' })).status).toBe(200);
    const history = (await read(id)).sections.at(-1).entries.map((entry: { title: string }) => entry.title);
    expect(history).toEqual(['Books updated', 'Books created']);
  });

  test('the entry of a change has what was changed and nothing that another request changed meanwhile', async () => {
    const id = await created({ title: 'Contested' });
    const other = await database.open();
    let answer: Promise<{ readonly status: number }> | undefined;
    await other.transaction(async (tx) => {
      await update(tx, books, id, { pages: 7 });
      answer = site.send(staff, 'PATCH', `resources/books/${id}`, { price: '11.00' });
      await untilSomebodyWaits(tx);
    });
    expect((await answer)?.status).toBe(200);
    const record = await read(id);
    expect(record.form.values).toMatchObject({ pages: 7, price: '11.00' });
    expect(record.sections.at(-1).entries[0].changes.map(({ name }: { name: string }) => name)).not.toContain('pages');
  });

  test('of several who remove a record at once, one does', async () => {
    const id = await created({ title: 'Wanted gone' });
    const answers = await Promise.all(Array.from({ length: 6 }, () => site.send(staff, 'DELETE', `resources/books/${id}`)));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
    expect(answers.filter(({ body }) => body.code === 'not_removable')).toHaveLength(5);
    const entries = await auditLog(database.db, { action: 'books.deleted', target_id: id });
    expect(entries).toHaveLength(1);
  });

  test('a read-only list can only be read', async () => {
    const id = await created();
    expect((await site.get(staff, `resources/archive/${id}`)).body.form).toBeUndefined();
    expect((await site.send(staff, 'POST', 'resources/archive', {})).status).toBe(409);
    expect((await site.send(staff, 'PATCH', `resources/archive/${id}`, { title: 'x' })).status).toBe(409);
    expect((await site.send(staff, 'DELETE', `resources/archive/${id}`)).status).toBe(409);
  });

  test('a sensitive value is in no answer and in no audit entry', async () => {
    const secret = 'open-sesame-4711';
    const row = await insert(database.db, books, { title: 'Vault', isbn: 'vault', price: '1.00', vault_code: secret });
    await site.send(staff, 'PATCH', `resources/books/${row.id}`, { title: 'Vault 2' });
    await read(row.id);
    await titles('search=vault');
    expect(await titles(`search=${secret}`)).toEqual([]);
    expect(site.answers.join('\n').replaceAll(`search=${secret}`, '')).not.toContain(secret);
    const entries = await auditLog(database.db);
    expect(JSON.stringify(entries, (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value))).not.toContain(secret);
  });
});

describe('modelResource()', () => {
  test('names every option that does not fit the model, at once', () => {
    expect(() => modelResource(books, { columns: ['titel'], search: ['pages'], edit: ['created_at'], title: 'vault_code' })).toThrow(
      /columns: "titel".*Did you mean "title".*edit: "created_at".*search: "pages".*title: "vault_code"/s,
    );
  });

  test('a row the form cannot complete is not offered for creation', () => {
    const keyed = model('keyed', { id: t.uuidv7().pk(), name: t.text(10), token: t.text(10).sensitive() });
    expect(modelResource(keyed).creation).toEqual({ refused: expect.stringContaining('token') });
  });
});
