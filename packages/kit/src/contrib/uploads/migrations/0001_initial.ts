import { t } from '../../../db/declare/column.ts';
import { migration } from '../../../db/migrations/migration.ts';
import { createTable } from '../../../db/migrations/operation.ts';

export const initial = migration('0001_initial', [
  createTable(
    'uploads',
    {
      id: t.uuidv7().pk(),
      owner_id: t.text(255),
      tenant_key: t.text(255),
      state: t.enum(['pending', 'quarantined', 'complete', 'expired', 'rejected']),
      filename: t.text(255),
      content_type: t.text(255),
      size: t.bigint(),
      checksum_sha256: t.text(44).nullable(),
      pending_key: t.text(700).unique(),
      final_key: t.text(700).nullable().unique(),
      etag: t.text(300).nullable(),
      version_id: t.text(1024).nullable(),
      multipart_id: t.text(1024).nullable(),
      part_size: t.int().nullable(),
      received_at: t.timestamp().nullable(),
      reason: t.text(300).nullable(),
      created_at: t.timestamp(),
      expires_at: t.timestamp(),
      complete_by: t.timestamp(),
      completed_at: t.timestamp().nullable(),
      scan_due_at: t.timestamp().nullable(),
      scan_attempts: t.int(),
    },
    {
      indexes: [
        { columns: ['owner_id', 'tenant_key', 'state'] },
        { columns: ['state', 'complete_by'] },
        { columns: ['state', 'scan_due_at'] },
        // The admin site lists the uploads of a state, newest first, and counts them.
        { columns: ['state', 'id'] },
        // Also those of a user, on the user's page.
        { columns: ['owner_id', 'id'] },
      ],
    },
  ),
  createTable(
    'upload_removals',
    {
      id: t.uuidv7().pk(),
      key: t.text(700),
      multipart_id: t.text(1024).nullable(),
      due_at: t.timestamp(),
      attempts: t.int(),
      created_at: t.timestamp(),
      // A deleted upload counts for its owner's quota until nothing can be sent to its URL any more.
      owner_id: t.text(255).nullable(),
      tenant_key: t.text(255).nullable(),
      size: t.bigint().nullable(),
    },
    { indexes: [{ columns: ['due_at'] }, { columns: ['key'] }, { columns: ['owner_id', 'tenant_key'] }] },
  ),
  createTable(
    'upload_owners',
    { owner_id: t.text(255), tenant_key: t.text(255), changed_at: t.timestamp() },
    { primaryKey: ['owner_id', 'tenant_key'] },
  ),
]);
