import { t } from '../../db/declare/column.ts';
import { model } from '../../db/declare/model.ts';
import { UPLOAD_STATES } from './declare/upload-state.ts';
import { IDENTITY_LENGTH_MAX } from '../../db/values/identity-length.ts';

const columns = () => ({
  id: t.uuidv7().pk(),
  /** The owner's key in the app's user table, whatever its type there. */
  owner_id: t.text(IDENTITY_LENGTH_MAX).person(),
  /** Empty: personal. */
  tenant_key: t.text(IDENTITY_LENGTH_MAX).tenant(),
  state: t.enum(UPLOAD_STATES),
  filename: t.text(255).personal(),
  content_type: t.text(255),
  size: t.bigint(),
  /** SHA-256 in base64, as announced. */
  checksum_sha256: t.text(44).nullable(),
  /** Where the client's bytes go. */
  pending_key: t.text(700).unique(),
  /** Where they are once verified. No client ever gets an address for it to write to. */
  final_key: t.text(700).nullable().unique(),
  /** Of the final object: what was verified is what is handed out. */
  etag: t.text(300).nullable(),
  version_id: t.text(1024).nullable(),
  multipart_id: t.text(1024).nullable(),
  part_size: t.int().nullable(),
  /** Disk store: when the signed address was used. */
  received_at: t.timestamp().nullable(),
  reason: t.text(300).nullable(),
  created_at: t.timestamp(),
  /** Until when bytes may be sent. */
  expires_at: t.timestamp(),
  /** Until when the upload may be completed. */
  complete_by: t.timestamp(),
  completed_at: t.timestamp().nullable(),
  scan_due_at: t.timestamp().nullable(),
  scan_attempts: t.int(),
});

const options = {
  guarded: true,
  indexes: [
    { columns: ['owner_id', 'tenant_key', 'state'] },
    { columns: ['state', 'complete_by'] },
    { columns: ['state', 'scan_due_at'] },
    { columns: ['state', 'id'] },
    { columns: ['owner_id', 'id'] },
    { columns: ['tenant_key', 'id'], where: "tenant_key <> ''", name: 'uploads_of_tenant' },
  ],
};

/** What `uploadRef()` columns refer to: its resource says which uploads a client may refer to. */
export const uploads = model('uploads', columns(), options);

/** The same table as staff see it, whatever clients may refer to. */
export const uploadRecords = model('uploads', columns(), options);

/** Objects to remove from the store: written with the change that makes them superfluous, deleted once the store has removed them. */
export const uploadRemovals = model(
  'upload_removals',
  {
    id: t.uuidv7().pk(),
    key: t.text(700),
    multipart_id: t.text(1024).nullable(),
    due_at: t.timestamp(),
    attempts: t.int(),
    created_at: t.timestamp(),
    /** Whose quota the object counts for until it is removed; null where none. */
    owner_id: t.text(IDENTITY_LENGTH_MAX).nullable().person({ erase: 'unlink' }),
    tenant_key: t.text(IDENTITY_LENGTH_MAX).nullable().tenant({ erase: 'keep' }),
    size: t.bigint().nullable(),
  },
  { guarded: true, indexes: [{ columns: ['due_at'] }, { columns: ['key'] }, { columns: ['owner_id', 'tenant_key'] }] },
);

/** One row per owner, written by every new upload under a quota: they wait for one another there. */
export const uploadOwners = model(
  'upload_owners',
  { owner_id: t.text(IDENTITY_LENGTH_MAX).person(), tenant_key: t.text(IDENTITY_LENGTH_MAX).tenant(), changed_at: t.timestamp() },
  { guarded: true, primaryKey: ['owner_id', 'tenant_key'] },
);
