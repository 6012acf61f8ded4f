import { modelResource, type AdminDeclaration } from 'kit/admin';
import { orderResource } from './resource.ts';

/** Support looks at orders, edits them, and makes their transitions. The rules and hooks of the resource hold, and every change is announced. */
export const orderAdmin: AdminDeclaration = {
  resources: [
    modelResource(orderResource, {
      label: 'Orders',
      singular: 'Order',
      group: 'Shop',
      columns: ['item', 'quantity', 'total', 'currency', 'status', 'owner_id', 'invoice_id', 'created_at'],
    }),
  ],
};
