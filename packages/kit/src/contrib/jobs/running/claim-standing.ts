import { type Hindrance, hindranceOf } from '../../../auth/rights/standing.ts';
import type { JobDefinition } from '../declare/job.ts';
import type { Jobs } from '../rows/jobs.ts';
import type { Claim } from './claim-store.ts';

/** Why the owner of a job may not act. A directory that cannot be read is an error: the attempt fails, and the next one asks again. */
export async function ownerHindrance(
  { registry, usersDatabase }: Jobs,
  { owner_id: userId, tenant_key: tenant }: Claim,
): Promise<Hindrance | null> {
  const [standing] = await registry.standings.of(usersDatabase, [{ userId, tenant }]);
  return standing === undefined ? 'not_known' : hindranceOf(standing);
}

/** Whether nobody works in the tenant of a job for now. Tenants of the app's own are asked through the owner. */
export async function isSuspended(jobs: Jobs, claim: Claim, { actsForOwner }: JobDefinition): Promise<boolean> {
  const { tenant_key: tenant } = claim;
  if (tenant === '') return false;
  const { directory } = jobs.registry.tenants;
  if (directory?.suspended !== undefined) return (await directory.suspended(jobs.usersDatabase, [tenant])).has(tenant);
  return actsForOwner && (await ownerHindrance(jobs, claim)) === 'suspended';
}
