import { expect, test } from 'vitest';
import { checkDrift, migrate, uuidv7 } from '../../../db/index.ts';
import { describeDatabases } from '../../../testing/index.ts';
import { webhookModels } from '../models.ts';
import { deliveryReferences } from './0009_delivery_references.ts';
import { webhookMigrations } from './all.ts';

const modules = [{ name: 'webhooks', models: [...webhookModels], migrations: webhookMigrations }];

describeDatabases('webhook migrations', (database) => {
  test('the migrations make exactly the tables that the models describe', async () => {
    await migrate(database.db, modules);
    expect(await checkDrift(modules, database.db)).toEqual({ models: [], database: [] });
  });
});

describeDatabases('the upgrade of webhook tables', (database) => {
  test('a database of the release before keeps its deliveries and attempts, which still go with their event and endpoint', async () => {
    const { db } = database;
    const before = webhookMigrations.slice(0, webhookMigrations.indexOf(deliveryReferences));
    await migrate(db, [{ name: 'webhooks', migrations: before }]);
    const [first, second] = [uuidv7(), uuidv7()];
    const now = new Date('2026-03-01T12:00:00.000Z');
    for (const id of [first, second]) {
      await db.query(
        `insert into webhook_endpoints (id, owner_id, url, events, secret, created_at, updated_at) values ($1, 'ada', 'https://example.com/', $2, 'x', $3, $3)`,
        [id, ['*'], now],
      );
      await db.query(
        `insert into webhook_events (id, type, data, timestamp, audience, owner_id) values ($1, 'a.b', '{}', $2, 'owner', 'ada')`,
        [id, now],
      );
      await db.query(`insert into webhook_deliveries (id, event_id, endpoint_id, event_type, created_at) values ($1, $1, $1, 'a.b', $2)`, [
        id,
        now,
      ]);
      await db.query(`insert into webhook_attempts (delivery_id, id, started_at, duration_ms, worker) values ($1, $1, $2, 1, 'w')`, [
        id,
        now,
      ]);
    }
    await migrate(db, modules);
    const left = async () =>
      (
        await db.query<{ id: string }>(
          'select d.id from webhook_deliveries d join webhook_attempts a on a.delivery_id = d.id order by d.id',
        )
      ).map(({ id }) => id);
    expect(await left()).toEqual([first, second]);
    await db.query('delete from webhook_events where id = $1', [first]);
    expect(await left()).toEqual([second]);
    await db.query('delete from webhook_endpoints where id = $1', [second]);
    expect(await left()).toEqual([]);
    expect(await db.query('select 1 as one from webhook_attempts')).toEqual([]);
  });
});
