// What does an order cost from the request to the last webhook, in a whole product? POST with an API key, an idempotency key and validation, an audit
// entry, an event to two endpoints; then the list, a PATCH with the same consequences, until all four webhooks were received. Against what a team
// would build: NestJS 11 with Prisma, better-auth's keys and BullMQ, and Fastify with Drizzle and graphile-worker, written as their documentation
// shows (`flow/REVIEW.md` says what was done to make them faster). All answer the same black-box test, and all are killed in a loop first:
// a number of a product that loses orders is not worth much.
import pg from 'pg';
import { startPostgresServer, type PostgresServer } from '../test/provision/postgres-server.ts';
import { startRedisServer } from '../test/provision/redis-server.ts';
import { askAll, type Subject } from './flow/black-box.ts';
import { FASTIFY, KIT, linesOf, NEST } from './flow/blueprints.ts';
import { eventIndex, killLoop, type Damage } from './flow/kill-loop.ts';
import { orderLoad } from './flow/order-load.ts';
import { startProduct, type Blueprint } from './flow/product.ts';
import { startReceiver, type Receiver } from './flow/receiver.ts';
import { cpuMillisOf, memoryOf, postmasterOf, redisPid } from './flow/usage.ts';
import { defineBenchmark, type BenchmarkContext } from './harness/benchmark.ts';
import { contest, median, ratioOf, type Contender } from './harness/contest.ts';
import { installPeers } from './harness/peers.ts';
import type { Ratio } from './harness/ratio.ts';
import { table } from './harness/table.ts';

const ACCOUNTS = 8;
/** How long nothing may arrive before the events that are missing are taken for lost. */
const PATIENCE_MS = 30_000;

export default defineBenchmark({
  name: 'order-flow',
  question: 'What does an order cost from the request to the last webhook, in a whole product of ours and of others?',
  async run(context) {
    const postgres = await startPostgresServer({
      durable: true,
      settings: ['shared_preload_libraries=pg_stat_statements', 'pg_stat_statements.track_utility=on'],
    });
    const redis = await startRedisServer();
    const receiver = await startReceiver();
    const subjects: Subject[] = [];
    try {
      for (const blueprint of [KIT, NEST, FASTIFY]) {
        const subject = await start(context, blueprint, { postgres, redisUrl: redis.url, receiver, index: subjects.length });
        if (subject !== undefined) subjects.push(subject);
      }
      await printVerdicts(context, subjects);
      const damages = await printDamages(context, subjects, context.quick ? 3 : 30);
      const ratios = await compare(context, subjects, await redisPid(redis.url));
      const own = damages.get(KIT)!;
      const lost = own.lostOrders + own.doubledOrders + own.auditFaults + own.lostEvents + own.doubledEvents;
      return [...ratios, { name: 'order-flow-lost-or-doubled', value: lost, goal: 0, atMost: true }];
    } finally {
      for (const { product, database } of subjects) {
        await product.stop();
        await database.end();
      }
      await receiver.stop();
      await redis.stop();
      await postgres.stop();
    }
  },
});

interface Places {
  readonly postgres: PostgresServer;
  readonly redisUrl: string;
  readonly receiver: Receiver;
  readonly index: number;
}

