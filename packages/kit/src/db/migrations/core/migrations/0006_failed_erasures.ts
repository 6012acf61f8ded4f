import { t } from '../../../declare/column.ts';
import { migration } from '../../migration.ts';
import { addColumn } from '../../operation.ts';

export const failedErasures = migration('0006_failed_erasures', [
  addColumn('kit_erasures', 'failures', t.int().dbDefault(0)),
  addColumn('kit_erasures', 'retry_at', t.timestamp().nullable()),
  addColumn('kit_erasures', 'last_error', t.text(500).nullable()),
]);
