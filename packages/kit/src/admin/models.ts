import { model } from '../db/declare/model.ts';
import { t } from '../db/declare/column.ts';
import { ADMIN_ROLES } from './options.ts';
import { IDENTITY_LENGTH_MAX } from '../db/values/identity-length.ts';

export const SAVED_NAME_LENGTH_MAX = 80;
export const SAVED_QUERY_LENGTH_MAX = 2000;

/** Views of a list that a member of staff gave a name. */
export const savedFilters = model(
  'admin_saved_filters',
  {
    id: t.uuidv7().pk(),
    /** The user's key in the app's user table, whatever its type there; not a foreign key, because that table may be anyone's. */
    user_id: t.text(IDENTITY_LENGTH_MAX).person(),
    resource: t.text(100),
    name: t.text({ min: 1, max: SAVED_NAME_LENGTH_MAX }),
    /** As in the address of the list: `search=ada&filter.state=active&sort=-name`. */
    query: t.text(SAVED_QUERY_LENGTH_MAX),
    /** The least role that sees it, too; null: nobody else. */
    shared_with: t.enum(ADMIN_ROLES).nullable(),
    created_at: t.timestamp(),
  },
  { guarded: true, indexes: [{ columns: ['user_id', 'resource', 'name'], unique: true }, { columns: ['resource', 'shared_with'] }] },
);

export const VIEW_REASON_LENGTH_MAX = 300;

/** Members of staff who look at the application as a user. */
export const views = model(
  'admin_views',
  {
    id: t.uuidv7().pk(),
    staff_id: t.text(IDENTITY_LENGTH_MAX).person(),
    /** The session of the member of staff: the view ends with it. */
    credential_id: t.text(IDENTITY_LENGTH_MAX),
    user_id: t.text(IDENTITY_LENGTH_MAX).person(),
    /** Empty: none. */
    tenant_id: t.text(IDENTITY_LENGTH_MAX).dbDefault('').tenant(),
    reason: t.text({ min: 1, max: VIEW_REASON_LENGTH_MAX }),
    started_at: t.timestamp(),
    expires_at: t.timestamp(),
  },
  {
    guarded: true,
    indexes: [{ columns: ['staff_id'] }, { columns: ['user_id'] }, { columns: ['tenant_id'] }, { columns: ['expires_at'] }],
  },
);

export const ALERT_NAME_LENGTH_MAX = 200;

/** Alerts that fire now; see alerts/check-alerts.ts. */
export const firingAlerts = model(
  'admin_alerts',
  {
    name: t.text(ALERT_NAME_LENGTH_MAX).pk(),
    severity: t.enum(['bad', 'warning']),
    value: t.text(ALERT_NAME_LENGTH_MAX),
    since: t.timestamp(),
  },
  { guarded: true },
);

/** One row: when a process began to check the alerts last. */
export const alertChecks = model('admin_alert_checks', { id: t.int().pk(), began_at: t.timestamp() }, { guarded: true });
