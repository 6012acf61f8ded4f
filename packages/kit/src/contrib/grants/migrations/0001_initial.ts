import { createTable } from '../../../db/migrations/operation.ts';
import { migration } from '../../../db/migrations/migration.ts';
import { t } from '../../../db/declare/column.ts';

/**
 * The first finds the grants of an object, and keeps one per subject. The second is what lists are read by: newest objects of one subject, in
 * the order of the object's key, without looking at any other row. The third has all grants of a subject, also those on deleted objects: for the page
 * of a user or a group, and to delete them with it.
 */
export const grantIndexes = [
  { columns: ['object_type', 'object_id', 'subject'], unique: true },
  { columns: ['subject', 'object_type', 'tenant_key', 'object_id'], where: 'object_deleted_at is null' },
  { columns: ['subject', 'id'] },
  { columns: ['expires_at'], where: 'expires_at is not null' },
];

export const initial = migration('0001_initial', [
  createTable(
    'grants',
    {
      id: t.uuidv7().pk(),
      subject: t.text(261),
      object_type: t.text(63),
      object_id: t.text(255),
      tenant_key: t.text(255).dbDefault(''),
      actions: t.text(1000),
      granted_by: t.text(255).nullable(),
      created_at: t.timestamp(),
      expires_at: t.timestamp().nullable(),
      object_deleted_at: t.timestamp().nullable(),
    },
    { indexes: grantIndexes },
  ),
]);
