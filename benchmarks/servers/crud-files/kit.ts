// Export and import of a generic controller: a declaration, and nothing written by hand. The argument is the database.
import type { AddressInfo } from 'node:net';
import { createApp, isAuthenticated, type Authenticator } from 'kit';
import { CrudController, resource } from 'kit/crud';
import { openDatabase } from 'kit/db';
import { serving } from '../../harness/server-process.ts';
import { OWNER, rows } from './rows.ts';

const [database = ''] = process.argv.slice(2);
const user = { id: OWNER, username: 'owner', email: null, is_active: true, is_staff: false, is_superuser: false };
const everybody: Authenticator = {
  name: 'everybody',
  securityScheme: { type: 'http', scheme: 'none' },
  authenticate: () => ({ user, scheme: 'everybody', scopes: null }),
};

class RowController extends CrudController(resource(rows, { owner: 'owner_id' }), {
  permission: isAuthenticated,
  export: ['csv', 'jsonl'],
  import: { formats: ['csv', 'jsonl'] },
}) {}

const app = createApp({
  database: await openDatabase(database, { poolMax: 4 }),
  authenticators: [everybody],
  mount: { '/v1': { '/rows': RowController } },
  settings: { cursorKeys: Buffer.alloc(32, 7).toString('base64url') },
  log: { level: 'silent' },
});
await app.listen({ port: 0 });
serving((app.fastify.server.address() as AddressInfo).port);
