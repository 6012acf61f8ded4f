import { t } from '../../db/declare/column.ts';
import { model } from '../../db/declare/model.ts';
import { EXPORT_STATES } from '../../crud/subjects/stored-exports.ts';
import { IDENTITY_LENGTH_MAX } from '../../db/values/identity-length.ts';

/** The newest export of each person. */
export const personalExports = model(
  'personal_exports',
  {
    /** The key in the app's user table, whatever its type there. */
    user_id: t.text(IDENTITY_LENGTH_MAX).pk().person(),
    state: t.enum(EXPORT_STATES),
    requested_at: t.timestamp(),
    finished_at: t.timestamp().nullable(),
    expires_at: t.timestamp().nullable(),
    bytes: t.bigint(),
    percent: t.int().dbDefault(0),
    /** Until when a process has it. */
    leased_until: t.timestamp().nullable(),
    /** Changes with every attempt: parts of an earlier one are not among those of the next. */
    attempt: t.uuid().nullable().internal(),
  },
  {
    guarded: true,
    indexes: [
      { columns: ['state', 'leased_until'] },
      { columns: ['expires_at'], where: 'expires_at is not null', name: 'personal_exports_expiring' },
    ],
  },
);

/** The archive of an export, in parts: every process can send it, and no file is left behind. */
export const personalExportParts = model(
  'personal_export_parts',
  {
    user_id: t.ref(() => personalExports, { onDelete: 'cascade' }),
    attempt: t.uuid().internal(),
    number: t.int(),
    data: t.bytes().internal(),
  },
  { guarded: true, primaryKey: ['user_id', 'attempt', 'number'] },
);