/** Peers are fetched when the benchmark is run; one that does not install or start is left out, and said so. */
async function start(
  context: BenchmarkContext,
  blueprint: Blueprint,
  { postgres, redisUrl, receiver, index }: Places,
): Promise<Subject | undefined> {
  const name = `flow_${index}`;
  const admin = new pg.Client({ connectionString: postgres.url });
  await admin.connect();
  await admin.query(`create database ${name}`);
  await admin.end();
  const address = new URL(postgres.url);
  address.pathname = `/${name}`;
  try {
    const isOurs = Object.keys(blueprint.packages).length === 0;
    const folder = blueprint.build(isOurs ? '' : installPeers(blueprint.packages, (line) => context.print(line)));
    const hooks = (account: number) => [0, 1].map((endpoint) => `${receiver.url}/${name}/${account}/${endpoint}`);
    const accounts = Array.from({ length: ACCOUNTS }, (_, account) => ({ name: `customer${account}`, hooks: hooks(account) }));
    const product = await startProduct({ blueprint, folder, databaseUrl: address.href, redisUrl, accounts });
    const database = new pg.Pool({ connectionString: address.href, max: 2 });
    database.on('error', () => undefined);
    await database.query('create extension pg_stat_statements');
    return { product, blueprint, receiver, database };
  } catch (error) {
    if (blueprint === KIT) throw error;
    context.print(`${blueprint.name} is left out: ${error instanceof Error ? error.message : String(error)}`);
    return undefined;
  }
}

async function printVerdicts(context: BenchmarkContext, subjects: readonly Subject[]): Promise<void> {
  const rows = new Map<string, string[]>();
  for (const subject of subjects)
    for (const [question, verdict] of await askAll(subject))
      rows.set(question, [...(rows.get(question) ?? [question]), verdict === null ? 'yes' : `no: ${verdict}`]);
  context.print(`The same test for all:\n${table(['', ...namesOf(subjects)], [...rows.values()])}`);
}

async function printDamages(context: BenchmarkContext, subjects: readonly Subject[], kills: number): Promise<Map<Blueprint, Damage>> {
  const damages = new Map<Blueprint, Damage>();
  for (const subject of subjects) damages.set(subject.blueprint, await killLoop(subject, kills));
  const row = (what: string, of: (damage: Damage) => number | string): string[] => [
    what,
    ...[...damages.values()].map((each) => String(of(each))),
  ];
  const rows = [
    row('orders', (each) => each.orders),
    row('acknowledged orders lost', (each) => each.lostOrders),
    row('orders doubled', (each) => each.doubledOrders),
    row('orders without exactly one audit entry', (each) => each.auditFaults),
    row('webhooks not received within 90 s', (each) => each.lostEvents),
    row('webhooks doubled', (each) => each.doubledEvents),
    row('webhooks repeated with the same id', (each) => each.repeated),
    row('other answers', (each) => each.strange || '-'),
  ];
  context.print(
    `\nkill -9 of the API (two of three) and the worker, ${kills} times under load:\n${table(['', ...namesOf(subjects)], rows)}`,
  );
  return damages;
}

interface Measured {
  readonly latencies: number[][];
  readonly lags: number[];
  readonly cpu: number[];
  readonly statements: number[];
  memory: number;
  missing: number;
}

async function compare(context: BenchmarkContext, subjects: readonly Subject[], redis: number): Promise<Ratio[]> {
  const postmaster = await postmasterOf(subjects[0]!.database);
  const all = new Map<Subject, Measured>();
  const contenders = subjects.map((subject): Contender => {
    const measured: Measured = { latencies: [[], [], []], lags: [], cpu: [], statements: [], memory: 0, missing: 0 };
    all.set(subject, measured);
    return { name: subject.blueprint.name, measure: (seconds) => measure(subject, seconds, [postmaster, redis], measured) };
  });
  context.print('\norders from the request to the last webhook');
  const result = await contest(context.quick ? context : { ...context, rounds: 5, roundSeconds: 6 }, contenders);
  const measured = [...all.values()];
  const latency = (at: number, share: number) => measured.map(({ latencies }) => quantile(latencies[at] ?? [], share).toFixed(1));
  const rows = [
    ...['POST', 'GET list', 'PATCH'].flatMap((method, at) => [
      [`${method}, p50 ms`, ...latency(at, 0.5)],
      [`${method}, p99 ms`, ...latency(at, 0.99)],
    ]),
    ['order to its two webhooks, p50 ms', ...measured.map(({ lags }) => quantile(lags, 0.5).toFixed(1))],
    ['order to its two webhooks, p99 ms', ...measured.map(({ lags }) => quantile(lags, 0.99).toFixed(1))],
    ['CPU ms per order, databases included', ...measured.map(({ cpu }) => median(cpu).toFixed(2))],
    ['SQL statements per order', ...measured.map(({ statements }) => median(statements).toFixed(1))],
    ['memory of API and worker, MB', ...measured.map(({ memory }) => memory.toFixed(0))],
    ['processes to run', ...subjects.map(({ blueprint: { processes } }) => `${processes.length}: ${processes.join(', ')}`)],
    ['lines of code', ...subjects.map(({ blueprint }) => String(linesOf(blueprint)))],
    ['webhooks missing in the measured rounds', ...measured.map(({ missing }) => String(missing))],
  ];
  context.print(table(['', ...namesOf(subjects)], rows));
  const goals = new Map([
    [NEST, { name: 'order-flow-vs-nestjs', goal: 2 }],
    [FASTIFY, { name: 'order-flow-vs-fastify', goal: 1 }],
  ]);
  return subjects.flatMap(({ blueprint }) => {
    const asked = goals.get(blueprint);
    return asked === undefined ? [] : [{ ...asked, value: ratioOf(result, KIT.name, blueprint.name) }];
  });
}

