import type { AuditEntry } from '../../../auth/request/audit-sink.ts';
import type { Db } from '../../../db/engine/db.ts';
import { uploadsOf } from './in-use.ts';
import { uploadFacts, type Upload } from '../declare/upload.ts';

export type UploadChange = 'created' | 'quarantined' | 'completed' | 'rejected' | 'expired' | 'deleted' | 'owner_changed';

/** Who changes an upload, and in which request: for the audit entry. */
export interface ChangeContext {
  readonly by?: AuditEntry['actor'];
  readonly requestId?: string | null | undefined;
}

const published: ReadonlySet<UploadChange> = new Set(['completed', 'rejected']);

/** The audit entry and the event, in the transaction of the change. Where the audit or webhook module is not installed, that part is left out. */
export async function recordChange(
  tx: Db,
  change: UploadChange,
  { before, after }: { readonly before: Upload | null; readonly after: Upload | null },
  context: ChangeContext = {},
): Promise<void> {
  const { registry } = uploadsOf(tx);
  const upload = (after ?? before) as Upload;
  await registry.audit?.record(tx, [
    {
      actor: context.by ?? null,
      action: `upload.${change}`,
      target_type: 'upload',
      target_id: upload.id,
      before: before === null ? null : uploadFacts(before),
      after: after === null ? null : uploadFacts(after),
      request_id: context.requestId ?? null,
      tenant: upload.tenant_key,
      metadata: { owner_id: upload.owner_id },
    },
  ]);
  if (!published.has(change)) return;
  const tenant = upload.tenant_key === '' ? {} : { tenantKey: upload.tenant_key };
  await registry.events?.publish(tx, [
    { type: `upload.${change}`, data: { id: upload.id, ...uploadFacts(upload) }, owner: upload.owner_id, ...tenant },
  ]);
}
