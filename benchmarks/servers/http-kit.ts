// The toolkit: a controller with an authenticator, a permission with a scope, and schemas for everything.
import type { AddressInfo } from 'node:net';
import { Controller, coreErrors, createApp, hasScopes, route, type Authenticator } from 'kit';
import { serving } from '../harness/server-process.ts';
import { createOrder, findOrder, OrderId, OrderIn, OrderOut, userOf } from './orders.ts';

const stub: Authenticator = {
  name: 'stub',
  securityScheme: { type: 'http', scheme: 'bearer' },
  authenticate({ headers }) {
    const user = userOf(headers['authorization'] as string | undefined);
    return user === null ? null : { user, scheme: 'stub', scopes: ['orders:*'] };
  },
};

class OrderController extends Controller {
  retrieve = route.get('/:id', { params: OrderId, response: OrderOut, permission: hasScopes(), scope: 'orders:read' }, ({ params }) => {
    const order = findOrder(params.id);
    if (order === undefined) throw coreErrors.not_found();
    return order;
  });

  create = route.post('/', { body: OrderIn, response: OrderOut, status: 201, permission: hasScopes(), scope: 'orders:write' }, ({ body }) =>
    createOrder(body),
  );
}

const app = createApp({
  database: 'sqlite::memory:',
  authenticators: [stub],
  mount: { '/v1': { '/orders': OrderController } },
  log: { level: 'silent' },
});
await app.listen({ port: 0 });
serving((app.fastify.server.address() as AddressInfo).port);
