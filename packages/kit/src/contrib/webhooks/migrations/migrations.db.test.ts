import { expect, test } from 'vitest';
import { checkDrift, migrate } from '../../../db/index.ts';
import { describeDatabases } from '../../../testing/index.ts';
import { webhookModels } from '../models.ts';
import { webhookMigrations } from './all.ts';

const modules = [{ name: 'webhooks', models: [...webhookModels], migrations: webhookMigrations }];

describeDatabases('webhook migrations', (database) => {
  test('the migrations make exactly the tables that the models describe', async () => {
    await migrate(database.db, modules);
    expect(await checkDrift(modules, database.db)).toEqual({ models: [], database: [] });
  });
});
