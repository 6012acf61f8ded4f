import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { AdminApp, HOST, type Answer, type Browser } from '../../test/admin/admin-app.ts';
import type { Module } from '../app/index.ts';
import { type Change, resource } from '../crud/index.ts';
import { createTable, insert, migration, model, softDelete, softDeleteUnique, t, timestamps } from '../db/index.ts';
import { describeDatabases } from '../testing/databases.ts';
import { modelResource } from '../screens/screen.ts';
import type { AdminRole } from './options.ts';

const customerColumns = { id: t.uuidv7().pk(), name: t.text({ min: 1, max: 80 }), secret: t.bool().dbDefault(false), ...timestamps() };
const depotColumns = { code: t.text(20).pk(), name: t.text(80) };
const parcelColumns = {
  id: t.uuidv7().pk(),
  code: t.text({ min: 1, max: 20 }),
  weight: t.int({ min: 0 }),
  ...softDelete(),
};
const customers = model('customers', customerColumns);
const depots = model('depots', depotColumns);
const indexes = [{ columns: ['customer_id'] }, { columns: ['depot_code'] }, softDeleteUnique('code')];
const parcels = model(
  'parcels',
  {
    ...parcelColumns,
    customer_id: t.ref(() => customers),
    depot_code: t.ref(() => depots).nullable(),
  },
  { indexes },
);

const changes: Change[] = [];
const customerResource = resource(customers, { unscoped: true, admin: { rows: { secret: false } } });
const depotResource = resource(depots, { unscoped: true, admin: { rows: true } });
const parcelResource = resource(parcels, {
  unscoped: true,
  onChange: (change) => void changes.push(change as never),
  admin: { rows: true },
});

const post: Module = {
  name: 'post',
  models: [customers, depots, parcels],
  resources: [customerResource, depotResource, parcelResource],
  migrations: [
    migration('0001_initial', [
      createTable('customers', customerColumns),
      createTable('depots', depotColumns),
      createTable(
        'parcels',
        { ...parcelColumns, customer_id: t.ref('customers'), depot_code: t.ref('depots', { column: 'code', type: t.text(20) }).nullable() },
        { indexes },
      ),
    ]),
  ],
  admin: {
    resources: [
      modelResource(customerResource, { singular: 'customer', group: 'Post' }),
      modelResource(depotResource, { singular: 'depot', group: 'Post' }),
      modelResource(parcelResource, { singular: 'parcel', group: 'Post', title: 'code' }),
    ],
  },
};

