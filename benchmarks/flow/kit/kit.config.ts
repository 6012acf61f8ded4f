// The whole product: API, keys, audit log, events and their deliveries.
import { createApp, hasScopes } from 'kit';
import { accounts } from 'kit/contrib/accounts';
import { apiKeys } from 'kit/contrib/apikeys';
import { audit } from 'kit/contrib/audit';
import { URLPolicy, webhooks } from 'kit/contrib/webhooks';
import { CrudController, resource } from 'kit/crud';
import { createTable, migration, model, t, timestamps } from 'kit/db';
import { HealthController } from 'kit/middleware';

const columns = {
  id: t.uuidv7().pk(),
  owner_id: t.uuid().readOnly(),
  item: t.text({ min: 1, max: 120 }),
  quantity: t.int({ min: 1, max: 1000 }),
  note: t.text(500).nullable(),
  status: t.enum(['open', 'paid']).dbDefault('open').readOnly(),
  ...timestamps(),
};
const indexes = { indexes: [{ columns: ['owner_id', 'status', '-id'] }] } as const;
const orders = model('orders', columns, indexes);

class OrderController extends CrudController(resource(orders, { owner: 'owner_id', events: true }), {
  permission: hasScopes(),
  scope: 'orders',
  filters: { status: ['eq'] },
  operations: { update: false, destroy: false },
}) {}

export default createApp({
  modules: [
    accounts(),
    apiKeys(),
    audit(),
    webhooks({ urlPolicy: URLPolicy({ allowHttp: true, allowPrivateNetworks: true }) }),
    { name: 'orders', models: [orders], migrations: [migration('0001_initial', [createTable('orders', columns, indexes)])] },
  ],
  mount: { '/v1': { '/orders': OrderController }, '/': { '/health': HealthController } },
  log: { level: 'error' },
});
