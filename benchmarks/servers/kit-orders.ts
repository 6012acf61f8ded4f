// The toolkit: a controller with an authenticator, a permission with a scope, and schemas for everything.
import { Controller, coreErrors, createApp, hasScopes, route, type App, type Authenticator, type Module } from 'kit';
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

export function ordersApp(modules: readonly Module[] = []): App {
  return createApp({
    database: 'sqlite::memory:',
    authenticators: [stub],
    // Their `traceparent` decides what is recorded: see tracing-overhead.
    trustedProxies: ['127.0.0.1'],
    modules,
    mount: { '/v1': { '/orders': OrderController } },
    log: { level: 'silent' },
  });
}
