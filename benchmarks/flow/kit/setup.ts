// Tables, users with a key, and their endpoints.
import { migrateApp } from 'kit';
import { createUser } from 'kit/contrib/accounts';
import { createApiKey } from 'kit/contrib/apikeys';
import { createEndpoint } from 'kit/contrib/webhooks';
import { given, type Account } from '../product.ts';
import app from './kit.config.ts';

await app.openDatabases();
await migrateApp(app);
await app.start();
const accounts: Account[] = [];
for (const { name, hooks } of given()) {
  const user = await createUser(app.db, { username: name });
  const { raw } = await createApiKey(app.db, { user: user.id, name: 'shop', scopes: ['orders:*'] });
  const endpoints = [];
  for (const url of hooks)
    endpoints.push({ url, secret: (await createEndpoint(app.db, { owner: user.id, url, events: ['order.*'] })).secret });
  accounts.push({ key: raw, endpoints });
}
console.log(JSON.stringify(accounts));
await app.close();
