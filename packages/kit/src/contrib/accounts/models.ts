import { model } from '../../db/declare/model.ts';
import { t } from '../../db/declare/column.ts';
import { timestamps } from '../../db/declare/standard-columns.ts';
import { IDENTITY_LENGTH_MAX } from '../../db/values/identity-length.ts';

/** Written by the functions of this module, which keep log-in names unique, end sessions and record who did it. */
export const users = model('users', {
  id: t.uuidv7().pk().person(),
  /** Lower case, without `@`: see login-name.ts. */
  username: t.text({ min: 1, max: 150 }).unique().guarded().personal(),
  /** Lower case. */
  email: t.text(254).nullable().unique().guarded().personal(),
  is_active: t.bool().dbDefault(true).guarded(),
  is_staff: t.bool().dbDefault(false).guarded(),
  is_superuser: t.bool().dbDefault(false).guarded(),
  password_hash: t.text(255).nullable().sensitive().guarded(),
  ...timestamps(),
});

/** The model of groups of users. */
export const groups = model(
  'groups',
  {
    id: t.uuidv7().pk(),
    /** Empty: of no tenant, and so of all of them. */
    tenant_key: t.text(IDENTITY_LENGTH_MAX).dbDefault('').tenant(),
    name: t.text({ min: 1, max: 150 }),
    /** The issuer whose tokens decide who is a member. Empty: members are added and removed here. */
    managed_by: t.text(255).dbDefault(''),
    ...timestamps(),
  },
  { guarded: true, indexes: [{ columns: ['tenant_key', 'name'], unique: true }] },
);

/** The model of memberships: which user is in which group. */
export const groupMembers = model(
  'group_members',
  {
    group_id: t.ref(() => groups, { onDelete: 'cascade' }),
    user_id: t.ref(() => users, { onDelete: 'cascade' }),
    created_at: t.timestamp(),
  },
  { guarded: true, primaryKey: ['user_id', 'group_id'], indexes: [{ columns: ['group_id', 'user_id'] }] },
);

/** The model of login sessions. */
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
    /** When the person last proved to be there: at login, and with `POST presence`. */
    present_at: t.timestamp(),
    /** Whether a second factor was proved, here or by the login that opened it. */
    second_factor: t.bool(),
    /** The browser, as it names itself. */
    device: t.text(200).nullable().personal(),
    address: t.text(64).nullable().personal(),
    /** The tenant of requests that name none. */
    chosen_tenant: t.text(IDENTITY_LENGTH_MAX).nullable(),
  },
  { guarded: true, indexes: [{ columns: ['user_id'] }, { columns: ['expires_at'] }] },
);

export const userFactors = model(
  'user_factors',
  {
    user_id: t.ref(() => users, { onDelete: 'cascade' }).pk(),
    /** As sealed by `secrets` of Accounts: codes are computed from it, so it is encrypted and not hashed. */
    secret: t.text(255).nullable().sensitive(),
    /** Shown, and not confirmed with a code yet: no login asks for it. */
    pending_secret: t.text(255).nullable().sensitive(),
    confirmed_at: t.timestamp().nullable(),
    /** The 30-second step of the last accepted code: it and earlier ones are used up. */
    last_step: t.int(),
    /** Attempts since `attempts_since`, successful ones excepted. */
    attempts: t.int(),
    attempts_since: t.timestamp(),
    created_at: t.timestamp(),
  },
  { guarded: true },
);

export const userRecoveryCodes = model(
  'user_recovery_codes',
  {
    id: t.uuidv7().pk(),
    user_id: t.ref(() => users, { onDelete: 'cascade' }),
    /** SHA-256, in hexadecimal. A used code is deleted. */
    code_digest: t.text(64).sensitive(),
  },
  { guarded: true, indexes: [{ columns: ['user_id', 'code_digest'], unique: true }] },
);

export const LINK_PURPOSES = ['invitation', 'reset', 'email'] as const;

export const accountLinks = model(
  'account_links',
  {
    id: t.uuidv7().pk(),
    user_id: t.ref(() => users, { onDelete: 'cascade' }),
    purpose: t.enum(LINK_PURPOSES),
    /** Of the purpose `email`: the new address, which the link was sent to. */
    email: t.text(254).nullable().personal(),
    /** SHA-256 of the token in the link, in hexadecimal. A used link is deleted. */
    token_digest: t.text(64).unique().sensitive(),
    created_at: t.timestamp(),
    expires_at: t.timestamp(),
    /** Of an invitation by a user: it ends when this user is deactivated, deleted or no longer staff. */
    invited_by: t.ref(() => users, { onDelete: 'cascade' }).nullable(),
  },
  { guarded: true, indexes: [{ columns: ['user_id'] }, { columns: ['expires_at'] }, { columns: ['invited_by'] }] },
);

export const userIdentities = model(
  'user_identities',
  {
    issuer: t.text(255),
    subject: t.text(255),
    user_id: t.ref(() => users, { onDelete: 'cascade' }),
    /** Of the groups in the newest token that was applied. */
    groups_digest: t.text(64).nullable(),
    groups_at: t.timestamp().nullable(),
    created_at: t.timestamp(),
  },
  { guarded: true, primaryKey: ['issuer', 'subject'], indexes: [{ columns: ['user_id'] }] },
);
