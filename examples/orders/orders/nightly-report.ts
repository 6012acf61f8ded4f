import { job } from 'kit/contrib/jobs';
import { z } from 'zod';
import { countByStatus } from './store.ts';

/** How many orders are open, paid and cancelled, every night. */
export const nightlyReport = job('orders.nightly-report', {
  input: z.object({}),
  result: z.object({ open: z.int(), paid: z.int(), cancelled: z.int() }),
  schedule: { cron: '0 3 * * *', timeZone: 'Europe/Berlin', missed: 'once', input: {} },
  async run({ db, log }) {
    const counts = await countByStatus(db);
    log.info(counts, 'nightly report');
    return counts;
  },
});
