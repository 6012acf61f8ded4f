import { expect, test } from 'vitest';
import type { AuditEntry, AuditSink } from '../../../auth/index.ts';
import { migrate } from '../../../db/index.ts';
import { describeDatabases } from '../../../testing/databases.ts';
import { fakeClock } from '../../../testing/fake-clock.ts';
import { activateUser, changePassword, createUser, deactivateUser, requireUser } from './manage-users.ts';
import type { UserManagement } from './user-management.ts';
import { initial } from '../migrations/0001_initial.ts';
import { accountsDirectory } from './user-directory.ts';

describeDatabases(
  'users',
  (database) => {
    const management: UserManagement = { clock: fakeClock(), passwordCost: { logN: 4, r: 8, p: 1 }, audit: null };

    test('a new user is active, has no rights, and keeps name and address in lower case', async () => {
      const user = await createUser(
        database.db,
        { username: 'Ada', email: ' Ada@Example.com ', password: 'correct horse battery' },
        management,
      );
      expect(user).toMatchObject({ username: 'ada', email: 'ada@example.com', is_active: true, is_staff: false, is_superuser: false });
      expect(user.created_at).toEqual(management.clock.now());
    });

    test('without the module, a call that leaves the third argument out says what to do', async () => {
      await expect(createUser(database.db, { username: 'nobody' })).rejects.toThrow(
        /Accounts are not set up .*: add accounts\(\) to the modules/,
      );
      await expect(createUser(undefined as never, { username: 'nobody' })).rejects.toThrow('the first argument is the database');
      await expect(createUser(database.db, {} as never, management)).rejects.toMatchObject({ code: 'invalid_user', status: 422 });
    });

    test('a name or an address is taken once, whatever its case', async () => {
      await createUser(database.db, { username: 'bob', email: 'bob@example.com' }, management);
      await expect(createUser(database.db, { username: 'BOB' }, management)).rejects.toMatchObject({ code: 'username_taken', status: 409 });
      await expect(createUser(database.db, { username: 'bob2', email: 'Bob@example.com' }, management)).rejects.toMatchObject({
        code: 'email_taken',
      });
    });

    test('of many creations of one name at once exactly one succeeds', async () => {
      const results = await Promise.allSettled(
        Array.from({ length: 10 }, () => createUser(database.db, { username: 'racer' }, management)),
      );
      expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    });

    test.each([
      [{ username: 'no at@sign' }, 'invalid_user'],
      [{ username: 'eve', email: 'nonsense' }, 'invalid_user'],
      [{ username: 'eve', password: 'short' }, 'weak_password'],
    ])('%j is refused as %s and leaves nothing behind', async (input, code) => {
      await expect(createUser(database.db, input, management)).rejects.toMatchObject({ code, status: 422 });
      expect(await accountsDirectory.findByLogin(database.db, 'eve')).toBeNull();
    });

    test('every fault of a new user is reported at once, at its field', async () => {
      const refused = createUser(database.db, { username: 'no at@sign', email: 'nonsense', password: 'short' }, management);
      await expect(refused).rejects.toMatchObject({
        code: 'validation_error',
        errors: [
          { location: ['body', 'username'], code: 'invalid' },
          { location: ['body', 'email'], code: 'invalid' },
          { location: ['body', 'password'], code: 'weak_password' },
        ],
      });
    });

    test('a user is found by name, address and id, and what leaves the module has no hash', async () => {
      const { id } = await createUser(
        database.db,
        { username: 'grace', email: 'grace@example.com', password: 'correct horse battery' },
        management,
      );
      for (const login of ['grace', 'GRACE', 'Grace@Example.com', id]) expect((await requireUser(database.db, login)).id).toBe(id);
      const shown = { id, username: 'grace', email: 'grace@example.com', is_active: true, is_staff: false, is_superuser: false };
      expect(await accountsDirectory.findById(database.db, id)).toEqual(shown);
      expect(await accountsDirectory.findByLogin(database.db, 'grace@example.com')).toEqual(shown);
    });

    test('unknown names, addresses and things that are no id are simply not found', async () => {
      for (const id of ['nonsense', '', '01890000-0000-7000-8000-000000000000', "'; drop table users; --"]) {
        expect(await accountsDirectory.findById(database.db, id)).toBeNull();
        expect(await accountsDirectory.findByLogin(database.db, id)).toBeNull();
      }
      await expect(requireUser(database.db, 'nobody')).rejects.toMatchObject({ code: 'user_not_found', status: 404 });
    });

    test('changes run in the caller’s transaction and vanish with it', async () => {
      const user = await createUser(database.db, { username: 'tina' }, management);
      const failure = new Error('no');
      await expect(
        database.db.transaction(async (tx) => {
          await deactivateUser(tx, user.id, management);
          await createUser(tx, { username: 'tina2' }, management);
          throw failure;
        }),
      ).rejects.toBe(failure);
      expect((await requireUser(database.db, 'tina')).is_active).toBe(true);
      expect(await accountsDirectory.findByLogin(database.db, 'tina2')).toBeNull();
    });

    test('every change is recorded in its own transaction, without secrets', async () => {
      const entries: AuditEntry[] = [];
      const audit: AuditSink = { record: async (tx, added) => void (tx.isTransaction && entries.push(...added)) };
      const recorded = { ...management, audit, actor: 'cli' };
      const user = await createUser(database.db, { username: 'walter', password: 'correct horse battery' }, recorded);
      await deactivateUser(database.db, user.id, recorded);
      await deactivateUser(database.db, user.id, recorded);
      await activateUser(database.db, user.id, recorded);
      await changePassword(database.db, user, 'another good sentence', recorded);
      expect(entries.map(({ action }) => action)).toEqual(['user.created', 'user.deactivated', 'user.activated', 'user.password_changed']);
      for (const entry of entries) expect(entry).toMatchObject({ target_type: 'user', target_id: user.id, actor: 'cli' });
      expect(JSON.stringify(entries)).not.toMatch(/scrypt|sentence|battery/);
    });
  },
  {
    template: 'accounts',
    prepare: async (db) => {
      await migrate(db, [{ name: 'accounts', migrations: [initial] }]);
    },
  },
);
