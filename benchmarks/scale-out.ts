// Do two processes serve twice as much as one? They share a database, and in it the budgets of throttles, the keys and the audit log. On a machine
// with two cores PostgreSQL and the load need a part of them, too, so two things are said: requests per second, and the CPU time of the processes
// per request. The second is what a process costs beside another: two that each take as long as one alone serve twice as much where there are cores.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { startPostgresServer } from '../test/provision/postgres-server.ts';
import { defineBenchmark, type BenchmarkContext } from './harness/benchmark.ts';
import { contest, median, ratioOf, type Contender } from './harness/contest.ts';
import type { Ratio } from './harness/ratio.ts';
import { startServer, type ServerProcess } from './harness/server-process.ts';
import { type LoadRequest, requestRate } from './harness/wrk.ts';

const SCRIPT = new URL('./servers/scale-out.ts', import.meta.url);

async function run(context: BenchmarkContext): Promise<Ratio[]> {
  const postgres = await startPostgresServer({ durable: true });
  const servers: ServerProcess[] = [];
  try {
    const key = prepare(postgres.url);
    const alone = await startServer(SCRIPT, { args: [postgres.url], isUnderTest: false });
    const pair = [alone, await startServer(SCRIPT, { args: [postgres.url], isUnderTest: false })];
    servers.push(...pair);
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
    const create: LoadRequest = { method: 'POST', path: '/v1/orders', headers, body: JSON.stringify({ item: 'Beans', quantity: 2 }) };
    const kinds: Readonly<Record<string, readonly LoadRequest[]>> = {
      list: [{ method: 'GET', path: '/v1/orders?limit=50', headers }],
      create: [create],
    };
    for (const { port } of pair) await requestRate(port, [create], context.quick ? 1 : 6);
    const ratios: Ratio[] = [];
    for (const [name, requests] of Object.entries(kinds))
      ratios.push(...(await compare(context, name, requests, { alone: [alone], pair })));
    return ratios;
  } finally {
    for (const server of servers) await server.stop();
    await postgres.stop();
  }
}

/** The tables, a user and a key. */
function prepare(url: string): string {
  const { status, stdout, stderr } = spawnSync(process.execPath, ['--conditions=source', fileURLToPath(SCRIPT), url, 'prepare'], {
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(stderr);
  return stdout;
}

interface Sides {
  readonly alone: readonly ServerProcess[];
  readonly pair: readonly ServerProcess[];
}

async function compare(context: BenchmarkContext, name: string, requests: readonly LoadRequest[], sides: Sides): Promise<Ratio[]> {
  context.print(`\n${name}`);
  const cpu = new Map<string, number[]>();
  const side = (title: string, servers: readonly ServerProcess[]): Contender => ({
    name: title,
    async measure(seconds) {
      const used = async (): Promise<number> => sum(await Promise.all(servers.map((server) => server.cpuMicros())));
      const before = await used();
      const rate = sum(await Promise.all(servers.map(({ port }) => requestRate(port, requests, seconds))));
      cpu.set(title, [...(cpu.get(title) ?? []), ((await used()) - before) / (rate * seconds)]);
      return rate;
    },
  });
  const result = await contest(context, [side('one process', sides.alone), side('two processes', sides.pair)]);
  // The first turn warmed up.
  const [one = [], two = []] = ['one process', 'two processes'].map((title) => cpu.get(title)?.slice(1));
  context.print(`CPU of the API per request: one process ${median(one).toFixed(0)} µs, two ${median(two).toFixed(0)} µs`);
  return [
    { name: `scale-out-${name}-rate`, value: ratioOf(result, 'two processes', 'one process'), goal: 1.7 },
    { name: `scale-out-${name}-by-cpu`, value: median(one.map((each, turn) => (2 * each) / (two[turn] ?? Number.NaN))), goal: 1.7 },
  ];
}

const sum = (values: readonly number[]): number => values.reduce((total, each) => total + each, 0);

export default defineBenchmark({
  name: 'scale-out',
  question: 'Do two processes on one database serve twice as much as one?',
  run,
});
