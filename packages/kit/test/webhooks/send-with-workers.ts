import { setTimeout as pause } from 'node:timers/promises';
import type { DeliverySummary } from '../../src/contrib/webhooks/delivery/result-writer.ts';
import { createEndpoint } from '../../src/contrib/webhooks/endpoints/create-endpoint.ts';
import { publish } from '../../src/contrib/webhooks/publishing/publish.ts';
import { unbindWebhooks, useWebhooks } from '../../src/contrib/webhooks/webhooks.ts';
import type { Database } from '../../src/db/index.ts';
import { Processes } from '../crash/processes.ts';
import { LOOPBACK, migrateWebhooks } from './outbox.ts';
import { startReceiver } from './receiver.ts';

export interface Sent {
  /** Deliveries that were published: those asked for, and more where a worker had not sent one yet. */
  readonly published: number;
  /** Requests that arrived. */
  readonly sent: number;
  /** Deliveries among them. */
  readonly received: number;
  readonly succeeded: number;
  /** Rows of the attempt history. */
  readonly attempts: number;
  readonly lost_claims: number;
  readonly workers_that_sent: number;
  readonly seconds: number;
}

const OWNER = 'exactly-once';
const ENDPOINTS = 20;
const EVENTS_PER_TRANSACTION = 50;
/** Multiples of ENDPOINTS times EVENTS_PER_TRANSACTION are published whole. */
const MORE_DELIVERIES = 1_000;
const PUBLISHED_FACTOR_MAX = 100;
/** Far beyond what a request on loopback takes on a busy machine: nothing may fail here. */
const TIMEOUT_MS = 10 * 60_000;

/** Publishes, and lets worker processes send it all side by side. */
export async function sendWithWorkers(options: {
  readonly database: Database;
  readonly url: string;
  readonly workers: number;
  readonly deliveries: number;
}): Promise<Sent> {
  const { database, url, deliveries } = options;
  const receiver = await startReceiver();
  await migrateWebhooks(database);
  useWebhooks(database, { urlPolicy: LOOPBACK });
  const processes = new Processes<'worker', DeliverySummary>({
    worker: { script: new URL('./worker-process.ts', import.meta.url), args: [url, String(TIMEOUT_MS)] },
  });
  try {
    await database.transaction(async (tx) => {
      for (let n = 0; n < ENDPOINTS; n++) await createEndpoint(tx, { owner: OWNER, url: receiver.url(`/${n}`), events: ['*'] });
    });
    // All of them run before there is anything to send, so that none can finish the work before another has started.
    await Promise.all(Array.from({ length: options.workers }, () => processes.start('worker')));
    const start = performance.now();
    const workersThatSent = (): number => new Set(receiver.received.map(({ headers }) => headers['x-worker'])).size;
    const count = async (where: string): Promise<number> =>
      (await database.query<{ count: number }>(`select count(*) as count from ${where}`))[0]?.count ?? -1;
    let published = 0;
    // A busy machine may leave one of them without a turn for long: then there is more to send, until all have competed.
    do {
      await publishDeliveries(database, published === 0 ? deliveries : MORE_DELIVERIES);
      published += published === 0 ? deliveries : MORE_DELIVERIES;
      while ((await count(`webhook_deliveries where status = 'pending'`)) > 0) await pause(200);
    } while (workersThatSent() < options.workers && published < deliveries * PUBLISHED_FACTOR_MAX);
    const seconds = Math.round((performance.now() - start) / 100) / 10;
    await processes.end('worker');
    return {
      published,
      sent: receiver.received.length,
      received: new Set(receiver.received.map(({ path, headers }) => `${path} ${headers['webhook-id'] as string}`)).size,
      succeeded: await count(`webhook_deliveries where status = 'succeeded'`),
      attempts: await count('webhook_attempts'),
      lost_claims: [...processes.summaries.values()].reduce((sum, each) => sum + each.lost_claims, 0),
      workers_that_sent: workersThatSent(),
      seconds,
    };
  } finally {
    await processes.killAll();
    unbindWebhooks(database);
    await receiver.close();
  }
}

async function publishDeliveries(database: Database, deliveries: number): Promise<void> {
  for (let n = 0; n < deliveries / ENDPOINTS; n += EVENTS_PER_TRANSACTION) {
    const events = Math.min(EVENTS_PER_TRANSACTION, deliveries / ENDPOINTS - n);
    await database.transaction(async (tx) => {
      for (let each = 0; each < events; each++) await publish(tx, 'order.paid', { n: n + each }, { owner: OWNER });
    });
  }
}
