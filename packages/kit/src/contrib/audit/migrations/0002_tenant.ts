import { t } from '../../../db/declare/column.ts';
import { migration } from '../../../db/migrations/migration.ts';
import { addColumn, createIndex } from '../../../db/migrations/operation.ts';

const columns = {
  tenant_id: t.text(255).dbDefault(''),
  salt: t.text(36).nullable(),
  values_hash: t.text(64).nullable(),
};

/** Format 2 of entries: their tenant, and values that can be erased. Those from before stay as they are. */
export const tenant = migration('0002_tenant', [
  ...['audit_entries', 'audit_inbox'].flatMap((table) => Object.entries(columns).map(([name, column]) => addColumn(table, name, column))),
  createIndex('audit_entries', { columns: ['tenant_id', 'seq'], where: "tenant_id <> ''", name: 'audit_entries_of_tenant' }),
]);
