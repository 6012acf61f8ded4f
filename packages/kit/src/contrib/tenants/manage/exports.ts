import { CONFLICT_RETRIES } from '../../../db/engine/conflict-retries.ts';
import type { Db } from '../../../db/engine/db.ts';
import { findBy } from '../../../db/rows/repository.ts';
import type { Principal } from '../../../auth/people/principal.ts';
import { type StoredExport, StoredExports } from '../../../crud/subjects/stored-exports.ts';
import { coreErrors } from '../../../errors/core-errors.ts';
import { jsonSchema } from '../../../http/declare/json-schema.ts';
import { job } from '../../jobs/declare/job.ts';
import { findJob } from '../../jobs/rows/store.ts';
import { startJob } from '../../jobs/start/start-job.ts';
import { tenantsIn } from '../declare/tenants.ts';
import { tenantErrors } from '../errors.ts';
import { tenantExportParts, tenantExports, tenants } from '../models.ts';
import { findMember } from '../rows/store.ts';
import { lockedFor, requireOwner } from './actor.ts';

/** The newest export of each tenant. */
export const storedExports = new StoredExports({
  kind: 'tenant',
  exports: tenantExports,
  parts: tenantExportParts,
  key: 'tenant_id',
  program: 'tenants.export',
});

interface TenantExport extends StoredExport {
  readonly job_id: string | null;
}

/** Days in which an export can be downloaded. */
const EXPORT_DAYS = 7;

/** Writes the archive of a tenant. A run that is killed is repeated by the next attempt; in a suspended tenant it waits. */
export const exportJob = job('tenants.export', {
  input: jsonSchema<{ readonly tenant: string }>({
    type: 'object',
    properties: { tenant: { type: 'string', maxLength: 36 } },
    required: ['tenant'],
    additionalProperties: false,
  }),
  actsForOwner: true,
  retry: { attempts: 10, firstDelaySeconds: 10, delaySecondsMax: 3600 },
  timeoutMs: 6 * 3_600_000,
  async run({ db, input, owner, signal, progress }) {
    const { app } = tenantsIn(db);
    const claimed = await storedExports.claim(db, input.tenant);
    if (claimed === undefined) return;
    await storedExports.write(app, claimed, {
      days: EXPORT_DAYS,
      signal,
      async onProgress(percent) {
        // The role may be lost while it is written.
        await requireOwning(db, input.tenant, owner);
        await progress(percent);
      },
    });
  },
});

/** Asks for an export, for an owner. One that is under way stays as it is; a new one takes the place of an older. */
export async function requestTenantExport(db: Db, tenantId: string, by: Principal): Promise<StoredExport> {
  const { registry } = tenantsIn(db);
  if (registry.jobs === null) throw tenantErrors.exports_unavailable();
  return db.transaction(async (tx) => {
    const { tenant, actor } = await lockedFor(tx, tenantId, by);
    requireOwner(tx, actor);
    const known = await currentExport(tx, tenant.id);
    if (known?.state === 'waiting' || known?.state === 'running') return known;
    const started = await startJob(tx, exportJob, { tenant: tenant.id }, { owner: by.user.id, tenantKey: tenant.id });
    return storedExports.request(tx, tenant.id, { job_id: started.id, requested_by: by.user.id });
  }, CONFLICT_RETRIES);
}

/** The export of a tenant as it is now, for its owners. */
export async function readTenantExport(db: Db, tenantId: string, by: Principal): Promise<StoredExport> {
  await requireActiveOwner(db, tenantId, by);
  return (await currentExport(db, tenantId)) ?? missing();
}

/** The bytes of an export that is ready. Every part asks again whether the person is an owner. */
export async function* tenantArchive(db: Db, tenantId: string, found: StoredExport, by: Principal): AsyncGenerator<Uint8Array> {
  for await (const part of storedExports.bytes(db, tenantId, found)) {
    await requireActiveOwner(db, tenantId, by);
    yield part;
  }
}

async function requireActiveOwner(db: Db, tenantId: string, { user }: Principal): Promise<void> {
  const tenant = await findBy(db, tenants, { id: tenantId });
  if (tenant === undefined || tenant.state === 'deleting') throw tenantErrors.tenant_not_found();
  await requireOwning(db, tenantId, user.id);
  if (tenant.suspended_at !== null) throw coreErrors.tenant_suspended();
}

async function requireOwning(db: Db, tenant: string, userId: string): Promise<void> {
  const member = await findMember(db, tenant, userId);
  if (member === null) throw tenantErrors.tenant_not_found();
  requireOwner(db, { userId, roles: member.roles });
}

/** One whose job has ended without it has failed: its owner has left, or staff have cancelled the job. */
async function currentExport(db: Db, tenant: string): Promise<StoredExport | undefined> {
  const found = (await storedExports.find(db, tenant)) as TenantExport | undefined;
  if (found === undefined || found.state === 'ready' || found.state === 'failed') return found;
  const running = found.job_id === null ? null : await findJob(db, found.job_id);
  return running === null || running.finished_at !== null ? { ...found, state: 'failed' } : found;
}

function missing(): never {
  throw tenantErrors.export_not_found();
}
