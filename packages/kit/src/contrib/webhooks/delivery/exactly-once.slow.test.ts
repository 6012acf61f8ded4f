import { expect, test } from 'vitest';
import { sendWithWorkers } from '../../../../test/webhooks/send-with-workers.ts';
import { describeDatabases } from '../../../testing/databases.ts';

/** The long version: KIT_DELIVERIES=20000, as `npm run test:webhook-exactly-once` sets it. */
const deliveries = Number(process.env['KIT_DELIVERIES'] ?? '1000');
const MINUTES = 60_000;

describeDatabases('several workers', (database) => {
  test(
    'four of them at once send every delivery exactly once when nothing fails',
    async () => {
      const result = await sendWithWorkers({ database: database.db, url: database.url, workers: 4, deliveries });
      console.info(`four workers (${database.dialect}): ${JSON.stringify(result)}`);
      expect(result).toMatchObject({ sent: deliveries, received: deliveries, succeeded: deliveries, attempts: deliveries, lost_claims: 0 });
      // Otherwise one worker would have had no rival, and the test would show nothing.
      expect(result.workers_that_sent).toBe(4);
    },
    30 * MINUTES,
  );
});
