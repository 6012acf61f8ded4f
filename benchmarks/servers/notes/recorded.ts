// Creates without records and with an audit entry and an event each, of one application: node recorded.ts <database>
import type { AddressInfo } from 'node:net';
import { audit } from '../../../packages/kit/src/contrib/audit/index.ts';
import { webhooks } from '../../../packages/kit/src/contrib/webhooks/index.ts';
import { CrudController, resource } from '../../../packages/kit/src/crud/index.ts';
import { openDatabase } from '../../../packages/kit/src/db/index.ts';
import { isAuthenticated } from '../../../packages/kit/src/permissions/index.ts';
import { startCrudApp } from '../../harness/crud-app.ts';
import { serving } from '../../harness/server-process.ts';
import { notes, notesModule, plainNotes } from './notes.ts';

const options = { permission: isAuthenticated } as const;
class PlainController extends CrudController(resource(plainNotes, { owner: 'owner_id', audit: false }), options) {}
class RecordedController extends CrudController(resource(notes, { owner: 'owner_id', events: true }), options) {}

const [database = ''] = process.argv.slice(2);
const app = await startCrudApp({
  database: await openDatabase(database, { poolMax: 16 }),
  modules: [notesModule, audit(), webhooks({ secretKeys: [`${Buffer.alloc(32, 7).toString('base64url')}=`] })],
  mount: { '/v1': { '/plain': PlainController, '/recorded': RecordedController } },
});
await app.listen({ port: 0 });
serving((app.fastify.server.address() as AddressInfo).port);
