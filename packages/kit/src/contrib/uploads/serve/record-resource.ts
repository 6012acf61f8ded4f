import { resource } from '../../../crud/checks/declare-resource.ts';
import { uploadErrors } from '../errors.ts';
import { removeUpload } from '../life/delete.ts';
import { uploadRecords } from '../models.ts';

/** Uploads of every owner and state, for staff. They are sent by their owners; here they can be deleted. */
export const uploadRecordResource = resource(uploadRecords, {
  changes: 'trigger',
  name: 'upload',
  missing: uploadErrors.upload_not_found,
  audiences: { staff: { rows: true, tenant: 'all' } },
  hidden: ['pending_key', 'final_key', 'etag', 'version_id', 'multipart_id', 'part_size', 'received_at', 'scan_due_at', 'scan_attempts'],
  writes: 'verbs',
  hooks: { destroy: ({ before, tx, principal: by, requestId }) => removeUpload(tx, null, before.id, { by, requestId }) },
});
