import { afterAll, beforeAll, expect, test } from 'vitest';
import { dataResource } from '../../src/admin/model/data-resource.ts';
import type { AdminContext } from '../../src/app/index.ts';
import { accounts, users } from '../../src/contrib/accounts/index.ts';
import { CrudController, resource } from '../../src/crud/index.ts';
import { describeData } from '../../src/crud/subjects/describe-data.ts';
import { personalWarnings } from '../../src/crud/subjects/personal-warnings.ts';
import { retainedTables, retainRows } from '../../src/crud/subjects/retained-tables.ts';
import { createTable, insert, migration, model, t } from '../../src/db/index.ts';
import { isAuthenticated } from '../../src/permissions/index.ts';
import { testApp, type TestApp } from '../../src/testing/test-app.ts';

const visits = model(
  'visits',
  {
    id: t.int().pk(),
    user_id: t.text(64).person({ erase: 'anonymise', erased: 'erased' }),
    address: t.text().nullable().personal(),
    iban: t.text(34).nullable().encrypted({ search: 'equality' }).personal(),
    note: t.text(80).nullable().encrypted(),
    at: t.timestamp(),
  },
  { retention: { after: '30 days', by: 'at', then: 'delete' } },
);
const letters = model('letters', {
  id: t.uuidv7().pk(),
  owner_id: t.uuid().readOnly(),
  email: t.text(),
  to: t
    .ref(() => users)
    .nullable()
    .readOnly(),
});
class LetterController extends CrudController(resource(letters, { owner: 'owner_id' }), { permission: isAuthenticated }) {}

let kit: TestApp;
beforeAll(async () => {
  kit = await testApp({
    database: 'sqlite::memory:',
    modules: [
      accounts(),
      {
        name: 'shop',
        requires: ['accounts'],
        models: [visits, letters],
        migrations: [
          migration('0001_initial', [
            createTable('visits', visits.columns),
            createTable('letters', { ...letters.columns, to: t.ref('users').nullable() }),
          ]),
        ],
      },
    ],
    mount: { '/v1': { '/letters': LetterController } },
  });
});
afterAll(() => kit?.close());

test('kit check says what the models leave open', () => {
  expect(personalWarnings(kit.app).map(({ id, message }) => `${id} ${message}`)).toEqual([
    'W040 "letters.owner_id" is the owner of the rows, and the model does not say what erasing a person does to them.',
    'W040 A person cannot be erased: rows of "letters" refer to rows of "users" with "to" and keep them from being deleted.',
    'W041 The column "email" of "letters" looks personal and says nothing.',
    'W042 "visits" has a retention, and nothing applies it.',
  ]);
});

test('kit inspect and the admin site show what is declared, and what retention did', async () => {
  expect(describeData(kit.app).find(({ table }) => table === 'visits')).toEqual({
    table: 'visits',
    using: 'default',
    encrypted: [
      { column: 'iban', search: true },
      { column: 'note', search: false },
    ],
    personal: ['address', 'iban'],
    person: ['user_id: anonymised'],
    tenant: [],
    retention: 'deleted 30 days after at',
  });
  await insert(kit.app.db, visits, { id: 1, user_id: 'ada', at: new Date(0) });
  const [table] = retainedTables(kit.app);
  expect(table && (await retainRows(kit.app, table))).toBe(1);
  const context = { app: kit.app, db: kit.app.db } as unknown as AdminContext;
  expect(await dataResource().read(context, 'visits')).toMatchObject({
    state: { value: 'running', tone: 'good' },
    values: { personal: ['address', 'iban'], encrypted: ['iban (search)', 'note'], retention: 'deleted 30 days after at', removed: 1 },
    sections: [{ values: { last_rows: 1, error: null } }],
  });
});
