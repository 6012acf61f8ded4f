import { addColumn, migration, t } from 'kit/db';

export const invoice = migration('0002_invoice', [...addColumn('orders', 'invoice_id', t.ref('uploads').nullable())]);
