// An operation that stores a row and is a route and a tool; or 200 tools. Behind one bearer token.
import type { AddressInfo } from 'node:net';
import { Controller, createApp, hasScopes, invalidCredentials, migrateApp, route, type Authenticator, type Route } from 'kit';
import { mcp } from 'kit/contrib/mcp';
import { CrudController, resource } from 'kit/crud';
import { createTable, migration, model, t } from 'kit/db';
import { z } from 'zod';
import { serving } from '../harness/server-process.ts';
import { MANY_TOOLS, TOKEN } from './mcp-order.ts';

const Order = z.object({ item: z.string().max(100), quantity: z.int().min(1).max(1000), note: z.string().max(500).optional() });

const user = {
  id: '01890000-0000-7000-8000-000000000001',
  username: 'ada',
  email: null,
  is_active: true,
  is_staff: false,
  is_superuser: false,
};
const bearer: Authenticator = {
  name: 'bearer',
  challenge: 'Bearer realm="api"',
  securityScheme: { type: 'http', scheme: 'bearer' },
  authenticate({ headers }) {
    const given = headers['authorization'];
    if (given === undefined) return null;
    if (given !== `Bearer ${TOKEN}`) throw invalidCredentials();
    return { user, scheme: 'bearer', scopes: ['orders:*'] };
  },
};

const facts = {
  permission: hasScopes(),
  scope: 'orders:write',
  body: Order,
  response: Order.extend({ id: z.string() }),
  status: 201,
} as const;

const columns = {
  id: t.uuidv7().pk(),
  owner_id: t.uuid().readOnly(),
  item: t.text(100),
  quantity: t.int({ min: 1, max: 1000 }),
  note: t.text(500).nullable(),
};
const orders = model('orders', columns);
class OrderController extends CrudController(resource(orders, { owner: 'owner_id' }), {
  permission: hasScopes(),
  scope: 'orders',
  operations: { create: { tool: { name: 'order_create' } } },
}) {}

/** A path each, and a name each. */
class ManyController extends Controller {
  constructor() {
    super();
    const many = Array.from({ length: MANY_TOOLS }, (_, index): [string, Route] => [
      `kind${index}`,
      route.post(`/${index}`, { ...facts, tool: true, summary: `Place an order of kind ${index}` }, ({ body }) => ({ id: '1', ...body })),
    ]);
    Object.assign(this, Object.fromEntries(many));
  }
}

const [kind = 'call'] = process.argv.slice(2);
const app = createApp({
  database: 'sqlite::memory:',
  authenticators: [bearer],
  modules: [mcp(), { name: 'orders', models: [orders], migrations: [migration('0001_initial', [createTable('orders', columns)])] }],
  mount: { '/v1': kind === 'list' ? { '/many': ManyController } : { '/orders': OrderController } },
  log: { level: 'silent' },
});
await app.openDatabases();
await migrateApp(app);
await app.listen({ port: 0 });
serving((app.fastify.server.address() as AddressInfo).port);
