import { model } from '../../db/model.ts';
import { t } from '../../db/column.ts';
import { timestamps } from '../../db/standard-columns.ts';

/** Written by the functions of this module, which keep log-in names unique, end sessions and record who did it. */
export const users = model('users', {
  id: t.uuidv7().pk(),
  /** Lower case, without `@`: see login-name.ts. */
  username: t.text({ min: 1, max: 150 }).unique().guarded(),
  /** Lower case. */
  email: t.text(254).nullable().unique().guarded(),
  is_active: t.bool().dbDefault(true).guarded(),
  is_staff: t.bool().dbDefault(false).guarded(),
  is_superuser: t.bool().dbDefault(false).guarded(),
  password_hash: t.text(255).nullable().sensitive().guarded(),
  ...timestamps(),
});

export const groups = model(
  'groups',
  {
    id: t.uuidv7().pk(),
    /** Empty: of no tenant, and so of all of them. */
    tenant_key: t.text(200).dbDefault(''),
    name: t.text({ min: 1, max: 150 }),
    ...timestamps(),
  },
  { guarded: true, indexes: [{ columns: ['tenant_key', 'name'], unique: true }] },
);

export const groupMembers = model(
  'group_members',
  {
    group_id: t.ref(() => groups, { onDelete: 'cascade' }),
    user_id: t.ref(() => users, { onDelete: 'cascade' }),
    created_at: t.timestamp(),
  },
  { guarded: true, primaryKey: ['user_id', 'group_id'], indexes: [{ columns: ['group_id', 'user_id'] }] },
);

export const sessions = model(
  'sessions',
  {
    id: t.uuidv7().pk(),
    user_id: t.ref(() => users, { onDelete: 'cascade' }),
    /** SHA-256 of the token in the cookie, in hexadecimal. */
    token_digest: t.text(64).unique().sensitive(),
    created_at: t.timestamp(),
    seen_at: t.timestamp(),
    expires_at: t.timestamp(),
  },
  { guarded: true, indexes: [{ columns: ['user_id'] }, { columns: ['expires_at'] }] },
);
