// What does the toolkit cost over bare Fastify that does the same by hand? GET by id and a validated POST, each with a credential,
// a scope and schemas. NestJS on Fastify, with a guard and a validation pipe, joins for orientation.
import { defineBenchmark, type BenchmarkContext } from './harness/benchmark.ts';
import { ratioOf } from './harness/contest.ts';
import { cpuContest } from './harness/cpu-contest.ts';
import { requestsPerSecond, type HttpLoad } from './harness/http-load.ts';
import { installPeers } from './harness/peers.ts';
import type { Ratio } from './harness/ratio.ts';
import { startServer, type ServerProcess } from './harness/server-process.ts';
import { questions } from './servers/order-load.ts';

const NEST = {
  '@nestjs/common': '12.3.2',
  '@nestjs/core': '12.3.2',
  '@nestjs/platform-fastify': '12.3.2',
  'reflect-metadata': '0.2.2',
  rxjs: '7.8.2',
};

export default defineBenchmark({
  name: 'http-overhead',
  question: 'requests per second through a controller with credential, scope and schemas, against bare Fastify doing the same',
  async run(context) {
    const servers = new Map<string, ServerProcess>();
    try {
      servers.set('kit', await startServer(new URL('./servers/http-kit.ts', import.meta.url)));
      servers.set('bare Fastify', await startServer(new URL('./servers/http-fastify.ts', import.meta.url)));
      const nest = await startNest(context);
      if (nest !== undefined) servers.set('NestJS on Fastify', nest);
      const ratios: Ratio[] = [];
      for (const { name, load } of questions) ratios.push(...(await compare(context, name, servers, load)));
      return ratios;
    } finally {
      for (const server of servers.values()) await server.stop();
    }
  },
});

/** The peer is fetched when the benchmark is run; without a registry the rest still is measured. */
async function startNest(context: BenchmarkContext): Promise<ServerProcess | undefined> {
  try {
    const folder = installPeers(NEST, (line) => context.print(line));
    return await startServer(new URL('./servers/http-nest.ts', import.meta.url), { args: [folder] });
  } catch (error) {
    context.print(`NestJS is left out: ${error instanceof Error ? error.message : String(error)}`);
    return undefined;
  }
}

async function compare(
  context: BenchmarkContext,
  name: string,
  servers: ReadonlyMap<string, ServerProcess>,
  load: (port: number) => HttpLoad,
): Promise<Ratio[]> {
  context.print(`\n${name}`);
  const contenders = [...servers].map(([contender, server]) => ({
    name: contender,
    server,
    load: (seconds: number) => requestsPerSecond(load(server.port), seconds),
  }));
  const { rates, cpuRatio } = await cpuContest(context, contenders);
  return [
    { name, value: ratioOf(rates, 'kit', 'bare Fastify'), goal: 0.8 },
    // On a noisy machine, or where the load generator is the limit, this one is to be trusted.
    { name: `${name}-cpu`, value: cpuRatio('kit', 'bare Fastify'), goal: 0.8 },
  ];
}
