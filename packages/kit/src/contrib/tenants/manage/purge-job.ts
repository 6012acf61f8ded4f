import { jsonSchema } from '../../../http/declare/json-schema.ts';
import { job } from '../../jobs/declare/job.ts';
import { purgeTenants } from './purge.ts';

/** Deletes tenants whose grace is over. Without jobs(), `kit tenant purge` does. */
export const purgeJob = job('tenants.purge', {
  input: jsonSchema<object>({ type: 'object' }),
  schedule: { cron: '17 * * * *', input: {} },
  async run({ db }) {
    await purgeTenants(db, { by: 'tenants.purge' });
  },
});
