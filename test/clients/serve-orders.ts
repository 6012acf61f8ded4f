// The orders example as its own process, which tests may kill: serve-orders.ts <port> [folder for its clients]. Prints one line of JSON when it listens.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { migrateApp } from 'kit';
import { accountsOf, createUser } from 'kit/contrib/accounts';
import { createApiKey } from 'kit/contrib/apikeys';
import { type ClientOptions, generateClient } from 'kit/openapi';
import { generateTanstack } from '../../packages/kit/src/openapi/clients/generate-client.ts';
import app from '../../examples/orders/kit.config.ts';

const SCOPES = ['orders:read', 'orders:write', 'orders:share', 'jobs:read', 'jobs:write', 'uploads:read', 'uploads:write'];
const PASSWORD = 'correct horse battery staple';

await migrateApp(app);
await app.ready();
const management = accountsOf(app.db).management('test');
const known = await app.users?.findByLogin(app.db, 'ann');
const { raw: key } = await app.db.transaction(async (tx) => {
  const user = known ?? (await createUser(tx, { username: 'ann', password: PASSWORD, is_staff: true }, management));
  return createApiKey(tx, { user, name: 'client', scopes: SCOPES });
});
const [, , port, folder] = process.argv;
if (folder !== undefined) {
  const { title, version } = app;
  const write = (file: string, options: Pick<ClientOptions, 'language' | 'dates'>) =>
    writeFileSync(join(folder, file), generateClient(app.routes, { title, version, ...options }));
  write('api.ts', { language: 'typescript' });
  write('dated.ts', { language: 'typescript', dates: true });
  write('api.py', { language: 'python' });
  writeFileSync(join(folder, 'api.tanstack.ts'), generateTanstack(app.routes, './api.ts', { title, version }));
}
const url = await app.listen({ host: '127.0.0.1', port: Number(port) });
process.stdout.write(`${JSON.stringify({ url, key })}\n`);
