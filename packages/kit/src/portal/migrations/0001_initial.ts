import { t } from '../../db/declare/column.ts';
import { migration } from '../../db/migrations/migration.ts';
import { createTable } from '../../db/migrations/operation.ts';

export const initial = migration('0001_initial', [
  createTable(
    'portal_links',
    {
      id: t.uuidv7().pk(),
      user_id: t.text(255),
      tenant_id: t.text(255).nullable(),
      pages: t.array(t.text()),
      manage: t.bool(),
      created_at: t.timestamp(),
      token_digest: t.text(64).unique(),
      used_at: t.timestamp().nullable(),
      session_digest: t.text(64).nullable().unique(),
      expires_at: t.timestamp(),
    },
    { indexes: [{ columns: ['user_id'] }, { columns: ['expires_at'] }] },
  ),
]);
