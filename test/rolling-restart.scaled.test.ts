import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { Agent as HttpAgent, request as httpRequest } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { KitProgram, sourceOf } from '../packages/kit/test/cli/kit-program.ts';
import { deployedProcesses, pods } from './deployment/manifests.ts';
import { HAPROXY, NGINX, startHaproxy, startNginx } from './provision/balancer.ts';
import { freePort } from './provision/free-port.ts';
import { KubernetesService } from './provision/kubernetes-service.ts';
import { scaled } from './provision/scale.ts';
import { shippedFile } from './provision/shipped-file.ts';

// `.ci/run` installs the packages.
test('nginx and HAProxy are installed where everything must be tested', () => {
  expect(NGINX !== undefined || process.env['KIT_REQUIRE_NGINX'] === undefined).toBe(true);
  expect(HAPROXY !== undefined || process.env['KIT_REQUIRE_HAPROXY'] === undefined).toBe(true);
});

const CONFIG = `import { createApp, Controller, route } from ${sourceOf('index.ts')};
import { setTimeout as delay } from 'node:timers/promises';
import { HealthController } from ${sourceOf('middleware/index.ts')};
import { allowAny } from ${sourceOf('permissions/index.ts')};
class WorkController extends Controller {
  read = route.get('/', { permission: allowAny }, () => undefined);
  write = route.post('/', { permission: allowAny, csrf: false }, () => delay(Math.random() * 20));
}
export default createApp({ database: 'sqlite:./app.db', mount: { '/': { '/work': WorkController, '/health': HealthController } }, log: { level: 'silent' } });
`;

const CLIENTS = 12;
/** A client waits up to this, times its number: the first not at all. */
const PAUSE_MS = scaled(100, 20);
const STOPS = scaled(2, 8);
const REQUESTS = scaled(300, 10_000);
/** How long a node may go on sending connections to a pod that is being stopped. */
const ENDPOINT_LAG_MS = 3000;
/** Between a process that serves again and the next that is stopped: by then a proxy that asks for readiness has seen it. The page says so. */
const BETWEEN_MS = 1000;

interface Pod {
  readonly port: number;
  /** Sends SIGTERM, and resolves when it has ended. */
  stop(): Promise<number | null>;
}

let folder: string;
let program: KitProgram;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'kit-restart-'));
  await writeFile(join(folder, 'kit.config.ts'), CONFIG);
  program = new KitProgram(folder);
  expect((await program.run(['migrate'])).code).toBe(0);
});
afterAll(async () => {
  await program.close();
  await rm(folder, { recursive: true, force: true });
});

/** What the example sets for a process that is stopped behind a proxy. */
function environmentOf(where: string): Record<string, string> {
  const { environment } = deployedProcesses().find((each) => each.where === where && each.argv.includes('start')) ?? { environment: {} };
  expect(environment).not.toEqual({});
  return {
    NODE_ENV: 'production',
    ...Object.fromEntries(Object.entries(environment).filter(([name]) => /^(?:SHUTDOWN_|NODE_ENV)/.test(name))),
  };
}

async function startApp(port: number, environment: Readonly<Record<string, string>>): Promise<Pod> {
  const child = program.start(['start', '--port', String(port)], { environment });
  let printed = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (text: Buffer) => (printed += text.toString()));
  const exit = new Promise<number | null>((done) => child.once('close', done));
  onTestFinished(() => void child.kill('SIGKILL'));
  await expect.poll(() => child.exitCode !== null || printed.includes('listens on'), { timeout: 300_000 }).toBe(true);
  expect(printed).toContain('listens on');
  return {
    port,
    stop: () => {
      child.kill('SIGTERM');
      return exit;
    },
  };
}

