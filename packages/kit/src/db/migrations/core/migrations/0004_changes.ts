import { t } from '../../../declare/column.ts';
import { migration } from '../../migration.ts';
import { createTable, sql } from '../../operation.ts';

export const changes = migration('0004_changes', [
  createTable('kit_changes', {
    position: t.bigint().pk(),
    xid: t.bigint(),
    token: t.int(),
    resource: t.text(200),
    key: t.text(1000),
    kind: t.enum(['created', 'changed', 'touched']),
    prior: t.json().nullable(),
    at: t.timestamp(),
  }),
  // SQLite finds changes by their position, and has one writer, which numbers them.
  sql({
    sqlite: [],
    postgres: ['create sequence kit_change_order owned by kit_changes.position', 'create index kit_changes_xid_index on kit_changes (xid)'],
  }),
]);
