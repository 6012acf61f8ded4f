// Sends and completes one upload, and ends itself without a word (SIGKILL) at the given moment. Arguments: database, folder, moment.
import { diskStore, UploadController, uploads, type UploadStore } from '../../src/contrib/uploads/index.ts';
import { createApp, migrateApp } from '../../src/app/index.ts';
import { URL_KEYS } from './upload-app.ts';

const [database = '', folder = '', moment = ''] = process.argv.slice(2);

/** The disk store, with a moment before and after each of its methods. */
function mortal(store: UploadStore): UploadStore {
  const die = (at: string) => {
    if (at === moment) process.kill(process.pid, 'SIGKILL');
  };
  return new Proxy(store, {
    get(target, name) {
      const value = Reflect.get(target, name, target) as unknown;
      if (typeof value !== 'function') return value;
      return (...given: unknown[]) => {
        die(`${String(name)}:before`);
        const result = (value as (...values: unknown[]) => unknown).apply(target, given);
        if (!(result instanceof Promise)) return result;
        return result.then((done: unknown) => {
          die(`${String(name)}:after`);
          return done;
        });
      };
    },
  });
}

class Uploads extends UploadController {}
const app = createApp({
  database,
  log: { level: 'silent' },
  authenticators: [
    {
      name: 'ann',
      securityScheme: {},
      authenticate: () => ({
        user: { id: 'ann', username: 'ann', email: null, is_active: true, is_staff: false, is_superuser: false },
        scheme: 'test',
        scopes: null,
      }),
    },
  ],
  modules: [uploads({ store: mortal(diskStore({ folder })), urlKeys: URL_KEYS, cleanEverySeconds: 0 })],
  mount: { '/v1': { '/uploads': Uploads } },
});
await app.openDatabases();
await migrateApp(app);
await app.ready();
const created = await app.inject({
  method: 'POST',
  url: '/v1/uploads',
  payload: { filename: 'a.txt', content_type: 'text/plain', size: 5 },
});
const { id, url } = created.json<{ id: string; url: string }>();
process.stdout.write(`${id}\n`);
await app.inject({ method: 'PUT', url, payload: 'hello', headers: { 'content-type': 'text/plain' } });
await app.inject({ method: 'POST', url: `/v1/uploads/${id}/complete` });
if (moment.startsWith('delete ')) await app.inject({ method: 'DELETE', url: `/v1/uploads/${id}` });
await app.close();
