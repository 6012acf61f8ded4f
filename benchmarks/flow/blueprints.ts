import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { copied, type Blueprint } from './product.ts';

const here = import.meta.dirname;
const typescriptIn = (folder: string): string[] =>
  readdirSync(join(here, folder))
    .filter((file) => /\.(ts|prisma)$/.test(file) && file !== 'setup.ts')
    .map((file) => join(here, folder, file));

/** Lines with code of what the developer of such a product writes: setup for this benchmark, generated files and comments are not counted. */
export function linesOf({ sources }: Blueprint): number {
  const isCode = (line: string): boolean => line.trim() !== '' && !/^\s*(\/\/|\/\*|\*)/.test(line);
  return sources.reduce((sum, file) => sum + readFileSync(file, 'utf8').split('\n').filter(isCode).length, 0);
}

const kitConfig = join(here, 'kit', 'kit.config.ts');
const kitProgram = join(here, '..', '..', 'packages', 'kit', 'bin', 'kit.js');
const kitCommands = {
  setup: [join(here, 'kit', 'setup.ts')],
  api: [kitProgram, '--config', kitConfig, 'start'],
  worker: [kitProgram, '--config', kitConfig, 'webhooks', 'deliver', '--loop'],
};

export const KIT: Blueprint = {
  name: 'kit',
  packages: {},
  processes: ['API', 'worker', 'PostgreSQL'],
  sources: [kitConfig],
  build: () => join(here, 'kit'),
  command: (program) => ['--conditions=source', ...kitCommands[program]],
  audit: 'select target_id as id, action from audit_inbox union all select target_id, action from audit_entries',
};

export const NEST: Blueprint = {
  name: 'NestJS + Prisma + better-auth + BullMQ',
  packages: {
    '@nestjs/common': '11.1.6',
    '@nestjs/core': '11.1.6',
    '@nestjs/platform-fastify': '11.1.6',
    '@nestjs/bullmq': '11.0.5',
    bullmq: '6.7.0',
    ioredis: '6.0.0',
    prisma: '7.10.0',
    '@prisma/client': '7.10.0',
    '@prisma/adapter-pg': '7.10.0',
    'better-auth': '1.7.5',
    '@better-auth/core': '1.7.5',
    '@better-auth/api-key': '1.7.5',
    '@better-auth/utils': '0.4.2',
    'better-call': '1.4.0',
    'class-validator': '0.14.2',
    'class-transformer': '0.5.1',
    'reflect-metadata': '0.2.2',
    rxjs: '7.8.2',
    standardwebhooks: '1.1.1',
    uuid: '14.0.3',
    pg: '8.23.1',
    typescript: '5.9.3',
  },
  processes: ['API', 'worker', 'PostgreSQL', 'Redis'],
  sources: typescriptIn('nest'),
  build: (peers) => copied(peers, join(here, 'nest'), (folder) => compile(peers, folder)),
  command: (program) => [`${program}.js`],
  audit: 'select order_id as id, action from audit_entries',
};

export const FASTIFY: Blueprint = {
  name: 'Fastify + Drizzle + graphile-worker',
  packages: {
    fastify: '5.12.8',
    'drizzle-orm': '0.45.4',
    'graphile-worker': '0.18.0',
    pg: '8.23.1',
    standardwebhooks: '1.1.1',
    uuid: '14.0.3',
  },
  processes: ['API', 'worker', 'PostgreSQL'],
  sources: typescriptIn('fastify'),
  build: (peers) => copied(peers, join(here, 'fastify')),
  command: (program) => [`${program}.ts`],
  audit: 'select order_id as id, action from audit_entries',
};

/** Prisma's client is generated; decorators with the types of their parameters are TypeScript's own. */
function compile(peers: string, folder: string): void {
  // Its command line asks for an engine that only migrations need, and would fetch it.
  const env = { ...process.env, PRISMA_SCHEMA_ENGINE_BINARY: process.execPath, CHECKPOINT_DISABLE: '1' };
  run(folder, [join(peers, 'node_modules/prisma/build/index.js'), 'generate', '--schema', 'schema.prisma'], env);
  const flags = '--module nodenext --target es2023 --skipLibCheck --experimentalDecorators --emitDecoratorMetadata --noCheck'.split(' ');
  const programs = ['api.ts', 'worker.ts', 'setup.ts'];
  run(folder, [join(peers, 'node_modules/typescript/bin/tsc'), ...flags, ...programs], process.env);
}

function run(cwd: string, args: readonly string[], env: NodeJS.ProcessEnv): void {
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd, env, encoding: 'utf8' });
  if (status !== 0) throw new Error(`${args.join(' ')} failed: ${(stdout + stderr).slice(-2000)}`);
}
