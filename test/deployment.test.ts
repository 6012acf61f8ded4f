import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { spawnSync } from 'node:child_process';
import { describe, expect, test } from 'vitest';
import { readSettings } from '../packages/kit/src/app/declare/config.ts';
import { readJobsOptions } from '../packages/kit/src/contrib/jobs/options.ts';
import { TrustedProxies } from '../packages/kit/src/http/exchange/trusted-proxies.ts';
import { DEFAULT_TIMEOUT_MS } from '../packages/kit/src/contrib/webhooks/network/transport.ts';
import { root } from './docs/pages.ts';
import { compose, deployedProcesses, pods, resources, unitLines, units } from './deployment/manifests.ts';

const source = (path: string): string => readFileSync(join(root, path), 'utf8');

/** Variables that the toolkit, its program, the example and Node read. */
function knownVariables(): Set<string> {
  const settings = [...source('packages/kit/src/app/declare/config.ts').matchAll(/'([A-Z][A-Z_]+)'/g)].map(([, name]) => name ?? '');
  const example = [...source('examples/orders/config.ts').matchAll(/process\.env\['(\w+)'\]|\b([A-Z_]{4,})(?=:| =)/g)].map(
    ([, read, taken]) => read ?? taken ?? '',
  );
  const files = ['DATABASE_URL_FILE', 'API_KEY_PEPPER_FILE', 'WEBHOOK_SECRET_KEYS_FILE', 'ACCOUNT_SECRET_KEYS_FILE'];
  return new Set([...settings, ...example, ...files, 'PORT', 'HOST', 'NODE_ENV']);
}

test('every variable that an example sets is read by a program', () => {
  const known = knownVariables();
  const strangers = deployedProcesses().flatMap(({ where, environment }) =>
    Object.keys(environment)
      .filter((name) => !known.has(name))
      .map((name) => `${where}: ${name}`),
  );
  expect(strangers).toEqual([]);
  expect(known).toContain('CONFIG_TOKEN_FILE');
});

test('no secret is a variable: each comes from a file that is mounted', () => {
  const mounted = new Set(Object.keys(compose().secrets).map((name) => `/run/secrets/${name}`));
  const processes = deployedProcesses();
  for (const { environment } of processes)
    for (const name of ['DATABASE_URL', 'API_KEY_PEPPER', 'WEBHOOK_SECRET_KEYS', 'ACCOUNT_SECRET_KEYS', 'CONFIG_TOKEN'])
      expect(environment).not.toHaveProperty(name);
  const named = processes
    .filter(({ where }) => where.startsWith('compose'))
    .flatMap(({ environment }) => Object.entries(environment).filter(([name]) => name.endsWith('_FILE')));
  expect(named).toHaveLength(20);
  expect(named.filter(([, file]) => !mounted.has(file))).toEqual([]);
  for (const unit of units()) {
    const lines = unitLines(unit);
    const credentials = new Set(lines.filter(([, key]) => key === 'LoadCredential').map(([, , value]) => `%d/${value.split(':')[0]}`));
    const files = lines.flatMap(([, key, value]) => (key === 'Environment' && /_FILE=/.test(value) ? [value.split('=')[1]] : []));
    expect(files.filter((file) => !credentials.has(file ?? ''))).toEqual([]);
  }
});

test('whatever is stopped has more time than a worker needs to finish what it is sending', () => {
  const workers = deployedProcesses().filter(({ argv }) => argv.includes('--loop'));
  expect(workers.map(({ where }) => where)).toEqual([
    'compose worker',
    'kubernetes Deployment orders-worker',
    'deploy/systemd/orders-worker@.service',
  ]);
  for (const { stopSeconds } of workers) expect(stopSeconds).toBeGreaterThan(DEFAULT_TIMEOUT_MS / 1000 + 10);
});

test('the API is stopped with more time than it needs to be drained', () => {
  const apis = deployedProcesses().filter(({ argv, stopSeconds }) => argv.includes('start') && stopSeconds !== undefined);
  expect(apis.map(({ where }) => where)).toEqual(['compose api', 'kubernetes Deployment orders-api', 'deploy/systemd/orders-api.service']);
  for (const { environment, stopSeconds } of apis) {
    const { shutdownDelayMs, shutdownTimeoutMs } = readSettings({}, environment).settings;
    expect(stopSeconds).toBeGreaterThan((shutdownDelayMs + shutdownTimeoutMs) / 1000 + 10);
  }
});

