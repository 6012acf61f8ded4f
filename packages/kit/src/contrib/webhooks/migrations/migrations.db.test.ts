import { expect, test } from 'vitest';
import { checkDrift, migrate } from '../../../db/index.ts';
import { describeDatabases } from '../../../testing/index.ts';
import { webhookModels } from '../models.ts';
import { webhookMigrations } from './all.ts';

const modules = [{ name: 'webhooks', models: [...webhookModels], migrations: webhookMigrations }];

describeDatabases('webhook migrations', (database) => {
  test('the migrations make exactly the tables that the models describe', async () => {
    await migrate(database.db, modules);
    expect(await checkDrift(modules, database.db)).toEqual({ models: [], database: [], additions: [] });
    if (database.dialect === 'sqlite') return;
    await database.db.query('alter domain webhook_delivery_status drop constraint webhook_deliveries_status_check');
    expect((await checkDrift(modules, database.db)).database).toEqual([
      'Column "webhook_deliveries.status" has lost its check "webhook_deliveries_status_check".',
    ]);
  });
});
