// The generic controller: a declaration, and nothing written by hand.
import type { Server } from 'node:http';
import { createApp, hasScopes, type Authenticator, type Module } from 'kit';
import { CrudController, many, one, resource } from 'kit/crud';
import { openDatabase } from 'kit/db';
import { callerOf, customers, orderItems, orders, SCOPES } from './shop.ts';

const stub: Authenticator = {
  name: 'stub',
  securityScheme: { type: 'http', scheme: 'bearer' },
  authenticate({ headers }) {
    const user = callerOf(headers['authorization'] as string | undefined);
    return user === null ? null : { user, scheme: 'stub', scopes: [...SCOPES] };
  },
};

const customerResource = resource(customers, { owner: 'owner_id' });
const itemResource = resource(orderItems, { owner: 'owner_id' });
const orderResource = resource(orders, {
  owner: 'owner_id',
  version: 'version',
  relations: {
    customer: one(() => customers, 'customer_id'),
    items: many(() => orderItems, 'order_id', { order: ['sku'], limit: 5 }),
  },
});

class OrderController extends CrudController(orderResource, {
  permission: hasScopes(),
  scope: 'orders',
  filters: { status: ['eq'], quantity: ['gte'] },
  ordering: { by: ['created_at'], default: ['-created_at'] },
  expand: ['customer', 'items'],
}) {}

/** Listens on a port of its own. */
export async function startKit(database: string, modules: readonly Module[] = []): Promise<Server> {
  const app = createApp({
    database: await openDatabase(database, { poolMax: 16 }),
    authenticators: [stub],
    modules,
    resources: [customerResource, itemResource],
    mount: { '/v1': { '/orders': OrderController } },
    settings: { cursorKeys: Buffer.alloc(32, 7).toString('base64url') },
    log: { level: 'silent' },
  });
  await app.listen({ port: 0 });
  return app.fastify.server;
}