test('every API of the examples is told which proxy to believe, by something that is an address', () => {
  const apis = deployedProcesses().filter(({ argv, where }) => argv.includes('start') && where !== 'Dockerfile');
  expect(apis).toHaveLength(3);
  for (const { where, environment } of apis) {
    const { trustedProxies } = readSettings({}, environment).settings;
    expect([where, trustedProxies?.length]).toEqual([where, 1]);
    expect(() => new TrustedProxies(trustedProxies)).not.toThrow();
  }
  expect(source('deploy/nginx/orders.conf')).toContain('proxy_set_header X-Forwarded-For $remote_addr;');
});

test('a probe waits longer than readiness may take', () => {
  const probes = pods().flatMap(({ where, spec }) =>
    where.endsWith('orders-api') ? spec.containers.flatMap(({ livenessProbe, readinessProbe }) => [livenessProbe, readinessProbe]) : [],
  );
  expect(probes.map((probe) => probe?.timeoutSeconds)).toEqual([3, 3]);
  expect(compose().services['api']?.healthcheck?.timeout).toBe('5s');
});

test('a job worker is stopped with more time than its jobs get to finish', () => {
  const workers = deployedProcesses().filter(({ argv }) => argv.includes('jobs'));
  expect(workers.map(({ where }) => where)).toEqual([
    'compose jobs',
    'kubernetes Deployment orders-jobs',
    'deploy/systemd/orders-jobs@.service',
  ]);
  const { stopTimeoutMs } = readJobsOptions({ jobs: [] });
  for (const { stopSeconds } of workers) expect(stopSeconds).toBeGreaterThan(stopTimeoutMs / 1000 + 10);
});

describe('nothing runs as root, writes to its image or can gain privileges', () => {
  test('in compose', () => {
    expect(source('deploy/docker/Dockerfile')).toMatch(/^USER node$/m);
    for (const service of Object.values(compose().services).filter(({ build }) => build !== undefined))
      expect(service).toMatchObject({ read_only: true, cap_drop: ['ALL'], security_opt: ['no-new-privileges:true'] });
  });

  test('in Kubernetes', () => {
    expect(pods()).toHaveLength(6);
    for (const { spec } of pods()) {
      expect(spec.securityContext).toMatchObject({ runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } });
      for (const container of spec.containers)
        expect(container.securityContext).toEqual({
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
        });
    }
  });

  test('under systemd', () => {
    for (const unit of units()) {
      const lines = unitLines(unit).map(([, key, value]) => `${key}=${value}`);
      expect(lines).toEqual(
        expect.arrayContaining(['DynamicUser=yes', 'NoNewPrivileges=yes', 'ProtectSystem=strict', 'CapabilityBoundingSet=']),
      );
    }
  });
});

test('the image is made from scripts, workspaces and files that exist', () => {
  const dockerfile = source('deploy/docker/Dockerfile');
  const scripts = (JSON.parse(source('package.json')) as { scripts: Record<string, string> }).scripts;
  for (const [, name = ''] of dockerfile.matchAll(/npm run (\w+)/g)) expect(scripts).toHaveProperty(name);
  const paths = [...dockerfile.matchAll(/--workspace (\S+)|--from=build \/src\/(\S+)/g)].map(
    ([, workspace, file]) => workspace ?? file ?? '',
  );
  expect(paths.filter((path) => path !== 'node_modules' && !existsSync(join(root, path)))).toEqual([]);
  expect(paths.length).toBeGreaterThan(6);
});

test('the configuration server of the ConfigMap serves what the one of compose serves', () => {
  const map = resources().find(({ kind, metadata }) => kind === 'ConfigMap' && metadata.name === 'config-server')?.data ?? {};
  expect(map['orders.toml']).toBe(source('deploy/config/orders.toml'));
});

test('systemd finds no fault in the units', { skip: spawnSync('systemd-analyze', ['--version']).status !== 0 }, () => {
  const verify = spawnSync('systemd-analyze', ['verify', ...units().map((unit) => join(root, unit))], { encoding: 'utf8' });
  // The machine that runs the test need not have Node where a server has it.
  const faults = verify.stderr
    .split('\n')
    .filter((line) => line.includes('deploy/systemd') && !line.includes('/usr/bin/node is not executable'));
  expect(faults).toEqual([]);
});

test('the page shows the Dockerfile that `kit new` writes', () => {
  const shown = /```dockerfile\n(.*?)```/s.exec(source('docs/guide/deployment.md'))?.[1];
  expect(shown).toBe(source('packages/kit/templates/common/Dockerfile'));
});
