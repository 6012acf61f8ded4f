// One of several processes of an app whose limits, keys and rows are in one database: what they share is where two could be slower than one twice.
import type { AddressInfo } from 'node:net';
import { createApp, hasScopes, migrateApp } from 'kit';
import { accounts, createUser } from 'kit/contrib/accounts';
import { ApiKeyRateThrottle, apiKeys, createApiKey } from 'kit/contrib/apikeys';
import { audit } from 'kit/contrib/audit';
import { CrudController, resource } from 'kit/crud';
import { createTable, migration, model, openDatabase, t, timestamps } from 'kit/db';
import { clientThrottle, sqlStorage } from 'kit/throttle';
import { serving } from '../harness/server-process.ts';

const columns = {
  id: t.uuidv7().pk(),
  owner_id: t.uuid().readOnly(),
  item: t.text(120),
  quantity: t.int({ min: 1, max: 1000 }),
  ...timestamps(),
};
const indexes = { indexes: [{ columns: ['owner_id', '-id'] }] } as const;
const orders = model('orders', columns, indexes);
class OrderController extends CrudController(resource(orders, { owner: 'owner_id' }), { permission: hasScopes(), scope: 'orders' }) {}

const [url = '', role = 'serve'] = process.argv.slice(2);
const app = createApp({
  database: await openDatabase(url),
  modules: [
    accounts(),
    apiKeys({ pepper: 'a pepper that is long enough for a benchmark' }),
    audit(),
    { name: 'orders', models: [orders], migrations: [migration('0001_initial', [createTable('orders', columns, indexes)])] },
  ],
  throttleStorage: sqlStorage(),
  throttles: [clientThrottle('1000000/s'), ApiKeyRateThrottle('1000000/s')],
  mount: { '/v1': { '/orders': OrderController } },
  log: { level: 'silent' },
});
await app.openDatabases();
if (role === 'prepare') {
  await migrateApp(app);
  await app.start();
  const user = await createUser(app.db, { username: 'ada' });
  const { raw } = await createApiKey(app.db, { user: user.id, name: 'shop', scopes: ['orders:*'] });
  process.stdout.write(raw);
  await app.close();
} else {
  await app.listen({ port: 0 });
  serving((app.fastify.server.address() as AddressInfo).port);
}
