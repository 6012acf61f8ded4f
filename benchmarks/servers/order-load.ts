import type { HttpLoad } from '../harness/http-load.ts';
import { TOKEN } from './orders.ts';

const order = {
  customer: 'Ann Example',
  total: 99.5,
  status: 'paid',
  lines: Array.from({ length: 5 }, (_, index) => ({ sku: `sku-${index}`, quantity: index + 1 })),
};

const headers = { authorization: `Bearer ${TOKEN}` };
/** What the servers of orders are asked. */
export const questions: readonly { readonly name: string; readonly load: (port: number) => HttpLoad }[] = [
  { name: 'http-get', load: (port) => ({ url: `http://127.0.0.1:${port}/v1/orders/order-7`, headers }) },
  {
    name: 'http-post',
    load: (port) => ({
      url: `http://127.0.0.1:${port}/v1/orders`,
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
      body: JSON.stringify(order),
      expectStatus: 201,
    }),
  },
];
