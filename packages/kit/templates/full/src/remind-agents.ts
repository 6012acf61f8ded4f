import { job } from 'kit/contrib/jobs';
import { publish } from 'kit/contrib/webhooks';
import { z } from 'zod';

interface Waiting {
  readonly organization_id: string;
  readonly tickets: number | string;
}

/** Every morning: tells each organization, by webhook, how many urgent tickets are open. */
export const remindAgents = job('tickets.remind', {
  input: z.object({}),
  result: z.object({ organizations: z.int() }),
  schedule: { cron: '0 7 * * *', timeZone: 'UTC', input: {} },
  run: ({ commit }) =>
    // The events and "succeeded" are one transaction: a job that is run again sends nothing twice.
    commit(async (tx) => {
      const waiting = await tx.query<Waiting>(
        "select organization_id, count(*) as tickets from tickets where status = 'open' and priority = 'urgent' group by organization_id",
      );
      for (const { organization_id, tickets } of waiting)
        await publish(tx, 'tickets.waiting', { urgent: Number(tickets) }, { tenantKey: organization_id });
      return { organizations: waiting.length };
    }),
});