describeDatabases('a file that is imported into a list', (database) => {
  const roles = new Map<string, AdminRole>();
  let site: AdminApp;
  let staff: Browser;
  let ada: string;

  beforeAll(async () => {
    const needs = { parcels: { import: 'operator' }, customers: { read: 'administrator' } } as const;
    const adminRoles = { of: (user: { readonly id: string }) => roles.get(user.id) ?? 'administrator', needs };
    site = await new AdminApp(database.db, [post], {}, { roles: adminRoles }).ready();
    staff = await site.browser();
    ada = (await insert(database.db, customers, { name: 'Ada' })).id;
    for (const name of ['Bob', 'Bob']) await insert(database.db, customers, { name });
    await insert(database.db, customers, { name: 'Hidden', secret: true });
    for (const [code, name] of [
      ['north', 'North depot'],
      ['Ada', 'A depot called as a customer'],
    ] as const)
      await insert(database.db, depots, { code, name });
  });
  beforeEach(async () => {
    await database.db.query('delete from parcels');
    changes.length = 0;
  });
  afterAll(() => site.close());

  const send = async (query: string, payload: string, type = 'text/csv', browser = staff): Promise<Answer> => {
    const headers = { host: HOST, cookie: browser.cookie, 'x-csrf-token': browser.csrf, 'content-type': type };
    const response = await site.app.inject({ method: 'POST', url: `/admin/api/lists/parcels/import${query}`, headers, payload });
    return { status: response.statusCode, body: response.json(), text: response.body, headers: response.headers };
  };
  const stored = () => database.db.query('select code, weight, customer_id, depot_code from parcels order by code');

  test('has labels for names and names for ids; the preview says what is read, and writes nothing', async () => {
    const file = `Code,WEIGHT,Customer,Depot code,Colour\nA-1,3,Ada,North depot,red\nA-2,4,${ada},north,blue\n`;
    const unknown = await send('?dry_run=true', file);
    expect(unknown).toMatchObject({ status: 200, body: { created: 0, dry_run: true, preview: { errors: 1 } } });
    expect(unknown.body.preview.columns).toEqual([
      { name: 'Code', field: 'code', fault: null },
      { name: 'WEIGHT', field: 'weight', fault: null },
      { name: 'Customer', field: 'customer_id', fault: null },
      { name: 'Depot code', field: 'depot_code', fault: null },
      { name: 'Colour', field: 'Colour', fault: 'Unknown column.' },
    ]);
    const preview = await send('?dry_run=true&column.Colour=', file);
    expect(preview).toMatchObject({ status: 200, body: { created: 2, updated: 0, preview: { errors: 0 } } });
    expect(preview.body.preview.rows[0]).toEqual({
      number: 2,
      values: { code: 'A-1', weight: '3', customer_id: 'Ada', depot_code: 'North depot' },
      errors: [],
    });
    expect(await stored()).toEqual([]);
    changes.length = 0;
    expect((await send('?column.Colour=', file)).body).toMatchObject({ created: 2, dry_run: false });
    expect(await stored()).toEqual([
      { code: 'A-1', weight: 3, customer_id: ada, depot_code: 'north' },
      { code: 'A-2', weight: 4, customer_id: ada, depot_code: 'north' },
    ]);
    expect(changes.map(({ via }) => via)).toEqual(['import', 'import']);
  });

  test('is refused at the cells that name nobody, several, or a record that this person does not see', async () => {
    const file = 'code,weight,customer_id\nB-1,1,Ada\nB-2,1,Bob\nB-3,-1,Nobody\nB-4,1,Hidden\n';
    const preview = await send('?dry_run=true', file);
    const rows = preview.body.preview.rows as { number: number; errors: { field: string; message: string }[] }[];
    expect(rows.map(({ number, errors }) => [number, errors.map(({ field, message }) => `${field}: ${message}`)])).toEqual([
      [2, []],
      [3, ['customer_id: Several records have the name "Bob". Use the id of one.']],
      [4, ['customer_id: No record has the name "Nobody". Use an exact name or an id.', expect.stringMatching(/^weight: /)]],
      [5, ['customer_id: No record has the name "Hidden". Use an exact name or an id.']],
    ]);
    const refused = await send('', file);
    expect([refused.status, refused.body.errors.length]).toEqual([422, 4]);
    expect(await stored()).toEqual([]);
  });

  test('a text that is a key is the key, also where another record is called so', async () => {
    await send('', `code,weight,customer_id,depot_code\nC-1,1,Ada,Ada\n`);
    expect(await stored()).toMatchObject([{ customer_id: ada, depot_code: 'Ada' }]);
  });

  test('whoever may not read the other list finds nobody by name there, and gives ids', async () => {
    const operator = await site.browser();
    roles.set(operator.userId, 'operator');
    const named = await send('?dry_run=true', 'code,weight,customer_id\nD-1,1,Ada\n', 'text/csv', operator);
    expect(named.body.preview.rows[0].errors[0].message).toContain('No record has the name "Ada"');
    const given = await send('?dry_run=true', `code,weight,customer_id\nD-1,1,${ada}\n`, 'text/csv', operator);
    expect(given.body).toMatchObject({ created: 1, preview: { errors: 0 } });
  });

  test('rows for records that are there are named before anything is written, and so are two rows for one', async () => {
    await send('', `code,weight,customer_id\nE-1,1,${ada}\n`);
    const file = `code,weight,customer_id\nE-2,1,${ada}\nE-1,2,${ada}\nE-2,3,${ada}\n`;
    const preview = await send('?dry_run=true', file);
    expect(preview.body.preview.rows.map(({ errors }: { errors: unknown }) => errors)).toEqual([
      [],
      [{ field: 'code', message: 'A record with this value already exists.' }],
      [{ field: 'code', message: 'Row 2 has the same value.' }],
    ]);
    const upsert = await send('?dry_run=true&mode=upsert', file.replace('\nE-2,3', '\nE-3,3'));
    expect(upsert.body).toMatchObject({ created: 2, updated: 1, preview: { errors: 0 } });
    expect(await stored()).toHaveLength(1);
  });

  test('JSON Lines have the same words; a choice of a field that does not exist is refused', async () => {
    const lines = '{"Code":"F-1","weight":1,"Customer":"Ada"}\n{"Number":"F-2","weight":1,"Customer":"Ada"}\n';
    const preview = await send('?dry_run=true&column.Number=code', lines, 'application/x-ndjson');
    expect(preview.body).toMatchObject({ created: 2, preview: { errors: 0 } });
    const wrong = await send('?column.Number=cod', lines, 'application/x-ndjson');
    expect(wrong).toMatchObject({ status: 422, body: { errors: [{ location: ['query', 'column.Number'] }] } });
    expect(wrong.body.errors[0].message).toContain('"code"');
    expect((await send('?colum.Number=code', lines)).status).toBe(422);
    expect(await stored()).toEqual([]);
  });
});
