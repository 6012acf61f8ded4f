import { t } from '../../../db/declare/column.ts';
import { migration } from '../../../db/migrations/migration.ts';
import { createTable } from '../../../db/migrations/operation.ts';

export const initial = migration('0001_initial', [
  createTable(
    'tenants',
    {
      id: t.uuidv7().pk(),
      slug: t.text({ min: 1, max: 40 }).unique(),
      name: t.text({ min: 1, max: 150 }),
      state: t.enum(['active', 'deleting']),
      created_at: t.timestamp(),
      updated_at: t.timestamp(),
      deletes_at: t.timestamp().nullable(),
    },
    { indexes: [{ columns: ['deletes_at'], where: 'deletes_at is not null', name: 'tenants_deleting' }] },
  ),
  createTable(
    'tenant_members',
    {
      id: t.uuidv7().pk(),
      tenant_id: t.ref('tenants', { onDelete: 'cascade' }),
      user_id: t.text(255),
      roles: t.array(t.text()),
      created_at: t.timestamp(),
      added_by: t.text(255).nullable(),
    },
    { indexes: [{ columns: ['user_id', 'tenant_id'], unique: true }, { columns: ['tenant_id', 'id'] }] },
  ),
  createTable(
    'tenant_invitations',
    {
      id: t.uuidv7().pk(),
      tenant_id: t.ref('tenants', { onDelete: 'cascade' }),
      email: t.text(254),
      roles: t.array(t.text()),
      token_digest: t.text(64).nullable().unique().sensitive(),
      created_at: t.timestamp(),
      expires_at: t.timestamp(),
      invited_by: t.text(255).nullable(),
    },
    { indexes: [{ columns: ['tenant_id', 'email'], unique: true }, { columns: ['invited_by'] }, { columns: ['expires_at'] }] },
  ),
]);
