// Creates without idempotency and with it, or new keys and a known one, in turns: node keyed.ts <database> create|replay
import { createServer, type Server } from 'node:http';
import { CrudController, resource } from '../../../packages/kit/src/crud/index.ts';
import { openDatabase } from '../../../packages/kit/src/db/index.ts';
import { isAuthenticated } from '../../../packages/kit/src/permissions/index.ts';
import { servingInTurns } from '../../harness/alternating.ts';
import { startCrudApp } from '../../harness/crud-app.ts';
import { notes, notesModule, plainNotes } from './notes.ts';

const policy = { owner: 'owner_id' } as const;
class PlainController extends CrudController(resource(plainNotes, policy), { permission: isAuthenticated, idempotency: false }) {}
class KeyedController extends CrudController(resource(notes, policy), { permission: isAuthenticated }) {}

const [database = '', question = ''] = process.argv.slice(2);
const app = await startCrudApp({
  database: await openDatabase(database, { poolMax: 16 }),
  modules: [notesModule],
  mount: { '/v1': { '/plain': PlainController, '/keyed': KeyedController } },
  idempotencyRecordsMax: 1_000_000_000,
});
await app.listen({ port: 0 });
const { server } = app.fastify;
// A key is refused where it is not looked at.
server.prependListener('request', ({ url, headers }) => {
  if (url === '/v1/plain') delete headers['idempotency-key'];
});

/** The same application, asked with one key by every request. */
async function withKnownKey(): Promise<Server> {
  const known = createServer((request, response) => {
    request.headers['idempotency-key'] = 'known';
    server.emit('request', request, response);
  });
  await new Promise<void>((done) => known.listen(0, '127.0.0.1', done));
  return known;
}

await servingInTurns(server, question === 'replay' ? await withKnownKey() : server);
