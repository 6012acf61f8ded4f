import { objectActions } from 'kit/contrib/grants';
import { orders } from './models.ts';

/** What can be done to an order, and the names under which it is shared. */
export const orderActions = objectActions(orders, {
  actions: ['view', 'change', 'pay', 'cancel', 'share'],
  sets: { viewer: ['view'], editor: ['viewer', 'change'], manager: ['editor', 'pay', 'cancel', 'share'] },
});
