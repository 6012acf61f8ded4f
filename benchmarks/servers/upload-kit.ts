import type { AddressInfo } from 'node:net';
import { createApp, migrateApp } from 'kit';
import { diskStore, UploadController, uploads } from 'kit/contrib/uploads';
import { serving } from '../harness/server-process.ts';

const [folder = ''] = process.argv.slice(2);

class Uploads extends UploadController {
  static override readonly policy = { bytesMax: 1024 * 1024 * 1024 };
}

const user = { id: 'bench', username: 'bench', email: null, is_active: true, is_staff: false, is_superuser: false };
const app = createApp({
  database: 'sqlite::memory:',
  log: { level: 'silent' },
  authenticators: [{ name: 'everyone', securityScheme: {}, authenticate: () => ({ user, scheme: 'everyone', scopes: null }) }],
  modules: [uploads({ store: diskStore({ folder }), cleanEverySeconds: 0 })],
  mount: { '/v1': { '/uploads': Uploads } },
});
await app.openDatabases();
await migrateApp(app);
await app.listen({ port: 0 });
serving((app.fastify.server.address() as AddressInfo).port);
