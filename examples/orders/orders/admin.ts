import { modelResource, type AdminDeclaration } from 'kit/admin';
import { orderResource } from './resource.ts';

/** Staff look at orders; they change through the API alone, so that every change is announced. */
export const orderAdmin: AdminDeclaration = {
  resources: [
    modelResource(orderResource, {
      label: 'Orders',
      columns: ['item', 'quantity', 'total', 'currency', 'status', 'owner_id', 'invoice_id', 'created_at'],
      readOnly: true,
    }),
  ],
};
