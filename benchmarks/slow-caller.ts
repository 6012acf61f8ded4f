// What does one caller with slow searches cost another caller? A table as people have them (320,000 rows, all of the
// attacker): one socket after the other with 40 pipelined searches of ten words, closed after 0.1 s. Meanwhile another user reads a row by its
// key and a probe asks /health/live, both without attack first. Delays of the two are compared within the run: at most three times the quiet
// p99 plus 250 ms for the read, 100 ms for the probe. Afterwards, no statement of the attacker may run on the server.
import { mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { startPostgresServer } from '../test/provision/postgres-server.ts';
import { createApp } from '../packages/kit/src/app/assemble/create-app.ts';
import { migrateApp } from '../packages/kit/src/app/data/migration-modules.ts';
import { CrudController, resource } from '../packages/kit/src/crud/index.ts';
import { createTable, migration, model, openDatabase, t } from '../packages/kit/src/db/index.ts';
import type { Database } from '../packages/kit/src/db/engine/db.ts';
import { HealthController } from '../packages/kit/src/middleware/index.ts';
import { isAuthenticated } from '../packages/kit/src/permissions/index.ts';
import { defineBenchmark, type BenchmarkContext } from './harness/benchmark.ts';
import type { Ratio } from './harness/ratio.ts';
import { table } from './harness/table.ts';

const columns = { id: t.uuidv7().pk(), owner_id: t.uuid().readOnly(), body: t.text() };
const indexes = { indexes: [{ columns: ['owner_id', '-id'] }] };
const notes = model('notes', columns, indexes);
class NoteController extends CrudController(resource(notes, { owner: 'owner_id' }), { permission: isAuthenticated, search: ['body'] }) {}

const [ATTACKER, READER] = ['00000000-0000-7000-8000-000000000001', '00000000-0000-7000-8000-000000000002'];
const ROW = '01890000-0000-7000-8000-000000000000';
const SEARCH = Array.from({ length: 10 }, (_, n) => `nothing${n}`).join('+');
const PIPELINED = 40;
const ATTACKED_MS = 100;

async function fill(db: Database, rows: number): Promise<void> {
  const isPostgres = db.dialect === 'postgres';
  const id = isPostgres
    ? `('01890000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid`
    : `'01890000-0000-7000-8000-' || printf('%012x', n)`;
  const series = isPostgres
    ? `generate_series(1, ${rows}) n`
    : `(with recursive c(n) as (select 1 union all select n + 1 from c where n < ${rows}) select n from c)`;
  await db.query(`insert into notes (id, owner_id, body) select ${id}, '${ATTACKER}', 'some words of a note ' || n from ${series}`);
  await db.query(`insert into notes (id, owner_id, body) values ('${ROW}', '${READER}', 'mine')`);
  await db.query(isPostgres ? 'vacuum analyze notes' : 'analyze');
}

function percentile(values: readonly number[], part: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0;
}

/** Milliseconds of each request, one after the other. Each must be answered as without an attack. */
async function delays(url: string, user: string, until: () => boolean): Promise<number[]> {
  const found: number[] = [];
  while (!until()) {
    const begin = performance.now();
    const response = await fetch(url, { headers: { 'x-user': user } });
    await response.arrayBuffer();
    found.push(performance.now() - begin);
    if (response.status !== 200) throw new Error(`${url}: ${response.status} during the attack`);
    await pause(5);
  }
  return found;
}

async function attack(port: number, until: () => boolean): Promise<void> {
  const request = `GET /v1/notes?search=${SEARCH} HTTP/1.1\r\nhost: a\r\nx-user: ${ATTACKER}\r\n\r\n`;
  while (!until()) {
    const socket = connect(port, '127.0.0.1');
    socket.on('error', () => undefined).resume();
    socket.write(request.repeat(PIPELINED));
    await pause(ATTACKED_MS);
    socket.destroy();
  }
}

async function compare(context: BenchmarkContext, url: string): Promise<Ratio[]> {
  const db = await openDatabase(url);
  const app = createApp({
    database: db,
    log: { level: 'silent' },
    authenticators: [
      {
        name: 'name',
        securityScheme: { type: 'http', scheme: 'name' },
        authenticate: ({ headers }) => {
          const id = String(headers['x-user']);
          return {
            user: { id, username: id, email: null, is_active: true, is_staff: false, is_superuser: false },
            scheme: 'name',
            scopes: null,
          };
        },
      },
    ],
    modules: [{ name: 'bench', models: [notes], migrations: [migration('0001_initial', [createTable('notes', columns, indexes)])] }],
    mount: { '/': { '/': new HealthController() }, '/v1': { '/notes': NoteController } },
  });
  try {
    await migrateApp(app);
    await fill(db, context.quick ? 40_000 : 320_000);
    await app.ready();
    const address = await app.listen({ port: 0 });
    const seconds = context.quick ? 3 : 20;
    const during = async (isAttacked: boolean) => {
      const end = performance.now() + seconds * 1000;
      const isOver = () => performance.now() > end;
      const [key, live] = await Promise.all([
        delays(`${address}/v1/notes/${ROW}`, READER, isOver),
        delays(`${address}/live`, READER, isOver),
        isAttacked ? attack(Number(new URL(address).port), isOver) : undefined,
      ]);
      return { key: percentile(key, 0.99), live: percentile(live, 0.99) };
    };
    await during(false);
    const quiet = await during(false);
    const attacked = await during(true);
    let left = 0;
    if (db.dialect === 'postgres') {
      await pause(1000);
      const rows = await db.query(
        `select 1 from pg_stat_activity where state = 'active' and query like '%from "notes"%' and pid <> pg_backend_pid()`,
      );
      left = rows.length;
    }
    const ms = (value: number) => value.toFixed(1);
    const lines = [
      ['row by key', ms(quiet.key), ms(attacked.key)],
      ['/live', ms(quiet.live), ms(attacked.live)],
    ];
    context.print(`\n${db.dialect}: statements of the attacker a second later: ${left}`);
    context.print(table(['p99', 'quiet ms', 'attacked ms'], lines));
    return [
      { name: `slow-caller-key-${db.dialect}`, value: attacked.key / (3 * quiet.key + 250), goal: 1, atMost: true },
      { name: `slow-caller-live-${db.dialect}`, value: attacked.live / 100, goal: 1, atMost: true },
      ...(db.dialect === 'postgres' ? [{ name: 'slow-caller-left-postgres', value: left, goal: 0, atMost: true }] : []),
    ];
  } finally {
    await app.close();
    await db.close();
  }
}

export default defineBenchmark({
  name: 'slow-caller',
  question: 'How much longer do a row by key and a health probe take while another caller sends slow searches and closes its sockets?',
  async run(context) {
    const folder = mkdtempSync(join(tmpdir(), 'kit-bench-'));
    const server = await startPostgresServer();
    try {
      return [...(await compare(context, server.url)), ...(await compare(context, `sqlite:${join(folder, 'slow.db')}`))];
    } finally {
      await server.stop();
      rmSync(folder, { recursive: true, force: true });
    }
  },
});
