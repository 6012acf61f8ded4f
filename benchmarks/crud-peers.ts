// How fast is generic CRUD next to other toolkits that generate it, doing the same work over HTTP on PostgreSQL: an owner on every row, a
// validated create and change, one row by its key, the second page of 50 under two filters? FeathersJS 5 with knex, NestJS with
// @dataui/crud and TypeORM, and ZenStack 3 with its policies are set up as their documentation has it (the adapters of hono-crud are not on
// the registry). Beside the numbers stands what each does when a client is careless or
// hostile, tried on the running servers.
import { startPostgresServer } from '../test/provision/postgres-server.ts';
import { defineBenchmark, type BenchmarkContext } from './harness/benchmark.ts';
import { median } from './harness/contest.ts';
import { httpContest } from './harness/http-contest.ts';
import { installPeers } from './harness/peers.ts';
import type { Ratio } from './harness/ratio.ts';
import { startServer, type ServerProcess } from './harness/server-process.ts';
import { table } from './harness/table.ts';
import type { LoadRequest } from './harness/wrk.ts';
import { type Databases, type DataSize, postgresDatabases } from './servers/crud/data.ts';
import { requestsOf } from './servers/crud/load.ts';
import { probes } from './servers/crud/probes.ts';
import { ownerId } from './servers/crud/shop.ts';

const SIZE: DataSize = { owners: 100, ordersPerOwner: 1000, itemsPerOrder: 0 };
const OPERATIONS = ['retrieve', 'list', 'create', 'patch'] as const;

interface Peer {
  readonly name: string;
  readonly script: string;
  readonly packages: Readonly<Record<string, string>>;
  /** The query string of the second page of 50 with the two filters. */
  readonly list: string;
  readonly unknownFilter: string;
  readonly foreignFilter: string;
}

const KIT: Peer = {
  name: 'kit',
  script: './servers/crud/kit-server.ts',
  packages: {},
  list: '',
  unknownFilter: '?nope=1',
  foreignFilter: `?owner_id=${ownerId(2)}`,
};

const PEERS: readonly Peer[] = [
  {
    name: 'FeathersJS + knex',
    script: './servers/crud/peers/feathers.ts',
    packages: {
      '@feathersjs/feathers': '5.0.50',
      '@feathersjs/koa': '5.0.50',
      '@feathersjs/knex': '5.0.50',
      '@feathersjs/schema': '5.0.50',
      '@feathersjs/errors': '5.0.50',
      knex: '3.3.0',
      pg: '8.23.1',
    },
    list: '?status=open&quantity[$gte]=2&$limit=50&$skip=50&$sort[created_at]=-1',
    unknownFilter: '?nope=1',
    foreignFilter: `?owner_id=${ownerId(2)}`,
  },
  {
    name: 'NestJS + @dataui/crud',
    script: './servers/crud/peers/nest.ts',
    packages: {
      '@nestjs/common': '11.1.6',
      '@nestjs/core': '11.1.6',
      '@nestjs/platform-express': '11.1.6',
      '@nestjs/typeorm': '11.0.0',
      '@dataui/crud': '5.3.4',
      '@dataui/crud-typeorm': '5.3.4',
      '@dataui/crud-request': '5.3.4',
      typeorm: '0.3.27',
      'class-transformer': '0.5.1',
      'class-validator': '0.14.2',
      'reflect-metadata': '0.2.2',
      rxjs: '7.8.2',
      pg: '8.23.1',
    },
    list: '?filter=status%7C%7C$eq%7C%7Copen&filter=quantity%7C%7C$gte%7C%7C2&limit=50&page=2&sort=created_at,DESC',
    unknownFilter: '?filter=nope%7C%7C$eq%7C%7C1',
    foreignFilter: `?filter=owner_id%7C%7C$eq%7C%7C${ownerId(2)}`,
  },
  {
    name: 'ZenStack 3 server',
    script: './servers/crud/peers/zenstack.ts',
    packages: {
      '@zenstackhq/cli': '3.9.3',
      '@zenstackhq/orm': '3.9.3',
      '@zenstackhq/schema': '3.9.3',
      '@zenstackhq/server': '3.9.3',
      '@zenstackhq/plugin-policy': '3.9.3',
      pg: '8.23.1',
      zod: '4.6.7',
    },
    list: '?status=open&quantity__gte=2&limit=50&offset=50',
    unknownFilter: '?nope=1',
    foreignFilter: `?owner_id=${ownerId(2)}`,
  },
];

