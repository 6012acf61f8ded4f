import { model } from '../../db/model.ts';
import { t } from '../../db/column.ts';
import { timestamps } from '../../db/standard-columns.ts';

export const users = model('users', {
  id: t.uuidv7().pk(),
  /** Lower case, without `@`: see login-name.ts. */
  username: t.text({ min: 1, max: 150 }).unique(),
  /** Lower case. */
  email: t.text(254).nullable().unique(),
  is_active: t.bool().dbDefault(true),
  is_staff: t.bool().dbDefault(false),
  is_superuser: t.bool().dbDefault(false),
  password_hash: t.text(255).nullable().sensitive().readOnly(),
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
  { indexes: [{ columns: ['tenant_key', 'name'], unique: true }] },
);

export const groupMembers = model(
  'group_members',
  {
    group_id: t.ref(() => groups, { onDelete: 'cascade' }),
    user_id: t.ref(() => users, { onDelete: 'cascade' }),
    created_at: t.timestamp(),
  },
  { primaryKey: ['user_id', 'group_id'], indexes: [{ columns: ['group_id', 'user_id'] }] },
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
  { indexes: [{ columns: ['user_id'] }, { columns: ['expires_at'] }] },
);
