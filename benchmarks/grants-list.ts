// Does the newest page of granted objects cost the same whatever a caller may see? A million objects; GET of the newest 50 for callers with few
// grants, with many, with grants on the oldest objects only, through 10 groups, and by inheritance from folders. Compared with the usual
// statement, a test per row with EXISTS, where it is at its worst; and the check of one object with reading it by its key, as the repository does. Memberships
// are in memory: what is measured is grants.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startPostgresServer } from '../test/provision/postgres-server.ts';
import { createApp } from '../packages/kit/src/app/assemble/create-app.ts';
import { migrateApp } from '../packages/kit/src/app/data/migration-modules.ts';
import type { App } from '../packages/kit/src/app/declare/module.ts';
import type { User } from '../packages/kit/src/auth/people/principal.ts';
import { tableBackend } from '../packages/kit/src/contrib/grants/backends/table-backend.ts';
import { grants, objectActions, objectGrants } from '../packages/kit/src/contrib/grants/index.ts';
import { CrudController, resource } from '../packages/kit/src/crud/index.ts';
import type { Database } from '../packages/kit/src/db/engine/db.ts';
import { createTable, find, migration, model, openDatabase, t } from '../packages/kit/src/db/index.ts';
import { isAuthenticated } from '../packages/kit/src/permissions/index.ts';
import { defineBenchmark, type BenchmarkContext } from './harness/benchmark.ts';
import { median } from './harness/contest.ts';
import type { Ratio } from './harness/ratio.ts';

const folders = model('folders', { id: t.uuidv7().pk(), name: t.text(100) });
const indexes = [{ columns: ['owner_id', '-id'] }, { columns: ['folder_id', '-id'] }];
const docs = model(
  'docs',
  { id: t.uuidv7().pk(), owner_id: t.uuid().readOnly(), folder_id: t.ref(() => folders).nullable(), title: t.text(100) },
  { indexes },
);
const sets = { viewer: ['view'], editor: ['viewer', 'change'] } as const;
const folderActions = objectActions(folders, { actions: ['view', 'change', 'delete'], sets, creator: 'editor' });
const docActions = objectActions(docs, { actions: ['view', 'change', 'delete'], sets, through: 'folder_id' });
class DocController extends CrudController(resource(docs, { owner: 'owner_id', access: grants(docs), input: ['title'] }), {
  permission: isAuthenticated,
  page: { count: 'none' },
}) {}
const tables = migration('0001_initial', [
  createTable('folders', folders.columns),
  createTable('docs', { ...docs.columns, folder_id: t.ref('folders').nullable() }, { indexes }),
]);

/** Ids in the order of numbers, as UUIDv7 are in the order of time. */
const PREFIX = '01890000-0000-7000-8000-';
const idOf = (number: number) => `${PREFIX}${number.toString(16).padStart(12, '0')}`;
const KINDS = ['few', 'many', 'oldest', 'groups', 'inherited'] as const;
type Kind = (typeof KINDS)[number];
const users = Object.fromEntries(KINDS.map((kind, index) => [kind, userOf(kind, 9_000_000 + index)])) as Record<Kind, User>;
const GROUPS = Array.from({ length: 10 }, (_, index) => idOf(8_000_000 + index));
const FOLDERS = Array.from({ length: 3 }, (_, index) => idOf(7_000_000 + index));
const NO_OWNER = idOf(9_999_999);

function userOf(username: string, number: number): User {
  return { id: idOf(number), username, email: null, is_active: true, is_staff: false, is_superuser: false };
}

