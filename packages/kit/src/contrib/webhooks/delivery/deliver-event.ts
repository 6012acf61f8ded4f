import type { Database } from '../../../db/engine/db.ts';
import type { DeliverySummary } from './result-writer.ts';
import { webhooksNamed, webhooksOf } from '../webhooks.ts';
import { DeliveryWorker } from './worker.ts';

/**
 * Sends the due deliveries of one event once: what a task of a queue does with the event's id and the database alias.
 * Failed attempts are retried by a worker.
 */
export async function deliverEvent(eventId: string, using: string | Database = 'default'): Promise<DeliverySummary> {
  const worker = new DeliveryWorker(typeof using === 'string' ? webhooksNamed(using) : webhooksOf(using));
  try {
    return await worker.runOnce({ eventId });
  } finally {
    await worker.stop();
  }
}
