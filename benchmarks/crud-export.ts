// How fast does generic CRUD write its rows into a file, and in how much memory? An export of 1,000,000 rows of one owner as CSV over HTTP,
// compared with a bare cursor of the driver and CSV written by hand, on both databases; rows per second of whole downloads. Then the heap of
// the server in the middle of an export, after a forced collection, over what it had before.
import { mkdtempSync, rmSync } from 'node:fs';
import { once } from 'node:events';
import { request, type IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openDatabase, tableStatements } from '../packages/kit/src/db/index.ts';
import { startPostgresServer } from '../test/provision/postgres-server.ts';
import { defineBenchmark, type BenchmarkContext } from './harness/benchmark.ts';
import { contest, ratioOf } from './harness/contest.ts';
import type { Ratio } from './harness/ratio.ts';
import { startServer, type ServerProcess } from './harness/server-process.ts';
import { fillSql, rows } from './servers/crud-files/rows.ts';

const ROWS = 1_000_000;
const ROWS_QUICK = 50_000;
const ROUNDS = 3;
const HEAP_GOAL_MB = 32;

/** Reads a whole file and returns how many lines it has. `each` is asked between chunks. */
async function download(port: number, each?: () => Promise<unknown>): Promise<number> {
  const asked = request({ port, host: '127.0.0.1', path: '/v1/rows/export?format=csv' });
  asked.end();
  const [response] = (await once(asked, 'response')) as [IncomingMessage];
  if (response.statusCode !== 200) throw new Error(`status ${response.statusCode}`);
  let lines = 0;
  let chunks = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, at + 1)) lines += 1;
    if ((chunks += 1) % 200 === 0) await each?.();
  }
  return lines;
}

async function heapOverBase(server: ServerProcess): Promise<number> {
  await download(server.port);
  const base = await server.heapBytes();
  let most = base;
  await download(server.port, async () => {
    most = Math.max(most, await server.heapBytes());
  });
  return (most - base) / 2 ** 20;
}

async function measure(context: BenchmarkContext, database: string, count: number): Promise<Ratio[]> {
  const db = await openDatabase(database);
  const { dialect } = db;
  for (const text of tableStatements(rows.table, dialect)) await db.query(text);
  await db.execute(fillSql(dialect, count));
  await db.execute(dialect === 'postgres' ? 'vacuum analyze' : 'analyze');
  await db.close();
  const start = (name: string) => startServer(new URL(`./servers/crud-files/${name}.ts`, import.meta.url), { args: [database] });
  const [kit, bare] = [await start('kit'), await start('bare')];
  try {
    context.print(`\n${dialect}, ${count} rows`);
    const contender = (name: string, server: ServerProcess) => ({
      name,
      async measure() {
        const began = performance.now();
        const lines = await download(server.port);
        if (lines !== count + 1) throw new Error(`${name}: ${lines} lines instead of ${count + 1}`);
        return (count / (performance.now() - began)) * 1000;
      },
    });
    const result = await contest({ ...context, rounds: ROUNDS }, [contender('export', kit), contender('by hand', bare)]);
    const heap = await heapOverBase(kit);
    context.print(`heap over base in the middle of an export: ${heap.toFixed(1)} MB`);
    return [
      { name: `crud-export-${dialect}`, value: ratioOf(result, 'export', 'by hand'), goal: 0.5 },
      { name: `crud-export-heap-mb-${dialect}`, value: heap, goal: HEAP_GOAL_MB, atMost: true },
    ];
  } finally {
    await kit.stop();
    await bare.stop();
  }
}

export default defineBenchmark({
  name: 'crud-export',
  question: 'What is left of the rate of a bare cursor when generic CRUD exports a million rows, and in how much heap?',
  async run(context) {
    const count = context.quick ? ROWS_QUICK : ROWS;
    const folder = mkdtempSync(join(tmpdir(), 'kit-bench-'));
    const server = await startPostgresServer();
    try {
      return [...(await measure(context, `sqlite:${join(folder, 'bench.db')}`, count)), ...(await measure(context, server.url, count))];
    } finally {
      await server.stop();
      rmSync(folder, { recursive: true, force: true });
    }
  },
});
