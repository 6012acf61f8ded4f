import { model } from '../../db/declare/model.ts';
import { t } from '../../db/declare/column.ts';

/** Users whose ban, role, provisioning or deletion the other modules have not been notified of. Triggers write it, so no program can forget to. */
export const userChanges = model('better_auth_user_changes', { user_id: t.text(255).pk().person() }, { guarded: true });

/** Users who have left organizations, and whom the other modules have not been notified of. Written by triggers, too. */
export const memberChanges = model(
  'better_auth_member_changes',
  { user_id: t.text(255).person(), organization_id: t.text(255).tenant() },
  { guarded: true, primaryKey: ['user_id', 'organization_id'] },
);

export const SUSPENDED_REASON_MAX = 300;

/** Organizations that nobody works in for now: better-auth has no such state. */
export const suspensions = model(
  'better_auth_suspensions',
  { organization_id: t.text(255).pk().tenant(), suspended_at: t.timestamp(), reason: t.text(SUSPENDED_REASON_MAX).nullable() },
  { guarded: true },
);

/** One-time codes that have opened a session: a code works once. */
export const usedCodes = model(
  'better_auth_used_codes',
  { user_id: t.text(255).person(), code_digest: t.text(64).sensitive(), used_at: t.timestamp() },
  { guarded: true, primaryKey: ['user_id', 'code_digest'], indexes: [{ columns: ['used_at'] }] },
);
