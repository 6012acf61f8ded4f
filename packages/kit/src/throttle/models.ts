import { model } from '../db/declare/model.ts';
import { t } from '../db/declare/column.ts';

/** Budgets of sqlStorage(). A row whose time has passed means the same as no row and is deleted. */
export const throttles = model(
  'kit_throttles',
  {
    key: t.text().pk(),
    /** When the budget is whole again, in microseconds since 1970. */
    tat_us: t.bigint(),
  },
  { guarded: true, indexes: [{ columns: ['tat_us'] }] },
);