async function fill(db: Database, size: number): Promise<void> {
  const isPostgres = db.dialect === 'postgres';
  const series = isPostgres
    ? `generate_series(1, ${size}) n`
    : `(with recursive c(n) as (select 1 union all select n + 1 from c where n < ${size}) select n from c) n`;
  const number = isPostgres ? 'n' : 'n.n';
  const hex = isPostgres ? `lpad(to_hex(${number}), 12, '0')` : `printf('%012x', ${number})`;
  const id = isPostgres ? `('${PREFIX}' || ${hex})::uuid` : `'${PREFIX}' || ${hex}`;
  const uuid = (text: string) => (isPostgres ? `'${text}'::uuid` : `'${text}'`);
  for (const folder of FOLDERS) await db.query('insert into folders (id, name) values ($1, $2)', [folder, 'a folder']);
  const folder = FOLDERS.map((each, index) => `when ${number} % 10 = ${index} then ${uuid(each)}`).join(' ');
  await db.query(
    `insert into docs (id, owner_id, folder_id, title) select ${id}, ${uuid(NO_OWNER)}, case ${folder} end, 'a document' from ${series}`,
  );
  const own = isPostgres
    ? 'gen_random_uuid()'
    : `lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-7000-8000-' || hex(randomblob(6)))`;
  const grantAll = (subject: string, condition: string) =>
    db.query(
      `insert into grants (id, subject, object_type, object_id, tenant_key, actions, created_at)
       select ${own}, '${subject}', 'docs', ${isPostgres ? `'${PREFIX}' || ${hex}` : id}, '', 'viewer', $1 from ${series} where ${condition}`,
      [new Date()],
    );
  await grantAll(`user:${users.few.id}`, `${number} % ${Math.floor(size / 60)} = 0`);
  await grantAll(`user:${users.many.id}`, `${number} % 5 = 0`);
  await grantAll(`user:${users.oldest.id}`, `${number} <= ${Math.max(100, Math.floor(size / 500))}`);
  for (const [index, group] of GROUPS.entries()) await grantAll(`group:${group}`, `${number} % 50 = ${index}`);
  for (const each of FOLDERS)
    await db.query(
      `insert into grants (id, subject, object_type, object_id, tenant_key, actions, created_at) values ($1, $2, 'folders', $3, '', 'viewer', $4)`,
      [idOf(6_000_000 + FOLDERS.indexOf(each)), `user:${users.inherited.id}`, each, new Date()],
    );
  await db.query(isPostgres ? 'vacuum analyze' : 'analyze');
}

const CALLS_PER_ROUND = 500;

/** The usual form: one test of the row for the user's own grants, and one for its groups. */
const EXISTS = `select d.id, d.title from docs d where (d.owner_id = $1
  or exists (select 1 from grants g where g.object_type = 'docs' and g.object_id = cast(d.id as text) and g.subject = $2)
  or exists (select 1 from grants g where g.object_type = 'docs' and g.object_id = cast(d.id as text) and g.subject = $3))
  order by d.id desc limit 50`;

/** Milliseconds per call: the median of rounds, each of as many calls as fit. */
async function timeOf(rounds: number, seconds: number, call: () => Promise<unknown>): Promise<number> {
  await call();
  const times: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const start = performance.now();
    let count = 0;
    while (count === 0 || performance.now() - start < seconds * 1000) {
      await call();
      count += 1;
    }
    times.push((performance.now() - start) / count);
  }
  return times.sort((a, b) => a - b)[Math.floor(times.length / 2)] as number;
}

/** Milliseconds per call of calls that take microseconds: the medians of short rounds in turns, so that all see the same machine. */
async function timesOf(rounds: number, calls: readonly (() => Promise<unknown>)[]): Promise<number[]> {
  const times = calls.map((): number[] => []);
  for (let round = 0; round < 2 * rounds; round += 1)
    for (const [index, call] of calls.entries()) {
      const start = performance.now();
      for (let count = 0; count < CALLS_PER_ROUND; count += 1) await call();
      // The first half warms up.
      if (round >= rounds) times[index]?.push((performance.now() - start) / CALLS_PER_ROUND);
    }
  return times.map((each) => median(each));
}