/** Clients that keep connections and never send a request a second time; what they got, counted. */
function startClients(url: string): { stop(): Promise<ReadonlyMap<number | string, number>>; readonly sent: () => number } {
  const isTls = url.startsWith('https:');
  const agent = isTls ? new HttpsAgent({ keepAlive: true, rejectUnauthorized: false }) : new HttpAgent({ keepAlive: true });
  const answers = new Map<number | string, number>();
  let total = 0;
  const ask = (method: string): Promise<number | string> =>
    new Promise((answered) => {
      const request = (isTls ? httpsRequest : httpRequest)(`${url}/work`, { method, agent }, (response) => {
        response.on('error', (error) => answered(error.message));
        response.on('end', () => answered(response.statusCode ?? 0)).resume();
      });
      request.on('error', (error) => answered(error.message)).end();
    });
  const over = new AbortController();
  const client = async (index: number): Promise<void> => {
    for (let sent = index; !over.signal.aborted; sent += 1) {
      const answer = await ask(sent % 3 === 0 ? 'GET' : 'POST');
      answers.set(answer, (answers.get(answer) ?? 0) + 1);
      total += 1;
      // Some connections are idle at each moment, for times of any length.
      await delay(Math.random() * PAUSE_MS * index);
    }
  };
  const clients = Array.from({ length: CLIENTS }, (_, index) => client(index));
  return {
    sent: () => total,
    async stop() {
      over.abort();
      await Promise.all(clients);
      agent.destroy();
      return answers;
    },
  };
}

/** Stops and starts one process after the other, under load, until there were enough requests. */
async function rolling(url: string, restart: (index: number) => Promise<void>): Promise<ReadonlyMap<number | string, number>> {
  const clients = startClients(url);
  for (let stop = 0; stop < STOPS || clients.sent() < REQUESTS; stop += 1) {
    await delay(BETWEEN_MS);
    await restart(stop % 2);
  }
  return clients.stop();
}

describe.each([
  ['nginx', NGINX, startNginx],
  ['HAProxy', HAPROXY, startHaproxy],
] as const)('a rolling restart behind %s with the file that we ship', (_, installed, start) => {
  test.runIf(installed !== undefined)('loses no request', { timeout: 1_800_000 }, async () => {
    const environment = environmentOf('deploy/systemd/orders-api.service');
    const ports = [await freePort(), await freePort()] as const;
    const processes = [await startApp(ports[0], environment), await startApp(ports[1], environment)];
    const balancer = await start(ports);
    onTestFinished(() => balancer.stop());
    const answers = await rolling(balancer.url, async (index) => {
      expect(await processes[index]?.stop()).toBe(0);
      processes[index] = await startApp(ports[index as 0 | 1], environment);
    });
    expect([...answers.keys()]).toEqual([204]);
    await Promise.all(processes.map((each) => each.stop()));
  });
});

test(
  'a rolling restart by Kubernetes’ rules, whose nodes learn of it seconds later, loses no request',
  { timeout: 1_800_000 },
  async () => {
    const environment = environmentOf('kubernetes Deployment orders-api');
    const grace = pods().find(({ where }) => where.endsWith('orders-api'))?.spec.terminationGracePeriodSeconds ?? 0;
    const service = await KubernetesService.start(ENDPOINT_LAG_MS);
    onTestFinished(() => service.stop());
    const replicas = await Promise.all([0, 1].map(async () => startApp(await freePort(), environment)));
    await Promise.all(replicas.map(({ port }) => service.add(port)));
    const answers = await rolling(service.url, async (index) => {
      // The new pod is ready before the old one is told to stop.
      const next = await startApp(await freePort(), environment);
      await service.add(next.port);
      const old = replicas[index] as Pod;
      replicas[index] = next;
      const began = performance.now();
      const [code] = await Promise.all([old.stop(), service.remove(old.port)]);
      expect(code).toBe(0);
      expect(performance.now() - began).toBeLessThan(grace * 1000);
    });
    expect([...answers.keys()]).toEqual([204]);
    await Promise.all(replicas.map((each) => each.stop()));
  },
);

test('nothing but addresses and paths of a shipped file can be replaced by a test', () => {
  expect(() => shippedFile('deploy/nginx/orders.conf', { 'max_fails=0': 'max_fails=9' })).toThrow('is no address and no path');
  expect(() => shippedFile('deploy/nginx/orders.conf', { '127.0.0.1:9': '127.0.0.1:1' })).toThrow('does not contain');
});
