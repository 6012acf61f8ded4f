// What does an idempotency key cost? A generic create (validated, owner-scoped) with a new key for every request, compared with the same
// create without a key, and the replay of a request that was done, compared with doing it. 16 requests at a time through the whole pipeline,
// without sockets, on both databases. A key is claimed in a transaction of its own: two commits instead of one.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startPostgresServer } from '../test/provision/postgres-server.ts';
import { createApp, migrateApp, type App, type Module } from '../packages/kit/src/app/index.ts';
import type { Authenticator } from '../packages/kit/src/auth/authenticator.ts';
import { CrudController } from '../packages/kit/src/crud/index.ts';
import { createTable, migration, model, t, timestamps, uuidv7 } from '../packages/kit/src/db/index.ts';
import { isAuthenticated } from '../packages/kit/src/permissions/index.ts';
import { defineBenchmark, type BenchmarkContext } from './harness/benchmark.ts';
import { contest, ratioOf, type Contender } from './harness/contest.ts';
import type { Ratio } from './harness/ratio.ts';

const CONCURRENCY = 16;
const PLAIN = 'create';
const KEYED = 'create with a key';
const REPLAY = 'replay';

const notes = model('notes', { id: t.uuidv7().pk(), owner_id: t.uuid().readOnly(), title: t.text(80), body: t.text(400), ...timestamps() });
class NoteController extends CrudController(notes, { owner: 'owner_id', permission: isAuthenticated }) {}
const module: Module = {
  name: 'notes',
  models: [notes],
  migrations: [migration('0001_initial', [createTable('notes', notes.columns)])],
};

const user = { id: uuidv7(), username: 'ann', email: null, is_active: true, is_staff: false, is_superuser: false };
const everybody: Authenticator = {
  name: 'everybody',
  securityScheme: { type: 'http', scheme: 'none' },
  authenticate: () => ({ user, scheme: 'everybody', scopes: null }),
};

async function start(database: string): Promise<App> {
  const app = createApp({
    database,
    modules: [module],
    authenticators: [everybody],
    mount: { '/v1': { '/notes': NoteController } },
    log: { level: 'silent' },
    docs: false,
  });
  await migrateApp(app);
  return app.ready();
}

function contender(app: App, name: string, keyOf: () => string | undefined): Contender {
  const send = async (): Promise<void> => {
    const key = keyOf();
    const { statusCode } = await app.inject({
      method: 'POST',
      url: '/v1/notes',
      headers: key === undefined ? {} : { 'idempotency-key': key },
      payload: { title: 'a note', body: 'x'.repeat(200) },
    });
    if (statusCode !== 201) throw new Error(`${name}: ${statusCode}`);
  };
  return {
    name,
    async measure(seconds) {
      const began = performance.now();
      const end = began + seconds * 1000;
      let done = 0;
      const worker = async (): Promise<void> => {
        while (performance.now() < end) {
          await send();
          done += 1;
        }
      };
      await Promise.all(Array.from({ length: CONCURRENCY }, worker));
      return (done / (performance.now() - began)) * 1000;
    },
  };
}

async function measure(context: BenchmarkContext, app: App): Promise<Ratio[]> {
  const { dialect } = app.db;
  context.print(`\n${dialect}, ${CONCURRENCY} at a time`);
  try {
    const known = uuidv7();
    await app.inject({
      method: 'POST',
      url: '/v1/notes',
      headers: { 'idempotency-key': known },
      payload: { title: 'a note', body: 'x'.repeat(200) },
    });
    const result = await contest(context, [
      contender(app, PLAIN, () => undefined),
      contender(app, KEYED, () => uuidv7()),
      contender(app, REPLAY, () => known),
    ]);
    return [
      { name: `idempotent-create-${dialect}`, value: ratioOf(result, KEYED, PLAIN), goal: 0.6 },
      { name: `idempotent-replay-${dialect}`, value: ratioOf(result, REPLAY, KEYED), goal: 2 },
    ];
  } finally {
    await app.close();
  }
}

export default defineBenchmark({
  name: 'idempotency',
  question: 'What is left of the rate of a create when it has an idempotency key, and how fast is a replay?',
  async run(context) {
    const folder = mkdtempSync(join(tmpdir(), 'kit-bench-'));
    const server = await startPostgresServer({ durable: true });
    try {
      const postgres = await measure(context, await start(server.url));
      const sqlite = await measure(context, await start(`sqlite:${join(folder, 'bench.db')}`));
      return [...postgres, ...sqlite];
    } finally {
      await server.stop();
      rmSync(folder, { recursive: true, force: true });
    }
  },
});
