import { expect, test } from 'vitest';
import { sendWithWorkers } from '../../../../test/webhooks/send-with-workers.ts';
import { describeDatabases } from '../../../testing/databases.ts';

const deliveries = 20_000;
const MINUTES = 60_000;

describeDatabases('several workers', (database) => {
  test(
    'four of them at once send every delivery exactly once when nothing fails',
    async () => {
      const result = await sendWithWorkers({ database: database.db, url: database.url, workers: 4, deliveries });
      console.info(`four workers (${database.dialect}): ${JSON.stringify(result)}`);
      const { published } = result;
      expect(published).toBeGreaterThanOrEqual(deliveries);
      expect(result).toMatchObject({ sent: published, received: published, succeeded: published, attempts: published, lost_claims: 0 });
      // All four competed for the deliveries; with fewer the test would show less.
      expect(result.workers_that_sent).toBe(4);
    },
    30 * MINUTES,
  );
});
