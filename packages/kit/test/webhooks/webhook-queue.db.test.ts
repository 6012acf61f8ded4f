import { run as runGraphile, runMigrations } from 'graphile-worker';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { isBehindPooler } from '../../../../test/provision/behind-pooler.ts';
import { unbindJobs, useJobs } from '../../src/contrib/jobs/rows/jobs.ts';
import { graphileQueue } from '../../src/contrib/jobs/queues/graphile-queue.ts';
import { ImmediateTaskQueue } from '../../src/contrib/jobs/queues/test-queues.ts';
import { runDueJobs } from '../../src/contrib/jobs/manage/work-jobs.ts';
import { publish } from '../../src/contrib/webhooks/publishing/publish.ts';
import { webhookQueue, type WebhookQueue } from '../../src/contrib/webhooks/delivery/webhook-queue.ts';
import { migrateJobs } from '../jobs/describe-jobs.ts';
import { describeOutbox } from './outbox.ts';

describeOutbox('webhooks delivered by the engine of the jobs', (outbox) => {
  const published = (owner: string, queue: WebhookQueue) => outbox.db.transaction((tx) => publish(tx, 'order.paid', {}, { owner, queue }));
  const jobRows = () => outbox.db.query<{ status: string }>(`select status from jobs where name = 'webhooks.deliver'`);
  beforeAll(async () => void (await migrateJobs(outbox.db)));
  afterAll(() => unbindJobs(outbox.db));

  test('a committed event is delivered by a job at once, a rolled-back one is not', async () => {
    const taskQueue = new ImmediateTaskQueue();
    const queue = webhookQueue(taskQueue);
    useJobs(outbox.db, { jobs: [queue.job], taskQueue });
    const owner = outbox.owner();
    await outbox.endpoint({ owner });
    const rolledBack = outbox.db.transaction(async (tx) => {
      await publish(tx, 'order.paid', {}, { owner, queue });
      throw new Error('no');
    });
    await expect(rolledBack).rejects.toThrow('no');
    await published(owner, queue);
    await vi.waitUntil(() => outbox.receiver.of(`/${owner}`).length > 0, { timeout: 300_000 });
    await taskQueue.settled();
    expect(outbox.receiver.of(`/${owner}`)).toHaveLength(1);
    expect(await jobRows()).toEqual([{ status: 'succeeded' }]);
    unbindJobs(outbox.db);
  });

  test('without another engine the job worker delivers; a receiver that fails is left to the webhook worker', async () => {
    const queue = webhookQueue();
    useJobs(outbox.db, { jobs: [queue.job] });
    const owner = outbox.owner();
    const endpoint = await outbox.endpoint({ owner });
    outbox.receiver.answer(`/${owner}`, 503);
    await published(owner, queue);
    await vi.waitUntil(async () => (await runDueJobs(outbox.db)).succeeded > 0, { timeout: 300_000 });
    expect(outbox.receiver.of(`/${owner}`)).toHaveLength(1);
    expect(await outbox.deliveries({ endpoint: endpoint.id })).toMatchObject([{ status: 'pending', attempts: 1 }]);
    unbindJobs(outbox.db);
  });

  test('another task queue than that of the jobs is refused, and the event is there for the webhook worker', async () => {
    useJobs(outbox.db, { jobs: [] });
    const warned = new Promise((resolve) => void process.once('warning', resolve));
    const owner = outbox.owner();
    await expect(webhookQueue(new ImmediateTaskQueue()).enqueue('e1', 'default', { database: outbox.db })).rejects.toThrow(
      'give both the same one',
    );
    const { id } = await published(owner, webhookQueue(new ImmediateTaskQueue()));
    expect(id).toBeDefined();
    await Promise.race([warned, new Promise((resolve) => setImmediate(resolve))]);
    unbindJobs(outbox.db);
  });

  test.runIf(process.env['DATABASE_URL'] !== 'none')('graphile-worker delivers on PostgreSQL', async ({ skip }) => {
    if (outbox.db.dialect !== 'postgres') return skip('graphile-worker is for PostgreSQL');
    const taskQueue = graphileQueue();
    const queue = webhookQueue(taskQueue);
    useJobs(outbox.db, { jobs: [queue.job], taskQueue });
    await runMigrations({ connectionString: outbox.database.url });
    const owner = outbox.owner();
    await outbox.endpoint({ owner });
    const runner = await runGraphile({
      connectionString: outbox.database.url,
      taskList: taskQueue.taskList(outbox.db),
      noHandleSignals: true,
      noPreparedStatements: isBehindPooler(),
      pollInterval: 100,
    });
    try {
      await published(owner, queue);
      await vi.waitUntil(() => outbox.receiver.of(`/${owner}`).length === 1, { timeout: 300_000 });
    } finally {
      await runner.stop();
    }
    return undefined;
  });
});
