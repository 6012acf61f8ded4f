// What do rows save that come from the database in the form they have in JSON? A page of 50 orders of an owner, with two filters, to the text of its
// response: read in that form, compared with rows as code has them (dates are objects) that are then written. The same bytes. CPU time of this
// process, in turns, on both databases.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { columnJsonSchema } from '../packages/kit/src/db/declare/column-json.ts';
import { openDatabase, type Database } from '../packages/kit/src/db/index.ts';
import { compileSerializer } from '../packages/kit/src/http/json/project.ts';
import { startPostgresServer } from '../test/provision/postgres-server.ts';
import { defineBenchmark, type BenchmarkContext } from './harness/benchmark.ts';
import { median } from './harness/contest.ts';
import { cpuPerOperation } from './harness/loop.ts';
import type { Ratio } from './harness/ratio.ts';
import { table } from './harness/table.ts';
import { fill } from './servers/crud/data.ts';
import { ORDER_COLUMNS, orders, ownerId } from './servers/crud/shop.ts';

const SIZE = { owners: 10, ordersPerOwner: 1000, itemsPerOrder: 1 };
const PAGE = 50;
const TEXT = `select ${ORDER_COLUMNS.map((name) => `"${name}"`).join(', ')} from orders
  where owner_id = $1 and status = $2 and quantity >= $3 order by created_at desc, id desc limit ${PAGE}`;
const PARAMETERS = [ownerId(3), 'open', 2];
const GOALS = { sqlite: 1.8, postgres: 1.2 };

const serialize = compileSerializer({
  type: 'array',
  items: {
    type: 'object',
    properties: Object.fromEntries(
      Object.entries(orders.columns).map(([name, { settings }]) => [name, columnJsonSchema(settings, 'output')]),
    ),
  },
});

async function measure(context: BenchmarkContext, db: Database): Promise<Ratio> {
  await fill(db, SIZE);
  await db.query('analyze');
  const asCode = async (): Promise<string> => serialize(await db.query(TEXT, PARAMETERS));
  const wire = async (): Promise<string> => serialize(await db.query(TEXT, PARAMETERS, { as: 'wire' }));
  const [expected, text] = [await asCode(), await wire()];
  if (text !== expected || (JSON.parse(text) as unknown[]).length !== PAGE)
    throw new Error('The two forms differ, or the page is not whole.');
  const costs: Record<'asCode' | 'wire', number[]> = { asCode: [], wire: [] };
  for (let round = 0; round < (context.quick ? 4 : 40); round++) {
    const [code, inWire] = [await cpuPerOperation(asCode, 200), await cpuPerOperation(wire, 200)];
    // The first rounds are the compiler's.
    if (round < 2) continue;
    costs.asCode.push(code);
    costs.wire.push(inWire);
  }
  const [code, inWire] = [median(costs.asCode), median(costs.wire)];
  context.print(`\n${db.dialect}`);
  context.print(
    table(
      ['rows', 'µs of CPU for a page'],
      [
        ['as code has them', code.toFixed(1)],
        ['in their wire form', inWire.toFixed(1)],
      ],
    ),
  );
  return { name: `crud-wire-${db.dialect}`, value: code / inWire, goal: GOALS[db.dialect] };
}

export default defineBenchmark({
  name: 'crud-wire',
  question: 'CPU time of a page of 50 rows that are read in their JSON form, against rows with dates as objects',
  async run(context) {
    const folder = mkdtempSync(join(tmpdir(), 'kit-bench-'));
    const postgres = await startPostgresServer();
    try {
      const ratios: Ratio[] = [];
      for (const url of [`sqlite:${join(folder, 'bench.db')}`, postgres.url]) {
        const db = await openDatabase(url);
        try {
          ratios.push(await measure(context, db));
        } finally {
          await db.close();
        }
      }
      return ratios;
    } finally {
      await postgres.stop();
      rmSync(folder, { recursive: true, force: true });
    }
  },
});
