// Run by check-packages.ts in an empty project with the oldest supported Node: an application on PostgreSQL works there.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { Controller, createApp, hasScopes, migrateApp, route } from 'kit';
import { accounts, accountsOf, createUser } from 'kit/contrib/accounts';
import { apiKeys, createApiKey } from 'kit/contrib/apikeys';
import { createEndpoint, deliverDue, publish, URLPolicy, webhooks } from 'kit/contrib/webhooks';
import { openDatabase } from 'kit/db';

const [, , url] = process.argv;

class Things extends Controller {
  ping = route.get('/', { permission: hasScopes(), scope: 'things:read' }, () => undefined);
}

const received = [];
const receiver = createServer((request, response) => {
  received.push(request.headers['webhook-id']);
  response.end();
});
await new Promise((listening) => receiver.listen(0, '127.0.0.1', listening));

const app = createApp({
  database: url,
  log: { level: 'silent' },
  modules: [
    accounts(),
    apiKeys(),
    webhooks({ urlPolicy: new URLPolicy({ allowHttp: true, allowPrivateNetworks: true, allowPorts: [receiver.address().port] }) }),
  ],
  mount: { '/v1': { '/things': Things } },
});
await migrateApp(app);
await app.ready();
const user = await createUser(app.db, { username: 'ann', password: 'correct horse battery' }, accountsOf(app.db).management(null, null));
const { raw } = await createApiKey(app.db, { user, name: 'CI', scopes: ['things:read'] });
const { statusCode } = await app.inject({ url: '/v1/things', headers: { 'x-api-key': raw } });
assert.equal(statusCode, 204);
await createEndpoint(app.db, { owner: user.id, url: `http://127.0.0.1:${receiver.address().port}/`, events: ['*'] });
await app.db.transaction((tx) => publish(tx, 'thing.made', { id: 1 }, { owner: user.id }));
await deliverDue(app.db);
assert.equal(received.length, 1);
await app.close();
receiver.close();

await assert.rejects(openDatabase('sqlite::memory:'), /^Error: SQLite needs Node 24\.15 or later/);
