// Sends and completes one upload, and ends itself with SIGKILL at a moment: `copy:after`, `multipart copy:after`, `delete remove:before`.
// Arguments: database, folder, moment.
import { diskStore, UploadController, uploads, type UploadStore } from '../../src/contrib/uploads/index.ts';
import { createApp, migrateApp } from '../../src/app/index.ts';
import { sha256, URL_KEYS } from './upload-app.ts';

const [database = '', folder = '', moment = ''] = process.argv.slice(2);
const isMultipart = moment.startsWith('multipart ');
/** What comes before the moments of the store at present. */
let phase = isMultipart ? 'multipart ' : '';

/** The disk store, with a moment before and after each of its methods. */
function mortal(store: UploadStore): UploadStore {
  const die = (at: string) => {
    if (`${phase}${at}` === moment) process.kill(process.pid, 'SIGKILL');
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
const post = (path: string, payload?: object) =>
  app.inject({ method: 'POST', url: `/v1/uploads${path}`, ...(payload === undefined ? {} : { payload }) });
const file = { filename: 'a.txt', content_type: 'text/plain', size: 5 };
const created = await post('', isMultipart ? { ...file, multipart: true } : file);
const { id, url } = created.json<{ id: string; url: string }>();
process.stdout.write(`${id}\n`);
if (isMultipart) {
  const part = { number: 1, checksum_sha256: sha256(Buffer.from('hello')) };
  const { parts } = (await post(`/${id}/parts`, { parts: [part] })).json<{ parts: { url: string }[] }>();
  await app.inject({ method: 'PUT', url: parts[0]?.url ?? '', payload: 'hello', headers: { 'content-type': 'application/octet-stream' } });
} else await app.inject({ method: 'PUT', url, payload: 'hello', headers: { 'content-type': 'text/plain' } });
await post(`/${id}/complete`);
if (moment.startsWith('delete ')) {
  phase = 'delete ';
  await app.inject({ method: 'DELETE', url: `/v1/uploads/${id}` });
}
await app.close();
