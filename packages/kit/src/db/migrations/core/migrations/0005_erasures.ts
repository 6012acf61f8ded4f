import { t } from '../../../declare/column.ts';
import { migration } from '../../migration.ts';
import { createTable } from '../../operation.ts';

export const erasures = migration('0005_erasures', [
  createTable(
    'kit_erasures',
    {
      id: t.uuidv7().pk(),
      kind: t.enum(['person', 'tenant']),
      subject_id: t.text(255),
      state: t.enum(['waiting', 'running', 'finished', 'cancelled']),
      requested_at: t.timestamp(),
      requested_by: t.text(255).nullable(),
      due_at: t.timestamp(),
      started_at: t.timestamp().nullable(),
      finished_at: t.timestamp().nullable(),
      step: t.text(200).nullable(),
      position: t.text().nullable(),
      pass_rows: t.bigint(),
      counts: t.json(),
    },
    {
      indexes: [
        { columns: ['kind', 'subject_id'], unique: true, where: "state <> 'finished' and state <> 'cancelled'", name: 'kit_erasures_open' },
        { columns: ['due_at'], where: "state <> 'finished' and state <> 'cancelled'", name: 'kit_erasures_due' },
      ],
    },
  ),
  createTable(
    'kit_legal_holds',
    {
      kind: t.enum(['person', 'tenant']),
      subject_id: t.text(255),
      reason: t.text(300),
      held_at: t.timestamp(),
      held_by: t.text(255).nullable(),
    },
    { primaryKey: ['kind', 'subject_id'] },
  ),
  createTable('kit_retention', {
    table_name: t.text(63).pk(),
    next_at: t.timestamp(),
    last_run_at: t.timestamp().nullable(),
    last_rows: t.bigint(),
    total_rows: t.bigint(),
    last_error: t.text(500).nullable(),
  }),
]);
