import { expect, test } from 'vitest';
import { describeDatabases } from '../../testing/databases.ts';
import { secretsAndIdempotency } from '../migrations/core/migrations/0002_secrets_and_idempotency.ts';
import { idempotency, secrets } from '../migrations/core/models.ts';
import { checkDrift } from '../migrations/drift.ts';
import { migrate } from '../migrations/migrate.ts';
import { installationId, getOrCreateSecret } from './secrets.ts';

const core = { name: 'kit', models: [secrets, idempotency], migrations: [secretsAndIdempotency] };

describeDatabases(
  'secrets of an installation',
  (database) => {
    test('the tables are what their models say', async () => {
      expect(await checkDrift([core], database.db)).toEqual({ models: [], database: [], additions: [] });
    });

    test('a secret is made once: twelve processes that ask at the same time get the same', async () => {
      const handles = await Promise.all(Array.from({ length: 12 }, () => database.open()));
      const found = await Promise.all(handles.map((handle) => getOrCreateSecret(handle, 'cursors')));
      const values = new Set(found.map((each) => Buffer.from(each).toString('hex')));
      expect(values.size).toBe(1);
      expect(found[0]).toHaveLength(32);
      expect(Buffer.from(await getOrCreateSecret(database.db, 'cursors')).toString('hex')).toBe([...values][0]);
      expect(await getOrCreateSecret(database.db, 'others')).not.toEqual(found[0]);
    });

    test('a failure is not remembered', async () => {
      const handle = await database.open();
      await database.db.query('alter table kit_secrets rename to kit_elsewhere');
      await expect(getOrCreateSecret(handle, 'late')).rejects.toThrow('kit_secrets');
      await database.db.query('alter table kit_elsewhere rename to kit_secrets');
      expect(await getOrCreateSecret(handle, 'late')).toHaveLength(32);
    });

    test('the installation has one id', async () => {
      const id = await installationId(database.db);
      expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$/);
      expect(await installationId(await database.open())).toBe(id);
    });
  },
  { prepare: async (db) => void (await migrate(db, [core])) },
);
