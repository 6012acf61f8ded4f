import { beforeAll, describe, expect, test } from 'vitest';
import { people, preparePeopleAndKeys } from '../../../test/people.ts';
import { createApp } from '../../app/assemble/create-app.ts';
import { StartUpError } from '../../app/check/start-up-error.ts';
import { directoryOf, type UserSource } from '../../auth/people/user-directory.ts';
import type { UserTable } from '../../auth/people/user-table.ts';
import type { Database } from '../../db/engine/db.ts';
import { isOwner } from '../../permissions/built-ins.ts';
import type { Dialect } from '../../db/dialect.ts';
import { describeDatabases } from '../../testing/databases.ts';
import { ApiKeyController } from './controller.ts';
import { createApiKey } from './manage/create.ts';
import { apiKeys } from './module.ts';
import { useApiKeys } from './request/use-api-keys.ts';
import { verifyApiKey } from './verify/verify.ts';

const table = people.table;

async function faultsOf(db: Database, given: Partial<UserTable>): Promise<string> {
  try {
    await (await useApiKeys(db, { users: { table: { ...table, ...given } } })).stop();
    return '';
  } catch (error) {
    return (error as Error).message;
  }
}

describeDatabases(
  'users of your own',
  (database) => {
    test('a table that is not there is refused before the first key, with no SQL text', async () => {
      expect(await faultsOf(database.db, { name: 'peple' })).toBe(
        'useApiKeys(): users.table: there is no table "peple" in the database "default". Correct users.table.name, or run the migration that creates the table.',
      );
    });

    test('columns that are not there are named all at once, with what was meant', async () => {
      expect(await faultsOf(database.db, { isActive: 'enable', username: 'login' })).toBe(
        [
          'useApiKeys(): users.table.username names the column "login", which the table "people" does not have. It has person_no, handle, mail, enabled, staff, root.',
          'useApiKeys(): users.table.isActive names the column "enable", which the table "people" does not have. Did you mean "enabled"?',
        ].join('\n'),
      );
    });

    test('a wrong idType is refused', async () => {
      expect(await faultsOf(database.db, { idType: 'bigint' })).toBe(
        'useApiKeys(): users.table.idType is "bigint", but "people"."person_no" is text. Write idType: "text".',
      );
    });

    test('createApp({ users }) stops for the same reasons', async () => {
      const app = createApp({
        database: database.db,
        log: { level: 'silent' },
        users: { table: { ...table, isStaff: 'is_staff' } },
        modules: [apiKeys()],
        mount: {},
      });
      await expect(app.ready()).rejects.toThrow(StartUpError);
      await expect(app.ready()).rejects.toThrow('users.table.isStaff names the column "is_staff"');
    });

    test('the table alone is enough to look users up', async () => {
      const users = directoryOf({ table });
      const ada = { id: 'no-ada', username: 'ada', email: null, is_active: true, is_staff: false, is_superuser: false };
      expect(await users.findByLogin(database.db, 'ada')).toEqual(ada);
      expect(await users.findById(database.db, 'no-ada')).toEqual(ada);
      expect(await users.findByLogin(database.db, 'nobody')).toBeNull();
    });
  },
  { prepare: preparePeopleAndKeys },
);

describe('options of useApiKeys', () => {
  test('without users say what is missing', async () => {
    await expect(useApiKeys({} as never, {} as never)).rejects.toThrow('useApiKeys(): users is missing; use a user directory: { table }.');
  });
});

test('ApiKeyController without apiKeys() stops the start', () => {
  const create = () =>
    createApp({ database: 'sqlite::memory:', log: { level: 'silent' }, mount: { '/v1': { '/keys': ApiKeyController } } });
  expect(create).toThrow('E006  ApiKeyController is mounted without its module. Add apiKeys() to the modules of createApp.');
});

/** Declared types of a flag, a value that means yes and one that means no. */
const FLAGS: Readonly<Record<Dialect, readonly (readonly [type: string, yes: unknown, no: unknown])[]>> = {
  sqlite: [
    ['integer', 1, 0],
    ['bool', 1, 0],
    ['tinyint(1)', 1, 0],
    ['boolean', 1, 0],
    ['text', 'yes', 'no'],
    ['', 1, 0],
    ['numeric', 1, null],
  ],
  postgres: [
    ['integer', 1, 0],
    ['smallint', 1, 0],
    ['boolean', true, false],
    ['text', 't', 'f'],
    ['char(1)', 'Y', 'N'],
    ['boolean', true, null],
  ],
};

describeDatabases(
  'a users table with flags and ids of other types',
  (database) => {
    describe.each(FLAGS[database.dialect])('flags of type %s', (type, yes, no) => {
      const name = `members_${type.replaceAll(/\W/g, '_')}_${no === null ? 'null' : 'no'}`;
      const users: UserSource = {
        table: {
          name,
          id: 'id',
          username: 'login',
          email: 'mail',
          isActive: 'active',
          isStaff: 'staff',
          isSuperuser: 'root',
          idType: 'integer',
        },
      };
      beforeAll(async () => {
        const { db } = database;
        await db.query(`create table ${name} (id integer primary key, login text, mail text, active ${type}, staff ${type}, root ${type})`);
        const add = (id: number, login: string, flags: readonly unknown[]) =>
          db.query(`insert into ${name} values ($1, $2, null, $3, $4, $5)`, [id, login, ...flags]);
        await add(7, 'ada', [yes, yes, no]);
        await add(8, 'bob', [no, no, no]);
      });

      test('the key of an active owner works, that of an inactive one does not, and staff is staff', async () => {
        const { db } = database;
        const inUse = await useApiKeys(db, { users });
        try {
          const ada = await createApiKey(db, { user: '7', name: 'CI', scopes: [] });
          const bob = await createApiKey(db, { user: '8', name: 'CI', scopes: [] });
          expect(ada.apiKey.owner_is_active).toBe(true);
          expect(bob.apiKey.owner_is_active).toBe(false);
          expect((await verifyApiKey(db, ada.raw))?.user).toEqual({
            id: '7',
            username: 'ada',
            email: null,
            is_active: true,
            is_staff: true,
            is_superuser: false,
          });
          expect(await verifyApiKey(db, bob.raw)).toBeNull();
          expect(await directoryOf(users).findByLogin(db, 'bob')).toMatchObject({ id: '8', is_active: false, is_staff: false });
        } finally {
          await inUse.stop();
        }
      });
    });
  },
  { prepare: preparePeopleAndKeys },
);

test.each([7, 7n, '7'])('isOwner() knows its owner by the id %o of the row', (owner_id) => {
  const user = { id: '7', username: 'ada', email: null, is_active: true, is_staff: false, is_superuser: false };
  const context = { user, principal: { user, scheme: 'session', scopes: null } } as never;
  expect(isOwner().evaluate(context, { owner_id })).toBe(true);
  expect(isOwner().evaluate(context, { owner_id: 8 })).toBe(false);
  expect(isOwner().evaluate(context, { owner_id: null })).toBe(false);
});