/** Orders per second, from the first request until the last webhook was received. */
async function measure(subject: Subject, seconds: number, shared: readonly number[], measured: Measured): Promise<number> {
  const { product, receiver, database } = subject;
  receiver.forget();
  const pids = [...product.pids(), ...shared];
  const [cpuBefore, statementsBefore, began] = [cpuMillisOf(pids), await statementsOf(database), performance.now()];
  const { flows, strange } = await orderLoad(product, { isOver: () => performance.now() - began > seconds * 1000, isStubborn: false });
  if (strange.size > 0) throw new Error(`${product.name} answered ${JSON.stringify([...strange])}`);
  const events = eventIndex(receiver.received);
  const left = new Set(
    flows.flatMap(({ id }) => ['created', 'updated'].flatMap((type) => [0, 1].map((end) => `${id} order.${type} ${end}`))),
  );
  const isAllThere = (): boolean => {
    const there = events();
    for (const key of left) if (there.has(key)) left.delete(key);
    return left.size === 0;
  };
  await receiver.until(isAllThere, PATIENCE_MS);
  const last = receiver.received.at(-1)?.at ?? performance.now();
  measured.missing += left.size;
  measured.cpu.push((cpuMillisOf(pids) - cpuBefore) / flows.length);
  measured.statements.push(((await statementsOf(database)) - statementsBefore) / flows.length);
  measured.memory = memoryOf(product.pids());
  for (const { milliseconds } of flows) for (const [at, each] of milliseconds.entries()) measured.latencies[at]!.push(each);
  measured.lags.push(...lagsOf(flows, receiver));
  return flows.length / ((last - began) / 1000);
}

/** From the answer to the POST until the second endpoint had the event. */
function lagsOf(flows: readonly { readonly id: string | undefined; readonly at: number }[], receiver: Receiver): number[] {
  const seconds = new Map<string, number>();
  for (const { body, at } of receiver.received) {
    const { type, data } = JSON.parse(body) as { type: string; data: { id: string } };
    if (type === 'order.created') seconds.set(data.id, at);
  }
  return flows.flatMap(({ id, at }) => (id !== undefined && seconds.has(id) ? [Math.max(0, seconds.get(id)! - at)] : []));
}

async function statementsOf(database: pg.Pool): Promise<number> {
  const { rows } = await database.query<{ calls: string }>(
    'select sum(calls) as calls from pg_stat_statements where dbid = (select oid from pg_database where datname = current_database())',
  );
  return Number(rows[0]?.calls ?? 0);
}

function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

function namesOf(subjects: readonly Subject[]): string[] {
  return subjects.map(({ blueprint }) => blueprint.name);
}
