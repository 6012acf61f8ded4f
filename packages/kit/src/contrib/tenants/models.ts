import { t } from '../../db/declare/column.ts';
import { model } from '../../db/declare/model.ts';
import { EXPORT_STATES } from '../../crud/subjects/stored-exports.ts';
import { IDENTITY_LENGTH_MAX } from '../../db/values/identity-length.ts';
import { SLUG_LENGTH_MAX } from './declare/slug.ts';

/** `deleting`: nobody acts in it any more; it is deleted when its grace is over, unless an owner restores it. */
export const TENANT_STATES = ['active', 'deleting'] as const;
export const NAME_LENGTH_MAX = 150;
export const SUSPENDED_REASON_MAX = 300;

/** Customers of the app. Rows of other tables belong to one by its `id`. */
export const tenants = model(
  'tenants',
  {
    id: t.uuidv7().pk().tenant(),
    slug: t.text({ min: 1, max: SLUG_LENGTH_MAX }).unique().describe('Names the tenant in requests, as its `id` does.'),
    name: t.text({ min: 1, max: NAME_LENGTH_MAX }),
    state: t.enum(TENANT_STATES),
    created_at: t.timestamp(),
    updated_at: t.timestamp(),
    deletes_at: t.timestamp().nullable().describe('When the tenant is deleted permanently.'),
    suspended_at: t.timestamp().nullable().describe('Since when nobody can work in the tenant; null: it is not suspended.'),
    suspended_reason: t.text(SUSPENDED_REASON_MAX).nullable().describe('Why it is suspended, for its members.'),
  },
  { guarded: true, indexes: [{ columns: ['deletes_at'], where: 'deletes_at is not null', name: 'tenants_deleting' }] },
);

/** Who is in which tenant. */
export const tenantMembers = model(
  'tenant_members',
  {
    id: t.uuidv7().pk(),
    tenant_id: t.ref(() => tenants, { onDelete: 'cascade' }),
    /** The key in the app's user table, whatever its type there; not a foreign key, because that table may be anyone's. */
    user_id: t.text(IDENTITY_LENGTH_MAX).person(),
    roles: t.array(t.text()).describe('Roles of the member in the tenant.'),
    created_at: t.timestamp(),
    /** Who added the member or sent the invitation; null: a program or staff. */
    added_by: t.text(IDENTITY_LENGTH_MAX).nullable().person({ erase: 'unlink' }),
  },
  {
    guarded: true,
    indexes: [{ columns: ['user_id', 'tenant_id'], unique: true }, { columns: ['tenant_id', 'id'] }],
  },
);

/** Addresses that are invited to a tenant. An invitation that is accepted or revoked is deleted. */
export const tenantInvitations = model(
  'tenant_invitations',
  {
    id: t.uuidv7().pk(),
    tenant_id: t.ref(() => tenants, { onDelete: 'cascade' }),
    /** Lower case. */
    email: t.text(254).describe('The address that is invited.'),
    roles: t.array(t.text()).describe('Roles of the member once the invitation is accepted.'),
    /** SHA-256 of the token, in hexadecimal; null until the mail is sent. */
    token_digest: t.text(64).nullable().unique().sensitive(),
    created_at: t.timestamp(),
    expires_at: t.timestamp(),
    /** Whose rights it depends on; null: sent by a program or staff. */
    invited_by: t.text(IDENTITY_LENGTH_MAX).nullable().person({ erase: 'unlink' }),
  },
  {
    guarded: true,
    indexes: [{ columns: ['tenant_id', 'email'], unique: true }, { columns: ['invited_by'] }, { columns: ['expires_at'] }],
  },
);

/** The newest export of each tenant. */
export const tenantExports = model(
  'tenant_exports',
  {
    tenant_id: t
      .uuid()
      .pk()
      .refersTo(() => tenants)
      .tenant(),
    state: t.enum(EXPORT_STATES),
    requested_at: t.timestamp(),
    /** The owner who asked for it. */
    requested_by: t.text(IDENTITY_LENGTH_MAX).nullable().person({ erase: 'unlink' }),
    finished_at: t.timestamp().nullable(),
    expires_at: t.timestamp().nullable(),
    bytes: t.bigint(),
    percent: t.int().dbDefault(0),
    leased_until: t.timestamp().nullable(),
    /** Changes with every attempt: parts of an earlier one are not among those of the next. */
    attempt: t.uuid().nullable().internal(),
    /** The job that writes it. No foreign key: the job may be pruned. */
    job_id: t.uuid().nullable(),
  },
  {
    guarded: true,
    indexes: [{ columns: ['expires_at'], where: 'expires_at is not null', name: 'tenant_exports_expiring' }],
  },
);

/** The archive of an export, in parts: every process can send it, and no file is left behind. */
export const tenantExportParts = model(
  'tenant_export_parts',
  {
    tenant_id: t.ref(() => tenantExports, { onDelete: 'cascade' }),
    attempt: t.uuid().internal(),
    number: t.int(),
    data: t.bytes().internal(),
  },
  { guarded: true, primaryKey: ['tenant_id', 'attempt', 'number'] },
);
