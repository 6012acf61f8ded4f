import { spawn } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { type Broker, startNats, startRabbitMq } from '../../../test/provision/broker.ts';
import { startRedisServer, type RedisServer } from '../../../test/provision/redis-server.ts';
import { createPostgresDatabase } from '../src/testing/test-database.ts';

interface Manifest {
  readonly peerDependencies: Readonly<Record<string, string>>;
}

/** How one version of a peer is tried, with what must be installed beside it. */
interface Trial {
  readonly script: 'publish-through.mjs' | 'start-through.mjs' | 'trace-through.mjs' | 'use-through.mjs' | 'database.test.mjs';
  readonly on: readonly ('postgres' | 'sqlite')[];
  /** Packages of the same version. */
  readonly same?: readonly string[];
  /** Others, as npm is told. */
  readonly beside?: readonly string[];
  /** Older versions are installed and not run. */
  readonly runsFrom?: string;
  /** A message broker of the trial's own, whose URL the script is given. */
  readonly broker?: () => Promise<Broker>;
}

const TRIALS: Readonly<Record<string, Trial>> = {
  '@mikro-orm/core': {
    script: 'publish-through.mjs',
    on: ['postgres', 'sqlite'],
    same: ['@mikro-orm/postgresql', '@mikro-orm/sql', '@mikro-orm/sqlite'],
  },
  '@modelcontextprotocol/server': { script: 'use-through.mjs', on: ['sqlite'] },
  '@nats-io/jetstream': { script: 'use-through.mjs', on: ['sqlite'], same: ['@nats-io/transport-node'], broker: startNats },
  '@nats-io/transport-node': { script: 'use-through.mjs', on: ['sqlite'], same: ['@nats-io/jetstream'], broker: startNats },
  '@opentelemetry/api': { script: 'trace-through.mjs', on: ['sqlite'] },
  '@prisma/client': { script: 'publish-through.mjs', on: ['postgres'], same: ['@prisma/adapter-pg'] },
  amqplib: { script: 'use-through.mjs', on: ['sqlite'], broker: startRabbitMq },
  'better-auth': { script: 'use-through.mjs', on: ['postgres', 'sqlite'], beside: ['kysely@0.29.8'] },
  // Version 12, which TypeORM 1 asks for, has no binary in its package: it is only installed here.
  'better-sqlite3': { script: 'publish-through.mjs', on: ['sqlite'], runsFrom: '13.0.0' },
  bullmq: { script: 'start-through.mjs', on: ['postgres'], beside: ['ioredis@6'] },
  'drizzle-orm': { script: 'publish-through.mjs', on: ['postgres'], beside: ['pg'] },
  'graphile-worker': { script: 'start-through.mjs', on: ['postgres'] },
  jose: { script: 'use-through.mjs', on: ['sqlite'] },
  kysely: { script: 'use-through.mjs', on: ['postgres', 'sqlite'] },
  nodemailer: { script: 'use-through.mjs', on: ['sqlite'] },
  'pg-boss': { script: 'start-through.mjs', on: ['postgres'] },
  typeorm: { script: 'publish-through.mjs', on: ['postgres'], beside: ['pg'] },
  vitest: { script: 'database.test.mjs', on: ['sqlite'] },
};

const folder = join(import.meta.dirname, 'peers');
const root = join(import.meta.dirname, '../../..');
const { peerDependencies: ranges } = JSON.parse(readFileSync(join(import.meta.dirname, '../package.json'), 'utf8')) as Manifest;
const TWENTY_MINUTES = 1_200_000;

function run(command: string, args: readonly string[], cwd: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd, env: { ...process.env, NODE_OPTIONS: '', npm_config_loglevel: 'error' } });
    let [stdout, stderr] = ['', ''];
    child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
    child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
    child.once('error', reject);
    child.once('exit', (code) =>
      code === 0
        ? resolve(stdout)
        : reject(new Error(`${command} ${args.join(' ')} failed:\n${stdout.slice(-3000)}\n${stderr.slice(-3000)}`)),
    );
  });
}

/** The versions in the range of a peer that are no pre-releases, oldest first; also those of a package that is published along with it. */
async function versionsOf(peer: string, name = peer): Promise<string[]> {
  const found = JSON.parse(await run('npm', ['view', `${name}@${ranges[peer]}`, 'version', '--json'], root)) as string | string[];
  const numbers = (version: string): number[] => version.split('.').map(Number);
  return [found]
    .flat()
    .filter((version) => /^\d+\.\d+\.\d+$/.test(version))
    .toSorted((a, b) => {
      const [left, right] = [numbers(a), numbers(b)];
      return left.map((part, index) => part - (right[index] ?? 0)).find((difference) => difference !== 0) ?? 0;
    });
}

