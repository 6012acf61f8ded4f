import pg from 'pg';
import { expect, test } from 'vitest';
import { startPostgresServer } from '../../../../../../test/provision/postgres-server.ts';
import { LOOPBACK, migrateWebhooks } from '../../../../test/webhooks/outbox.ts';
import { openDatabase, type Db } from '../../../db/index.ts';
import { WAKE_INTERVAL_MS } from '../../../work/wake-workers.ts';
import { createEndpoint } from '../endpoints/create-endpoint.ts';
import { unbindWebhooks, useWebhooks } from '../webhooks.ts';
import { publish } from './publish.ts';
import { WAKE_CHANNEL } from './publish-store.ts';

const CONNECTIONS = 190;
const EVENTS = 20_000;

/** Publishes on all connections at once; returns events per second. */
async function publishAll(work: (event: number) => Promise<unknown>): Promise<number> {
  const start = performance.now();
  let next = 0;
  const publisher = async (): Promise<void> => {
    while (next < EVENTS) await work(next++);
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, publisher));
  return (EVENTS / (performance.now() - start)) * 1000;
}

test(`${CONNECTIONS} connections publish beside a listener that lags: few notifications, and each commit is free of them`, async () => {
  const server = await startPostgresServer({ durable: true });
  const db = await openDatabase(server.url, { poolMax: CONNECTIONS });
  const [lagging, prompt] = [new pg.Client({ connectionString: server.url }), new pg.Client({ connectionString: server.url })];
  try {
    await migrateWebhooks(db);
    useWebhooks(db, { urlPolicy: LOOPBACK });
    await db.transaction((tx) => createEndpoint(tx, { owner: 'ada', url: 'http://127.0.0.1:9/', events: ['*'] }));
    await Promise.all([lagging.connect(), prompt.connect()]);
    let heard = 0;
    prompt.on('notification', () => (heard += 1));
    await prompt.query(`listen ${WAKE_CHANNEL}`);
    // A backend in a transaction reads no notifications: the queue keeps them for it.
    await lagging.query(`listen ${WAKE_CHANNEL}`);
    await lagging.query('begin');

    const start = performance.now();
    const afterCommit = await publishAll(() => db.transaction((tx) => publish(tx, 'order.paid', {}, { owner: 'ada' })));
    const most = (performance.now() - start) / WAKE_INTERVAL_MS + 2;
    await prompt.query('select 1');
    const notifications = heard;
    expect(notifications).toBeGreaterThanOrEqual(1);
    expect(notifications).toBeLessThanOrEqual(most);
    const [row] = await db.query<{ count: number; used: number }>(
      'select (select count(*) from webhook_deliveries) as count, pg_notification_queue_usage() as used',
    );
    expect(row).toMatchObject({ count: EVENTS });
    expect(row?.used).toBeLessThan(0.01);

    // As a library without a commit hook has it.
    const inside = (tx: Db) => ({ dialect: tx.dialect, isTransaction: true, query: tx.query.bind(tx) });
    const withCommit = await publishAll(() => db.transaction((tx) => publish(inside(tx), 'order.paid', {}, { owner: 'ada' })));
    console.info(
      `${CONNECTIONS} connections: ${Math.round(afterCommit)}/s with ${notifications} notifications after commits, ${Math.round(withCommit)}/s with one in each`,
    );
  } finally {
    unbindWebhooks(db);
    await Promise.all([lagging.end(), prompt.end()]);
    await db.close();
    await server.stop();
  }
});
