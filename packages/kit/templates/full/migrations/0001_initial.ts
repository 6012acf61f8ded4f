import { createTable, migration, t } from 'kit/db';

export default migration('0001_initial', [
  createTable('organizations', {
    id: t.uuid().pk(),
    name: t.text(120),
    created_at: t.timestamp().dbDefault('now'),
    updated_at: t.timestamp().dbDefault('now'),
  }),
  createTable(
    'memberships',
    {
      id: t.uuid().pk(),
      organization_id: t.ref('organizations'),
      user_id: t.uuid(),
      role: t.enum(['member', 'agent']),
      created_at: t.timestamp().dbDefault('now'),
      updated_at: t.timestamp().dbDefault('now'),
    },
    {
      indexes: [{ columns: ['user_id', 'organization_id'], unique: true }],
    },
  ),
  createTable(
    'tickets',
    {
      id: t.uuid().pk(),
      organization_id: t.ref('organizations'),
      author_id: t.uuid(),
      subject: t.text(200),
      body: t.text(),
      priority: t.enum(['normal', 'urgent']).dbDefault('normal'),
      status: t.enum(['open', 'solved']).dbDefault('open'),
      created_at: t.timestamp().dbDefault('now'),
      updated_at: t.timestamp().dbDefault('now'),
      version: t.int().dbDefault(1),
    },
    {
      indexes: [{ columns: ['organization_id', 'author_id', '-id'] }, { columns: ['organization_id', 'status'] }],
    },
  ),
  createTable(
    'comments',
    {
      id: t.uuid().pk(),
      ticket_id: t.ref('tickets'),
      text: t.text(5000),
      created_at: t.timestamp().dbDefault('now'),
      updated_at: t.timestamp().dbDefault('now'),
      created_by: t.text(64).nullable(),
      updated_by: t.text(64).nullable(),
    },
    {
      indexes: [{ columns: ['ticket_id', '-id'] }],
    },
  ),
]);