describe('the ranges of peers are what is tested', () => {
  test('every peer has a trial', () => {
    expect(Object.keys(TRIALS).toSorted()).toEqual(Object.keys(ranges).toSorted());
  });

  test.each(Object.keys(ranges))('the version of %s that our own tests use is in its range', (name) => {
    const { version } = JSON.parse(readFileSync(join(root, 'node_modules', name, 'package.json'), 'utf8')) as { version: string };
    expect(inRange(version, ranges[name] ?? '')).toBe(true);
  });

  // Needs a registry and minutes, so it is not part of `npm test`.
  describe.runIf(process.env['KIT_TEST_LONG'] === '1')('oldest and newest', () => {
    let scratch = '';
    let tarball = '';
    let redis: RedisServer | undefined;
    beforeAll(async () => {
      scratch = mkdtempSync(join(tmpdir(), 'kit-peers-'));
      redis = await startRedisServer();
      await run(process.execPath, [join(root, 'scripts/build.ts')], root);
      const packing = ['pack', '--json', '--ignore-scripts', '--pack-destination', scratch];
      const [packed] = JSON.parse(await run('npm', packing, join(root, 'packages/kit'))) as { filename: string }[];
      tarball = join(scratch, packed?.filename ?? '');
    });
    afterAll(async () => {
      await redis?.stop();
      rmSync(scratch, { recursive: true, force: true });
    });

    async function tryVersion(name: string, trial: Trial, version: string): Promise<void> {
      const { script, on, same = [], beside = [], runsFrom, broker: startBroker } = trial;
      const project = join(scratch, `${name}-${version}`.replaceAll(/\W/g, '-'));
      mkdirSync(project);
      writeFileSync(join(project, 'package.json'), '{"private":true,"type":"module"}');
      const packages = [tarball, ...[name, ...same].map((each) => `${each}@${version}`), ...beside];
      // Without --force and --legacy-peer-deps: what a user types must resolve.
      await run('npm', ['install', '--no-audit', '--no-fund', '--ignore-scripts', ...packages], project);
      if (runsFrom !== undefined && !inRange(version, `>=${runsFrom}`)) return;
      copyFileSync(join(folder, script), join(project, script));
      copyFileSync(join(import.meta.dirname, 'webhooks/prisma/orders.json'), join(project, 'orders.json'));
      for (const dialect of on) {
        const place = dialect === 'sqlite' ? undefined : await createPostgresDatabase(inject('postgresUrl' as never));
        const url = place?.url ?? `sqlite:${join(project, 'orders.db')}`;
        const broker = await startBroker?.();
        const server = broker?.url ?? redis?.url ?? '';
        const args = script === 'database.test.mjs' ? ['node_modules/vitest/vitest.mjs', 'run'] : [script, name, url, server];
        try {
          await run(process.execPath, args, project);
        } finally {
          await broker?.close();
          await place?.remove();
        }
      }
    }

    /** A registry may lack a package that the newest version needs. */
    async function newestInstallable(name: string, versions: readonly string[]): Promise<string> {
      for (const version of versions.toReversed())
        try {
          await run('npm', ['install', '--dry-run', '--no-audit', '--no-fund', '--ignore-scripts', `${name}@${version}`], scratch);
          return version;
        } catch (error) {
          if (!/ETARGET|E404/.test(String(error))) throw error;
        }
      throw new Error(`no version of ${name} can be installed`);
    }

    for (const [name, trial] of Object.entries(TRIALS)) {
      test(
        `${name}: the oldest and the newest version of the range install beside kit and work`,
        async () => {
          const along = await Promise.all((trial.same ?? []).map((other) => versionsOf(name, other)));
          const versions = (await versionsOf(name)).filter((version) => along.every((others) => others.includes(version)));
          const oldest = versions[0];
          if (oldest === undefined) throw new Error(`no version of ${name} in ${ranges[name]}`);
          const newest = await newestInstallable(name, versions);
          console.info(`${name} ${ranges[name]}: ${oldest} and ${newest}`);
          expect((ranges[name] ?? '').includes(oldest)).toBe(true);
          for (const version of new Set([oldest, trial.runsFrom ?? oldest, newest])) await tryVersion(name, trial, version);
        },
        TWENTY_MINUTES,
      );
    }

    test(
      'npm install kit typeorm better-sqlite3 resolves',
      async () => {
        const project = join(scratch, 'together');
        mkdirSync(project);
        writeFileSync(join(project, 'package.json'), '{"private":true,"type":"module"}');
        await run('npm', ['install', '--no-audit', '--no-fund', '--ignore-scripts', tarball, 'typeorm', 'better-sqlite3'], project);
      },
      TWENTY_MINUTES,
    );
  });
});

/** `^1.2.3`, `>=1.2.3 <2.0.0`, and several of them with `||`. */
function inRange(version: string, range: string): boolean {
  const atLeast = (limit: string): boolean => {
    const [left, right] = [version, limit].map((text) => text.split('.').map(Number)) as [number[], number[]];
    return (left.map((part, index) => part - (right[index] ?? 0)).find((difference) => difference !== 0) ?? 0) >= 0;
  };
  return range.split('||').some((part) =>
    part
      .trim()
      .split(' ')
      .every((rule) => {
        const limit = rule.replace(/^\D+/, '');
        if (rule.startsWith('>=')) return atLeast(limit);
        if (rule.startsWith('<')) return !atLeast(limit);
        const [major = 0, minor = 0] = limit.split('.').map(Number);
        return atLeast(limit) && !atLeast(major > 0 ? `${major + 1}.0.0` : `0.${minor + 1}.0`);
      }),
  );
}