export default defineBenchmark({
  name: 'crud-peers',
  question: 'requests per second of a generic CRUD controller against those of other toolkits, and what each refuses',
  async run(context) {
    const size = context.quick ? { ...SIZE, owners: 20, ordersPerOwner: 200 } : SIZE;
    const short = context.quick ? context : { ...context, rounds: 4, roundSeconds: 1 };
    const server = await startPostgresServer();
    const running = new Map<Peer, ServerProcess>();
    try {
      const databases = await postgresDatabases(server.url, size);
      for (const [index, peer] of [KIT, ...PEERS].entries()) {
        const process = await startPeer(context, peer, databases, `peer${index}`);
        if (process !== undefined) running.set(peer, process);
      }
      const ratios: Ratio[] = [];
      for (const operation of OPERATIONS) ratios.push(...(await compare(short, operation, running, size)));
      await printProbes(context, running, size);
      return ratios;
    } finally {
      for (const process of running.values()) await process.stop();
      await server.stop();
    }
  },
});

/** Peers are fetched when the benchmark is run; one that does not install or start is left out, and said so. */
async function startPeer(
  context: BenchmarkContext,
  peer: Peer,
  databases: Databases,
  database: string,
): Promise<ServerProcess | undefined> {
  try {
    const folder = Object.keys(peer.packages).length === 0 ? '' : installPeers(peer.packages, (line) => context.print(line));
    return await startServer(new URL(peer.script, import.meta.url), { args: [await databases.copy(database), folder] });
  } catch (error) {
    context.print(`${peer.name} is left out: ${error instanceof Error ? error.message : String(error)}`);
    return undefined;
  }
}

async function compare(
  context: BenchmarkContext,
  operation: (typeof OPERATIONS)[number],
  running: ReadonlyMap<Peer, ServerProcess>,
  size: DataSize,
): Promise<Ratio[]> {
  context.print(`\n${operation}`);
  const contenders = await Promise.all(
    [...running].map(async ([peer, server]) => ({ name: peer.name, server, requests: await requests(peer, operation, server, size) })),
  );
  const { cpuRatio } = await httpContest(context, contenders);
  const others = contenders.filter(({ name }) => name !== KIT.name).map(({ name }) => cpuRatio(KIT.name, name));
  if (others.length === 0) return [];
  return [
    { name: `crud-${operation}-vs-fastest-peer`, value: Math.min(...others), goal: 1 },
    { name: `crud-${operation}-vs-median-peer`, value: median(others), goal: 2 },
  ];
}

async function requests(
  peer: Peer,
  operation: (typeof OPERATIONS)[number],
  { port }: ServerProcess,
  size: DataSize,
): Promise<LoadRequest[]> {
  if (operation !== 'list' || peer === KIT) return requestsOf(operation, port, size);
  return Array.from({ length: 20 }, (_, owner) => ({
    method: 'GET',
    path: `/v1/orders${peer.list}`,
    headers: { authorization: `Bearer owner-${owner}` },
  }));
}

async function printProbes(context: BenchmarkContext, running: ReadonlyMap<Peer, ServerProcess>, size: DataSize): Promise<void> {
  const rows: string[][] = [];
  for (const [question, probe] of Object.entries(probes)) {
    const verdicts: string[] = [];
    for (const [{ unknownFilter, foreignFilter }, { port }] of running)
      verdicts.push(await probe({ port, size, unknownFilter, foreignFilter }).catch((error: unknown) => `no: ${String(error)}`));
    rows.push([question, ...verdicts]);
  }
  context.print(`\nTried on the running servers:\n${table(['', ...[...running.keys()].map(({ name }) => name)], rows)}`);
}
