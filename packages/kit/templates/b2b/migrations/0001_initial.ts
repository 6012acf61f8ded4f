import { createTable, migration, t } from 'kit/db';

export default migration('0001_initial', [
  createTable(
    'projects',
    {
      id: t.uuid().pk(),
      tenant_id: t.uuid(),
      title: t.text(200),
      notes: t.text().dbDefault(''),
      status: t.enum(['open', 'done']).dbDefault('open'),
      created_at: t.timestamp().dbDefault('now'),
      updated_at: t.timestamp().dbDefault('now'),
      created_by: t.text(64).nullable(),
      updated_by: t.text(64).nullable(),
      version: t.int().dbDefault(1),
    },
    {
      indexes: [{ columns: ['tenant_id', '-id'] }, { columns: ['tenant_id', 'status'] }, { columns: ['tenant_id', 'title'] }],
    },
  ),
]);
