import { createTable } from '../../../db/migrations/operation.ts';
import { migration } from '../../../db/migrations/migration.ts';
import { t } from '../../../db/declare/column.ts';
import { timestamps } from '../../../db/declare/standard-columns.ts';

export const initial = migration('0001_initial', [
  createTable('users', {
    id: t.uuidv7().pk(),
    username: t.text({ min: 1, max: 150 }).unique(),
    email: t.text(254).nullable().unique(),
    is_active: t.bool().dbDefault(true),
    is_staff: t.bool().dbDefault(false),
    is_superuser: t.bool().dbDefault(false),
    password_hash: t.text(255).nullable().sensitive().readOnly(),
    ...timestamps(),
  }),
  createTable(
    'sessions',
    {
      id: t.uuidv7().pk(),
      user_id: t.ref('users', { onDelete: 'cascade' }),
      token_digest: t.text(64).unique().sensitive(),
      created_at: t.timestamp(),
      seen_at: t.timestamp(),
      expires_at: t.timestamp(),
      present_at: t.timestamp(),
      second_factor: t.bool(),
      device: t.text(200).nullable(),
      address: t.text(64).nullable(),
      chosen_tenant: t.text(255).nullable(),
    },
    { indexes: [{ columns: ['user_id'] }, { columns: ['expires_at'] }] },
  ),
  createTable('user_factors', {
    user_id: t.ref('users', { onDelete: 'cascade' }).pk(),
    secret: t.text(255).nullable().sensitive(),
    pending_secret: t.text(255).nullable().sensitive(),
    confirmed_at: t.timestamp().nullable(),
    last_step: t.int(),
    attempts: t.int(),
    attempts_since: t.timestamp(),
    created_at: t.timestamp(),
  }),
  createTable(
    'user_recovery_codes',
    {
      id: t.uuidv7().pk(),
      user_id: t.ref('users', { onDelete: 'cascade' }),
      code_digest: t.text(64).sensitive(),
    },
    { indexes: [{ columns: ['user_id', 'code_digest'], unique: true }] },
  ),
  createTable(
    'account_links',
    {
      id: t.uuidv7().pk(),
      user_id: t.ref('users', { onDelete: 'cascade' }),
      purpose: t.enum(['invitation', 'reset', 'email']),
      email: t.text(254).nullable(),
      token_digest: t.text(64).unique().sensitive(),
      created_at: t.timestamp(),
      expires_at: t.timestamp(),
      invited_by: t.ref('users', { onDelete: 'cascade' }).nullable(),
    },
    { indexes: [{ columns: ['user_id'] }, { columns: ['expires_at'] }, { columns: ['invited_by'] }] },
  ),
  createTable(
    'user_identities',
    {
      issuer: t.text(255),
      subject: t.text(255),
      user_id: t.ref('users', { onDelete: 'cascade' }),
      groups_digest: t.text(64).nullable(),
      groups_at: t.timestamp().nullable(),
      created_at: t.timestamp(),
    },
    { primaryKey: ['issuer', 'subject'], indexes: [{ columns: ['user_id'] }] },
  ),
  createTable(
    'groups',
    {
      id: t.uuidv7().pk(),
      tenant_key: t.text(255).dbDefault(''),
      name: t.text({ min: 1, max: 150 }),
      managed_by: t.text(255).dbDefault(''),
      ...timestamps(),
    },
    { indexes: [{ columns: ['tenant_key', 'name'], unique: true }] },
  ),
  createTable(
    'group_members',
    {
      group_id: t.ref('groups', { onDelete: 'cascade' }),
      user_id: t.ref('users', { onDelete: 'cascade' }),
      created_at: t.timestamp(),
    },
    { primaryKey: ['user_id', 'group_id'], indexes: [{ columns: ['group_id', 'user_id'] }] },
  ),
]);
