// How fast does generic CRUD read a file into a table? An import of 10,000 rows of JSON Lines (validated, all or none, owner-scoped),
// compared with the same lines parsed and checked by hand and written with multi-row INSERTs in one transaction, over HTTP on both
// databases; rows per second of whole imports.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openDatabase, tableStatements } from '../packages/kit/src/db/index.ts';
import { startPostgresServer } from '../test/provision/postgres-server.ts';
import { defineBenchmark, type BenchmarkContext } from './harness/benchmark.ts';
import { contest, ratioOf } from './harness/contest.ts';
import type { Ratio } from './harness/ratio.ts';
import { startServer, type ServerProcess } from './harness/server-process.ts';
import { rows } from './servers/crud-files/rows.ts';

const ROWS = 10_000;

const file = Array.from({ length: ROWS }, (_, index) =>
  JSON.stringify({
    sku: `sku-${index}`,
    title: `A thing of ${index}`,
    quantity: index % 90,
    total: `${index % 900}.50`,
    note: index % 3 === 0 ? null : 'a note',
  }),
).join('\n');

async function send({ port }: ServerProcess): Promise<void> {
  const response = await fetch(`http://127.0.0.1:${port}/v1/rows/import?format=jsonl`, {
    method: 'POST',
    headers: { 'content-type': 'application/x-ndjson' },
    body: file,
  });
  const answer = (await response.json()) as { readonly created?: number };
  if (response.status !== 201 || answer.created !== ROWS) throw new Error(`${response.status} ${JSON.stringify(answer).slice(0, 500)}`);
}

async function measure(context: BenchmarkContext, database: string): Promise<Ratio[]> {
  const db = await openDatabase(database);
  const { dialect } = db;
  for (const text of tableStatements(rows.table, dialect)) await db.query(text);
  const start = (name: string) => startServer(new URL(`./servers/crud-files/${name}.ts`, import.meta.url), { args: [database] });
  const [kit, bare] = [await start('kit'), await start('bare')];
  try {
    context.print(`\n${dialect}, ${ROWS} rows`);
    const contender = (name: string, server: ServerProcess) => ({
      name,
      async measure(seconds: number) {
        // Both write into an empty table.
        await db.execute('delete from rows');
        const began = performance.now();
        let done = 0;
        do {
          await send(server);
          done += 1;
        } while (performance.now() - began < seconds * 1000);
        return ((done * ROWS) / (performance.now() - began)) * 1000;
      },
    });
    const result = await contest(context, [contender('import', kit), contender('by hand', bare)]);
    return [{ name: `crud-import-${dialect}`, value: ratioOf(result, 'import', 'by hand'), goal: 0.5 }];
  } finally {
    await kit.stop();
    await bare.stop();
    await db.close();
  }
}

export default defineBenchmark({
  name: 'crud-import',
  question: 'What is left of the rate of hand-written multi-row inserts when generic CRUD imports 10,000 rows?',
  async run(context) {
    const folder = mkdtempSync(join(tmpdir(), 'kit-bench-'));
    const server = await startPostgresServer({ durable: true });
    try {
      return [...(await measure(context, `sqlite:${join(folder, 'bench.db')}`)), ...(await measure(context, server.url))];
    } finally {
      await server.stop();
      rmSync(folder, { recursive: true, force: true });
    }
  },
});
