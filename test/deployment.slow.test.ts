import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, inject, onTestFinished, test } from 'vitest';
import { createPostgresDatabase } from 'kit/testing';
import { KitProgram, type KitRun } from '../packages/kit/test/cli/kit-program.ts';
import { root } from './docs/pages.ts';
import { compose, deployedProcesses, pods } from './deployment/manifests.ts';
import { freePort } from './provision/free-port.ts';
import { shippedFile } from './provision/shipped-file.ts';

const PROGRAMS: Readonly<Record<string, string>> = {
  kit: join(root, 'packages/kit/bin/kit.js'),
  'config-server': join(root, 'packages/config-server/bin/config-server.js'),
};
const app = join(root, 'examples/orders/kit.config.ts');

test('every command of the examples exists, with every option it is given', async () => {
  // One process for all commands of kit: each would load the app again.
  const kit = new KitProgram(root, { DATA_FOLDER: mkdtempSync(join(tmpdir(), 'kit-commands-')) });
  onTestFinished(() => kit.close());
  const shapes = new Map(deployedProcesses().map(({ argv }) => [argv.filter((arg) => !/^[/\d]/.test(arg)).join(' '), argv]));
  expect(shapes.size).toBeGreaterThan(5);
  const general = (await kit.run(['--help'])).stdout;
  for (const [shape, [program = '', ...args]] of shapes) {
    // `kit --config <file> <command…> <options…>`; the configuration server has options only.
    const words = program === 'kit' ? args.slice(2).filter((arg) => !/^(-|[/\d])/.test(arg) && arg !== '0.0.0.0') : [];
    const help = program === 'kit' ? await kit.run(['--config', app, ...words, '--help']) : helpOf(program);
    expect(`${shape}: ${help.code} ${help.stderr}`).toBe(`${shape}: 0 `);
    for (const option of args.filter((arg) => arg.startsWith('--')))
      expect(program === 'kit' ? `${help.stdout}${general}` : help.stdout).toContain(option);
  }
}, 600_000);

function helpOf(program: string): KitRun {
  const { status, stdout, stderr } = spawnSync(process.execPath, [PROGRAMS[program] ?? '', '--help'], { encoding: 'utf8' });
  return { code: status, stdout, stderr };
}

test('what compose.yaml describes runs here: migrate, serve, deliver, answer the probes, stop in time', { timeout: 900_000 }, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'kit-deployment-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const database = await createPostgresDatabase(inject('postgresUrl'));
  onTestFinished(() => database.remove());
  const ports = { api: await freePort(), config: await freePort() };

  // The script's own secrets, but for the address of the database.
  cpSync(join(root, 'deploy/docker/make-secrets.sh'), join(folder, 'make-secrets.sh'));
  mkdirSync(join(folder, 'secrets'));
  writeFileSync(join(folder, 'secrets/database_url'), `${database.url}\n`);
  expect(spawnSync('sh', [join(folder, 'make-secrets.sh')]).status).toBe(0);
  cpSync(join(root, 'deploy/config'), join(folder, 'config'), { recursive: true });
  mkdirSync(join(folder, 'tmp'));

  const here = (text: string): string =>
    text
      .replaceAll('/run/secrets', join(folder, 'secrets'))
      .replaceAll('/etc/config-server', join(folder, 'config'))
      .replaceAll('/app/', `${root}/`)
      .replaceAll('http://config-server:8888', `http://127.0.0.1:${ports.config}`)
      .replaceAll(/^0\.0\.0\.0$/g, '127.0.0.1')
      .replaceAll(/^3000$/g, String(ports.api))
      // All of them run on this machine: each takes a free one.
      .replaceAll(/^9464$/g, '0')
      .replaceAll(/^\/data$/g, join(folder, 'data'));
  const serverToml = shippedFile('deploy/config/server.toml', {
    '0.0.0.0:8888': `127.0.0.1:${ports.config}`,
    '/run/secrets/config_token': join(folder, 'secrets/config_token'),
  });
  writeFileSync(join(folder, 'config/server.toml'), serverToml);

  const start = (service: string): { child: ChildProcess; output: () => string; exit: Promise<number | null> } => {
    const { argv, environment } = deployedProcesses().find(({ where }) => where === `compose ${service}`) ?? { argv: [], environment: {} };
    const [program = '', ...args] = argv.map(here);
    const env = Object.fromEntries(Object.entries(environment).map(([name, value]) => [name, here(value)]));
    const child = spawn(process.execPath, [PROGRAMS[program] ?? '', ...args], {
      env: { PATH: process.env['PATH'], NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'], NODE_ENV: 'production', ...env },
      cwd: folder,
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream?.on('data', (chunk: Buffer) => (output += chunk.toString()));
    onTestFinished(() => void child.kill('SIGKILL'));
    return { child, output: () => output, exit: new Promise((done) => child.once('close', done)) };
  };
  const healthy = (address: string) => () =>
    fetch(address).then(
      ({ ok }) => ok,
      () => false,
    );

  const migrate = start('migrate');
  expect([await migrate.exit, migrate.output()]).toEqual([0, expect.stringContaining('applied')]);
  const configServer = start('config-server');
  await expect.poll(healthy(probed('config-server', ports.config)), { timeout: 300_000 }).toBe(true);
  const api = start('api');
  const worker = start('worker');
  const jobs = start('jobs');
  await expect.poll(healthy(probed('api', ports.api)), { timeout: 300_000 }).toBe(true);
  for (const path of pods().flatMap(({ where, spec }) => (where.endsWith('orders-api') ? probePaths(spec.containers) : [])))
    expect([path, (await fetch(`http://127.0.0.1:${ports.api}${path}`)).status]).toEqual([path, 200]);
  await expect.poll(() => configServer.output(), { timeout: 300_000 }).toContain('"application":"orders"');

  await expect.poll(() => worker.output(), { timeout: 300_000 }).toContain('Delivering');
  await expect.poll(() => jobs.output(), { timeout: 300_000 }).toContain('Running jobs');

  for (const [name, { child, exit, output }] of Object.entries({ api, worker, jobs, configServer })) {
    child.kill('SIGTERM');
    expect([name, await exit, output()]).toEqual([name, 0, expect.not.stringMatching(/"level":[56]0/)]);
  }
});

/** The address a service's health check asks, on this machine. */
function probed(service: string, port: number): string {
  const script = compose().services[service]?.healthcheck?.test.join(' ') ?? '';
  return (/http:\/\/127\.0\.0\.1:\d+[^']*/.exec(script)?.[0] ?? '').replace(/:\d+/, `:${port}`);
}

function probePaths(
  containers: { livenessProbe?: { httpGet: { path: string } }; readinessProbe?: { httpGet: { path: string } } }[],
): string[] {
  return containers.flatMap(({ livenessProbe, readinessProbe }) =>
    [livenessProbe, readinessProbe].flatMap((probe) => probe?.httpGet.path ?? []),
  );
}
