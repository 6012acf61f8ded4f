import { createTable, migration, t } from 'kit/db';

export default migration('0001_initial', [
  createTable(
    'notes',
    {
      id: t.uuid().pk(),
      owner_id: t.uuid(),
      title: t.text(200),
      body: t.text().dbDefault(''),
      pinned: t.bool().dbDefault(false),
      created_at: t.timestamp().dbDefault('now'),
      updated_at: t.timestamp().dbDefault('now'),
      version: t.int().dbDefault(1),
    },
    { indexes: [{ columns: ['owner_id', '-id'] }, { columns: ['owner_id', 'title'] }, { columns: ['owner_id', 'pinned'] }] },
  ),
]);