async function measure(context: BenchmarkContext, app: App): Promise<Ratio[]> {
  const { quick } = context;
  const { db } = app;
  await fill(db, quick ? 20_000 : 1_000_000);
  const [rounds, seconds] = quick ? [1, 0.2] : [3, 0.7];
  const page = async (kind: Kind) => {
    const { statusCode, body } = await app.inject({ url: '/v1/docs?limit=50', headers: { 'x-user': kind } });
    if (statusCode !== 200 || (JSON.parse(body) as { items: unknown[] }).items.length !== 50)
      throw new Error(`${kind}: ${statusCode} ${body.slice(0, 200)}`);
  };
  const times = new Map<Kind, number>();
  for (const kind of KINDS) times.set(kind, await timeOf(rounds, seconds, () => page(kind)));
  const worst = await timeOf(1, 0, () => db.query(EXISTS, [users.oldest.id, `user:${users.oldest.id}`, 'group:none'], { replanned: true }));
  const sorted = [...times.values()].sort((a, b) => a - b);
  const [fastest, slowest] = [sorted[0] as number, sorted.at(-1) as number];
  context.print(`\n${db.dialect}`);
  for (const [kind, ms] of times) context.print(`${kind.padEnd(24)} ${ms.toFixed(2)} ms per page`);
  context.print(`${'EXISTS at its worst'.padEnd(24)} ${worst.toFixed(1)} ms per page`);
  const row = { id: idOf(quick ? 10 : 500_000), owner_id: NO_OWNER };
  const asker = { user: users.many, tenant: null, now: new Date(), groups: [] };
  const question = { db, declaration: docActions, asker, permission: undefined };
  const [lookup = Number.NaN, check = Number.NaN, bare = Number.NaN] = await timesOf(quick ? 20 : 200, [
    () => find(db, docs, row.id),
    async () => tableBackend.decide(question, row, 'view'),
    // Reads nothing but an index: shown for orientation.
    () => db.query('select id from docs where id = $1', [row.id]),
  ]);
  context.print(`${'one object read'.padEnd(24)} ${(lookup * 1000).toFixed(1)} µs`);
  context.print(`${'one object checked'.padEnd(24)} ${(check * 1000).toFixed(1)} µs`);
  context.print(`${'its key in the index'.padEnd(24)} ${(bare * 1000).toFixed(1)} µs`);
  return [
    { name: `grants-list-${db.dialect}-slowest-to-fastest`, value: slowest / fastest, goal: 5, atMost: true },
    { name: `grants-list-${db.dialect}-slowest-to-exists`, value: slowest / worst, goal: 0.1, atMost: true },
    { name: `grants-check-${db.dialect}`, value: check / lookup, goal: 1.5, atMost: true },
  ];
}

async function onDatabase(context: BenchmarkContext, url: string): Promise<Ratio[]> {
  const groups = {
    groupsOf: async (_db: unknown, id: string) => (id === users.groups.id ? GROUPS : []),
    findById: async () => null,
    findByName: async () => null,
  };
  const database = await openDatabase(url);
  const app = createApp({
    database,
    log: { level: 'silent' },
    authenticators: [
      {
        name: 'name',
        securityScheme: { type: 'http', scheme: 'name' },
        authenticate: ({ headers }) => ({ user: users[headers['x-user'] as Kind], scheme: 'name', scopes: null }),
      },
    ],
    modules: [
      objectGrants({ objects: [folderActions, docActions], groups }),
      { name: 'bench', models: [folders, docs], migrations: [tables] },
    ],
    resources: [resource(folders, { access: grants(folders) })],
    mount: { '/v1': { '/docs': DocController } },
  });
  try {
    await app.openDatabases();
    await migrateApp(app);
    await app.ready();
    return await measure(context, app);
  } finally {
    await app.close();
    await database.close();
  }
}

export default defineBenchmark({
  name: 'grants-list',
  question: 'Does the newest page of a million granted objects cost the same whatever a caller may see?',
  async run(context) {
    const folder = mkdtempSync(join(tmpdir(), 'kit-bench-'));
    const server = await startPostgresServer({ durable: false });
    try {
      const postgres = await onDatabase(context, server.url);
      const sqlite = await onDatabase(context, `sqlite:${join(folder, 'bench.db')}`);
      return [...postgres, ...sqlite];
    } finally {
      await server.stop();
      rmSync(folder, { recursive: true, force: true });
    }
  },
});
