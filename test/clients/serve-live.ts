// A live list as its own process, which tests may kill: serve-live.ts <port> <folder for its data and clients>. Prints a line when it listens.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { allowAny, createApp, migrateApp } from 'kit';
import { CrudController, resource } from 'kit/crud';
import { createTable, migration, model, t, versioned } from 'kit/db';
import { generateClient } from 'kit/openapi';

const notes = model('notes', {
  id: t.uuidv7().pk(),
  title: t.text(80),
  status: t.enum(['open', 'done']).dbDefault('open'),
  total: t.decimal(12, 2).nullable(),
  ...versioned(),
});

class NoteController extends CrudController(resource(notes, { unscoped: true, version: 'version' }), {
  permission: allowAny,
  filters: { status: ['eq'], title: ['eq'] },
  ordering: { by: ['title', 'total'] },
  page: { max: 1000 },
  live: true,
}) {
  static override readonly tags = ['notes'];
}

const [, , port, folder = ''] = process.argv;
const app = createApp({
  database: `sqlite:${join(folder, 'live.db')}`,
  log: { level: 'error' },
  modules: [{ name: 'notes', models: [notes], migrations: [migration('0001_initial', [createTable('notes', notes.columns)])] }],
  mount: { '/v1': { '/notes': NoteController } },
});
await migrateApp(app);
await app.ready();
for (const [language, file] of [
  ['typescript', 'api.ts'],
  ['python', 'api.py'],
] as const)
  writeFileSync(join(folder, file), generateClient(app.routes, { title: 'Notes', version: '1', language }));
await app.listen({ host: '127.0.0.1', port: Number(port) });
process.stdout.write('listens\n');
