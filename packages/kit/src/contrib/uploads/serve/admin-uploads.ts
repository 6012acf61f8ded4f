import type { AdminContext, AdminUploads, AttachedFile } from '../../../app/admin/declaration.ts';
import type { AdminFileTarget } from '../../../app/admin/shapes.ts';
import type { App } from '../../../app/declare/module.ts';
import type { Db } from '../../../db/engine/db.ts';
import { uploads } from '../models.ts';
import type { CompletePolicy } from '../declare/policy.ts';
import { recordChange } from '../rows/record-change.ts';
import { changeOwner } from '../rows/store.ts';
import { requireUpload } from '../rows/upload-ref.ts';
import type { UploadStore } from '../declare/upload-store.ts';

/** Forms of the admin site take files through the mounted controllers, under the policy of each. */
export function adminUploads(store: UploadStore): AdminUploads {
  return {
    table: uploads.name,
    targets: (app) => new Map(policiesIn(app as App).map(([path, policy]) => [path, targetOf(path, policy)])),
    origin: () => store.origin ?? null,
    attach,
  };
}

function policiesIn({ routes }: App): [string, CompletePolicy][] {
  return routes.flatMap(({ path, metadata }): [string, CompletePolicy][] => {
    const policy = (metadata['uploads'] as { readonly policy?: CompletePolicy } | undefined)?.policy;
    return policy === undefined ? [] : [[path, policy]];
  });
}

function targetOf(endpoint: string, { contentTypes, bytesMax }: CompletePolicy): AdminFileTarget {
  return { endpoint, contentTypes, bytesMax };
}

/** Staff send a file for the owner of a record: it becomes the owner's, who can then see it wherever the record shows it. */
async function attach(tx: Db, { principal, requestId, tenant }: AdminContext, { id, location, owner }: AttachedFile): Promise<void> {
  const scope = { owner: principal.user.id, tenantKey: (await tenant()) ?? '' };
  const before = await requireUpload(tx, scope, id, location);
  if (owner === null || owner.id === before.owner_id) return;
  const after = await changeOwner(tx, before.id, { owner: owner.id, tenantKey: owner.tenantKey ?? before.tenant_key });
  await recordChange(tx, 'owner_changed', { before, after }, { by: principal, requestId });
}
