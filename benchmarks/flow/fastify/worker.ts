import { eq, sql } from 'drizzle-orm';
import { run } from 'graphile-worker';
import { Webhook } from 'standardwebhooks';
import { db, pool } from './database.ts';
import { endpoints } from './schema.ts';

interface Delivery {
  readonly endpoint: string;
  readonly event: { readonly id: string; readonly type: string; readonly timestamp: string; readonly data: object };
}

const endpointOf = db
  .select()
  .from(endpoints)
  .where(eq(endpoints.id, sql.placeholder('id')))
  .prepare('endpoint_of');

async function deliver(payload: unknown): Promise<void> {
  const { endpoint: id, event } = payload as Delivery;
  const [endpoint] = await endpointOf.execute({ id });
  if (endpoint === undefined) return;
  const { type, timestamp, data } = event;
  const body = JSON.stringify({ type, timestamp, data });
  const now = new Date();
  const response = await fetch(endpoint.url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'webhook-id': event.id,
      'webhook-timestamp': String(Math.floor(now.getTime() / 1000)),
      'webhook-signature': new Webhook(endpoint.secret).sign(event.id, now, body),
    },
    body,
    redirect: 'manual',
    signal: AbortSignal.timeout(15_000),
  });
  await response.arrayBuffer();
  if (!response.ok) throw new Error(`the endpoint answered ${response.status}`);
}

const runner = await run({
  pgPool: pool,
  taskList: { deliver },
  // Its batching: jobs are fetched, completed and failed together.
  preset: { worker: { concurrentJobs: 100, localQueue: { size: 200 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 } },
});
await runner.promise;
