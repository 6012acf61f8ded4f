import { defineErrors } from 'kit';

export const orderErrors = defineErrors('orders', {
  quantity_too_large: { status: 422, detail: 'The quantity is larger than one order may be.' },
  order_closed: { status: 409, detail: 'The order is no longer open.' },
  invalid_transition: { status: 409, detail: 'The order is no longer open.' },
});
