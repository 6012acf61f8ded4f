import { afterAll, beforeAll, expect, test } from 'vitest';
import { AdminApp, type Browser } from '../../test/admin/admin-app.ts';
import type { Module } from '../app/index.ts';
import { resource } from '../crud/index.ts';
import { createTable, insert, migration, model, t, update } from '../db/index.ts';
import { jsonSchema } from '../http/declare/json-schema.ts';
import { describeDatabases } from '../testing/databases.ts';
import { screen } from './screen.ts';

/** Locks, whose code is sealed: nobody sends or sees the column. */
const locks = model(
  'locks',
  { id: t.uuidv7().pk(), name: t.text(30), sealed: t.text().sensitive(), opened: t.int().default(0) },
  { guarded: true },
);
const Body = jsonSchema<{ name?: string; digits?: readonly number[] }>({ type: 'object' });
type Input = { readonly name?: string; readonly digits?: readonly number[] };
const seal = (digits: readonly number[] = []) => `sealed ${digits.join('')}`;
const lockResource = resource(locks, {
  audiences: { staff: { rows: true } },
  writes: 'verbs',
  bodies: { create: Body, update: Body },
  once: { key: { on: ['create', 'recut'] } },
  validate: ({ input }) =>
    ((input as Input).digits ?? []).some((digit) => !(digit >= 0 && digit <= 9))
      ? [{ location: ['body', 'digits'], code: 'invalid_digit', message: 'A digit is 0 to 9.' }]
      : [],
  hooks: {
    create({ input, tx, once }) {
      const { name = '', digits } = input as Input;
      once('key', `key of ${name}`);
      return insert(tx, locks, { name, sealed: seal(digits) });
    },
    async update({ before, input, tx }) {
      const { name = before.name, digits } = input as Input;
      return (await update(tx, locks, before.id, { name, ...(digits === undefined ? {} : { sealed: seal(digits) }) })) ?? before;
    },
  },
  actions: {
    recut: { run: async ({ row, once }) => once('key', `second key of ${row.name}`) },
    open: {
      input: jsonSchema<{ times: number; slowly?: boolean }>({
        type: 'object',
        properties: { times: { type: 'integer' }, slowly: { type: 'boolean' } },
      }),
      async run({ row, input, tx }) {
        await update(tx, locks, row.id, { opened: input.slowly === true ? input.times : -1 });
        return input.times;
      },
    },
  },
});

const fields = [
  { name: 'name', label: 'Name', kind: 'text', required: true },
  { name: 'digits', label: 'Digits', kind: 'strings' },
] as const;

const house: Module = {
  name: 'house',
  requires: ['accounts'],
  models: [locks],
  resources: [lockResource],
  migrations: [migration('0001_initial', [createTable('locks', locks.columns)])],
  admin: {
    resources: [
      screen(lockResource, {
        label: 'Locks',
        singular: 'lock',
        plural: 'locks',
        title: 'title',
        columns: ['name', { name: 'rank', label: 'Rank', kind: 'number' }, { name: 'called', kind: 'text' }],
        facts: [{ name: 'opened', ifSet: true }],
        load: async (rows) => rows.map(({ name }, index) => ({ rank: index, nick: `nick of ${name}` })),
        cells: { title: ({ name }) => `Lock ${name}`, called: (row) => (row as { nick?: string }).nick ?? null },
        forms: {
          create: fields,
          edit: fields,
          values: ({ name }) => ({ name, digits: [] }),
          input: ({ name, digits }) => ({ name, digits: (digits as readonly string[] | undefined)?.map(Number) }),
        },
        once: ({ name }, values) => ({ label: `Key of ${name}`, value: values.get('key') ?? '', note: 'Shown this once.' }),
        defaults: async () => ({ open: { times: 3 } }),
        actions: [
          { name: 'recut', label: 'Cut a new key' },
          {
            name: 'open',
            label: 'Open',
            done: 'opened',
            fields: [{ name: 'times', label: 'Times', kind: 'number', required: true }],
            input: { slowly: true },
            message: ({ message, rows, returned }) => `${message} ${rows.map(({ opened }) => opened).join()} of ${returned.join()}.`,
          },
        ],
      }),
    ],
  },
};

describeDatabases('screens of resources with bodies of their own', (database) => {
  let site: AdminApp;
  let staff: Browser;
  beforeAll(async () => {
    site = await new AdminApp(database.db, [house]).ready();
    staff = await site.browser();
  });
  afterAll(() => site.close());
  const made = async (name: string) => (await insert(database.db, locks, { name, sealed: seal([1]) })).id;
  const stored = async (id: string) =>
    (await database.db.query<{ name: string; sealed: string }>('select * from locks where id = $1', [id]))[0];

  test('a form sends what the words make of its fields, and shows what the resource gives once', async () => {
    const { status, body } = await site.send(staff, 'POST', 'resources/locks', { name: 'front', digits: ['4', '2'] });
    expect([status, body.message, body.secret]).toEqual([
      201,
      'Lock front created.',
      { label: 'Key of front', value: 'key of front', note: 'Shown this once.' },
    ]);
    expect(await stored(body.id)).toMatchObject({ name: 'front', sealed: 'sealed 42' });
    const { form } = (await site.get(staff, `resources/locks/${body.id}`)).body;
    expect(form.values).toEqual({ name: 'front', digits: [] });
    expect((await site.send(staff, 'PATCH', `resources/locks/${body.id}`, { name: 'back' })).body.message).toBe('Lock back saved.');
    expect(await stored(body.id)).toMatchObject({ name: 'back', sealed: 'sealed 42' });
    expect(site.answers.join()).not.toContain('sealed 42');
  });

  test('errors of the rules of the resource are reported with those of the kinds of fields', async () => {
    const places = async (method: 'POST' | 'PATCH', path: string) => {
      const { status, body } = await site.send(staff, method, path, { name: 5, digits: ['10'] });
      return [status, body.errors.map(({ location }: { location: string[] }) => location.join('.')).toSorted()];
    };
    expect(await places('POST', 'resources/locks')).toEqual([422, ['body.digits', 'body.name']]);
    expect(await places('PATCH', `resources/locks/${await made('side')}`)).toEqual([422, ['body.digits', 'body.name']]);
  });

  test('what the list loads is shown as it is, and cells get it with the row', async () => {
    const id = await made('loaded');
    const { items } = (await site.get(staff, 'resources/locks?search=loaded')).body;
    expect(items).toMatchObject([{ id, title: 'Lock loaded', values: { rank: 0, called: 'nick of loaded' } }]);
    const record = (await site.get(staff, `resources/locks/${id}`)).body;
    expect(record).toMatchObject({ title: 'Lock loaded', values: { called: 'nick of loaded' }, defaults: { open: { times: 3 } } });
  });

  test('an action gets the input of its form and of its words, and its message may use what was returned', async () => {
    const ids = [await made('one'), await made('two')];
    expect((await site.act(staff, 'locks', 'open', ids, { times: 2 })).body.message).toBe('2 locks opened. 2,2 of 2,2.');
  });

  test('an action that gives a value once is for one record, and shows the value', async () => {
    const [one, two] = [await made('cut'), await made('other')];
    expect((await site.act(staff, 'locks', 'recut', [one])).body.secret.value).toBe('second key of cut');
    expect((await site.act(staff, 'locks', 'recut', [one, two])).status).toBe(422);
  });
});
