// What the clients of the mishaps call: serve-mishaps.ts <port> <folder>. Its rows are in the folder, with the clients; tests may kill it. Prints one line
// of JSON when it listens.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { allowAny, Controller, createApp, hasScopes, migrateApp, raw, route } from 'kit';
import { accounts, accountsOf, createUser } from 'kit/contrib/accounts';
import { apiKeys, createApiKey } from 'kit/contrib/apikeys';
import { CrudController, resource } from 'kit/crud';
import { createTable, insert, migration, model, t, versioned, type Db } from 'kit/db';
import { generateClient } from 'kit/openapi';
import { z } from 'zod';

const columns = { id: t.uuidv7().pk(), title: t.text(60), text: t.text(60), ...versioned() };
// Without it a list by its title is read by another process, which a busy machine starts slowly.
const indexes = [{ columns: ['title', '-id'] }];
const notes = model('notes', columns, { indexes });
class NoteController extends CrudController(resource(notes, { unscoped: true, version: 'version' }), {
  permission: hasScopes({ allowUnscoped: true }),
  filters: { title: ['eq'] },
  page: { default: 1, max: 10 },
  live: true,
}) {}

/** A row each time that an operation was done, with the name of the call. */
const effects = model('effects', { id: t.uuidv7().pk(), name: t.text(100) });
const done = (db: Db, name: string): Promise<object> => insert(db, effects, { name });
const params = z.strictObject({ name: z.string() });
class EffectController extends Controller {
  static override readonly tags = ['effects'];
  plain = route.post(
    '/:name',
    { permission: allowAny, throttled: false, params, response: z.strictObject({ name: z.string() }) },
    async ({ params: { name }, db }) => {
      await done(db, name);
      return { name };
    },
  );
  put = route.put(
    '/:name',
    { permission: allowAny, params, body: raw(['application/octet-stream']), response: z.strictObject({ bytes: z.int() }) },
    async ({ params: { name }, body, db }) => {
      await done(db, name);
      return { bytes: body.length };
    },
  );
  count = route.stream(
    '/:name/numbers',
    { permission: allowAny, params, ends: true, response: z.strictObject({ number: z.int() }) },
    async function* ({ request }) {
      const from = Number(request.headers['last-event-id'] ?? 0) + 1;
      for (let number = from; number <= 5; number += 1)
        yield { id: String(number), data: { number }, ...(number === 5 ? { event: 'end' } : {}) };
    },
  );
}

const [, , port, folder = ''] = process.argv;
const tables = [createTable('notes', columns, { indexes }), createTable('effects', effects.columns)];
const app = createApp({
  database: `sqlite:${join(folder, 'mishaps.db')}`,
  log: { level: 'error' },
  modules: [accounts(), apiKeys(), { name: 'notes', models: [notes, effects], migrations: [migration('0001_initial', tables)] }],
  mount: { '/v1': { '/notes': NoteController, '/effects': EffectController } },
});
await migrateApp(app);
await app.ready();
for (const [language, file] of [
  ['typescript', 'api.ts'],
  ['python', 'api.py'],
] as const)
  writeFileSync(join(folder, file), generateClient(app.routes, { language, title: 'Mishaps', version: '1' }));
const known = await app.users?.findByLogin(app.db, 'ada');
const user = known ?? (await createUser(app.db, { username: 'ada' }, accountsOf(app.db).management(null)));
const { raw: key } = await createApiKey(app.db, { user, name: 'client', scopes: ['*'] });
await app.listen({ host: '127.0.0.1', port: Number(port) });
process.stdout.write(`${JSON.stringify({ key })}\n`);
