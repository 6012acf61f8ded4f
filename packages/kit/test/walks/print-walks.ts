// Prints as JSON which source files run, by coverage, in the requests that ARCHITECTURE.md follows file by file.
import { Session } from 'node:inspector/promises';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { ApiKeyController, apiKeys, createApiKey } from '../../src/contrib/apikeys/index.ts';
import { CrudController, resource } from '../../src/crud/index.ts';
import { createTable, migration, model, openDatabase, t, versioned } from '../../src/db/index.ts';
import { hasScopes } from '../../src/permissions/index.ts';
import { screen } from '../../src/screens/screen.ts';
import { AdminApp } from '../admin/admin-app.ts';

const source = new URL('../../src/', import.meta.url).href;
const orders = model('orders', { id: t.uuidv7().pk(), owner_id: t.uuid().readOnly(), item: t.text(40), ...versioned() });
const orderResource = resource(orders, { owner: 'owner_id', version: 'version', audit: true, audiences: { staff: { rows: true } } });
class OrderController extends CrudController(orderResource, { permission: hasScopes(), scope: 'orders', ordering: { by: ['item'] } }) {}

const db = await openDatabase('sqlite::memory:');
const site = await new AdminApp(
  db,
  [
    apiKeys(),
    {
      name: 'orders',
      models: [orders],
      migrations: [migration('0001_initial', [createTable('orders', orders.columns)])],
      admin: { resources: [screen(orderResource, { label: 'Orders' })] },
    },
  ],
  { mount: { '/v1': { '/orders': OrderController, '/api-keys': ApiKeyController } } },
).ready();
const staff = await site.browser({ is_staff: true, is_superuser: true });
const user = { id: staff.userId, username: 'user1', email: null, is_active: true, is_staff: true, is_superuser: true };
const { raw } = await createApiKey(db, { user, name: 'walk', scopes: ['orders:read', 'orders:write'] });
const bearer = { authorization: `Bearer ${raw}` };

const session = new Session();
session.connect();
await session.post('Profiler.enable');
await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });

/** Files of which a function was called. */
async function files(): Promise<string[]> {
  const { result } = await session.post('Profiler.takePreciseCoverage');
  const ran = result.filter(
    ({ url, functions }) =>
      url.startsWith(source) && functions.some(({ functionName, ranges: [range] }) => functionName !== '' && (range?.count ?? 0) > 0),
  );
  return ran.map(({ url }) => fileURLToPath(url).slice(fileURLToPath(source).length)).sort();
}

const walks: Record<string, string[]> = {};
async function walk(
  name: string,
  status: number,
  request: () => Promise<{ readonly status: number; readonly text: string }>,
): Promise<void> {
  await files();
  const response = await request();
  walks[name] = await files();
  if (response.status !== status) throw new Error(`${name} is ${response.status}: ${response.text}`);
}

const key1 = { 'idempotency-key': 'a-walk' };
await walk('POST /v1/orders', 201, () => site.call('POST', '/v1/orders', { ...bearer, ...key1 }, { item: 'a lamp' }));
await walk('GET /v1/orders', 200, () => site.call('GET', '/v1/orders', bearer));
await walk('GET /v1/api-keys', 200, () => site.call('GET', '/v1/api-keys', { cookie: staff.cookie }));
const page = await site.get(staff, 'resources/orders');
const [row] = (page.body as { items: { id: string }[] }).items;
await walk('PATCH /admin/api/resources/orders/:id', 200, () =>
  site.send(staff, 'PATCH', `resources/orders/${row?.id}`, { item: 'two lamps' }),
);
process.stdout.write(JSON.stringify(walks));
await site.close();
await db.close();
process.exit(0);
