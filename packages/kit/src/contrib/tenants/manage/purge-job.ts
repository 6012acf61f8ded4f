import { jsonSchema } from '../../../http/declare/json-schema.ts';
import { job } from '../../jobs/declare/job.ts';
import { storedExports } from './exports.ts';
import { purgeTenants } from './purge.ts';

/** Deletes exports that have expired, and tenants whose grace is over. Without jobs(), `kit tenant purge` does. */
export const purgeJob = job('tenants.purge', {
  input: jsonSchema<object>({ type: 'object' }),
  schedule: { cron: '17 * * * *', input: {} },
  async run({ db }) {
    await storedExports.removeExpired(db);
    await purgeTenants(db, { by: 'tenants.purge' });
  },
});
