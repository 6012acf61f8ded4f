import { expect, test } from 'vitest';
import { checkDrift, migrate, uuidv7 } from '../../../db/index.ts';
import { describeDatabases } from '../../../testing/index.ts';
import { webhookModels } from '../models.ts';
import { publish } from '../publishing/publish.ts';
import { unbindWebhooks, useWebhooks } from '../webhooks.ts';
import { deliveryReferences } from './0009_delivery_references.ts';
import { valueDomains } from './0011_value_domains.ts';
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

describeDatabases('the upgrade of publishing', (database) => {
  test('endpoints of the release before get the events that are published after it, and its processes go on publishing meanwhile', async () => {
    const { db } = database;
    await migrate(db, [{ name: 'webhooks', migrations: webhookMigrations.slice(0, webhookMigrations.indexOf(valueDomains)) }]);
    useWebhooks(db);
    try {
      const now = new Date('2026-03-01T12:00:00.000Z');
      // As the release before wrote it: today's code may know columns that it did not.
      const endpoint = { id: uuidv7() };
      await db.query(
        `insert into webhook_endpoints (id, owner_id, url, events, secret, created_at, updated_at) values ($1, 'ada', 'https://example.com/', $2, 'x', $3, $3)`,
        [endpoint.id, ['order.*'], now],
      );
      await db.query(`insert into webhook_subscriptions (endpoint_id, owner_id, tenant_key, pattern) values ($1, 'ada', '', 'order.*')`, [
        endpoint.id,
      ]);
      const publishBefore = async (id: string) => {
        await db.query(
          `insert into webhook_events (id, type, data, timestamp, audience, owner_id) values ($1, 'order.paid', '{}', $2, 'owner', 'ada')`,
          [id, now],
        );
        await db.query(
          `insert into webhook_deliveries (id, event_id, endpoint_id, event_type, next_attempt_at, created_at) values ($1, $1, $2, 'order.paid', $3, $3)`,
          [id, endpoint.id, now],
        );
      };
      const [before, meanwhile] = [uuidv7(), uuidv7()];
      await publishBefore(before);
      await migrate(db, modules);
      await publishBefore(meanwhile);
      const { id, deliveries } = await db.transaction((tx) => publish(tx, 'order.paid', {}, { owner: 'ada' }));
      expect(deliveries).toBe(1);
      for (const [table, column] of [
        ['webhook_events', 'audience'],
        ['webhook_deliveries', 'status'],
        ['webhook_deliveries', 'failure_reason'],
      ] as const) {
        const invalid = db.query(`update ${table} set ${column} = 'pen' where id = $1`, [before]);
        await expect(invalid, `${table}.${column}`).rejects.toThrow(new RegExp(`${table}_${column}_check|CHECK constraint failed`));
      }
      expect(await checkDrift(modules, db)).toEqual({ models: [], database: [], additions: [] });
      const rows = await db.query<{ event_id: string }>('select event_id from webhook_deliveries where endpoint_id = $1', [endpoint.id]);
      expect(rows.map(({ event_id }) => event_id).sort()).toEqual([before, meanwhile, id].sort());
    } finally {
      unbindWebhooks(db);
    }
  });
});
