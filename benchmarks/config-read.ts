// How fast is an authenticated, audited read of a 2 KiB document, compared with a bare node:http server that returns a constant buffer, over one
// connection and over 50? And what does a read cost where the document comes from Git, has an encrypted value and a mounted secret, and is
// explained to the line? All run on the same core, one after the other in every round. nginx and etcd's JSON gateway join when they are installed.
import { execFileSync, spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { mkdirSync, mkdtempSync, openSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as age from 'age-encryption';
import { sealValue } from '../packages/config-server/src/secrets/encrypted-value.ts';
import { defineBenchmark } from './harness/benchmark.ts';
import { contest, median, ratioOf, type Contender } from './harness/contest.ts';
import { pinned, SERVER_CORE } from './harness/cores.ts';
import { requestsPerSecond, type HttpLoad } from './harness/http-load.ts';
import { startServer, type ServerProcess } from './harness/server-process.ts';

const TOKEN = 'benchmark-token-0123456789-0123456789';
const DOCUMENT_BYTES = 2048;
const NGINX_PORT = 18_088;
const ETCD_PORT = 18_079;

const SERVER = `
[server]
bind = "127.0.0.1:0"
watch_debounce_ms = 0
`;
const SECTION = `
[[server.sections]]
application = "billing"
profile = "production"
files = ["billing.json"]
whole_document = true
[[server.clients]]
name = "benchmark"
token = "${TOKEN}"
applications = ["billing"]
`;

const SECRET = 'correct horse battery staple';

/** A document of exactly DOCUMENT_BYTES, as a service might have: a few dozen settings. */
function makeDocument(): string {
  const settings: Record<string, string> = { password: SECRET, token: SECRET };
  for (let index = 0; index < 38; index += 1) settings[`setting_${index}`] = `value of setting ${index}`;
  const padding = DOCUMENT_BYTES - JSON.stringify({ ...settings, padding: '' }).length;
  return JSON.stringify({ ...settings, padding: 'x'.repeat(padding) });
}

/** The same document with everything that is opt-in: from a Git repository, one value encrypted, one from a mounted secret, explained to the line. */
async function writeEverything(folder: string): Promise<void> {
  const repository = join(folder, 'repository');
  mkdirSync(repository, { recursive: true });
  const identity = await age.generateX25519Identity();
  writeFileSync(join(folder, 'identity.txt'), `${identity}\n`, { mode: 0o600 });
  writeFileSync(join(folder, 'token'), SECRET, { mode: 0o600 });
  const recipients = [await age.identityToRecipient(identity)];
  const password = await sealValue(age, { file: 'billing.json', key: 'password', value: SECRET }, recipients);
  const document = { ...(JSON.parse(makeDocument()) as object), password, token: `ref+file://${join(folder, 'token')}` };
  writeFileSync(join(repository, 'billing.json'), JSON.stringify(document, null, 2));
  const git = (...args: readonly string[]): unknown =>
    execFileSync('git', ['-c', 'user.name=Ada', '-c', 'user.email=ada@example.com', ...args], { cwd: repository });
  git('init', '--quiet', '--initial-branch=main');
  git('add', '.');
  git('commit', '--quiet', '--message', 'settings');
  const opted = `explain_lines = true\n[server.secrets]\nidentities = "identity.txt"\nmounts = "."\n[git]\nrepository = "repository"\nbranch = "main"\n`;
  writeFileSync(join(folder, 'server.toml'), `${SERVER}${opted}${SECTION}`);
}

export default defineBenchmark({
  name: 'config-read',
  question: 'document reads per second (2 KiB, token and audit on) against a bare node:http constant',
  async run(context) {
    const folder = mkdtempSync(join(tmpdir(), 'bench-config-read-'));
    const stops: (() => unknown)[] = [() => rmSync(folder, { recursive: true, force: true })];
    try {
      writeFileSync(join(folder, 'billing.json'), makeDocument());
      writeFileSync(join(folder, 'server.toml'), `${SERVER}${SECTION}`);
      await writeEverything(join(folder, 'everything'));
      const bare = await startServer(new URL('./servers/bare-document.ts', import.meta.url), { args: [join(folder, 'billing.json')] });
      stops.push(() => bare.stop());
      const config = new URL('./servers/config-server.ts', import.meta.url);
      const auditLog = join(folder, 'audit.log');
      const start = async (toml: string): Promise<ServerProcess> => {
        const server = await startServer(config, { args: [toml], stderr: openSync(auditLog, 'a') });
        stops.push(() => server.stop());
        return server;
      };
      const ours = await start(join(folder, 'server.toml'));
      const everything = await start(join(folder, 'everything/server.toml'));
      const documentOf = ({ port }: ServerProcess): HttpLoad => ({
        url: `http://127.0.0.1:${port}/billing/production`,
        headers: { authorization: `Bearer ${TOKEN}` },
      });
      const served = await fetch(documentOf(everything).url, { headers: documentOf(everything).headers ?? {} });
      const { password, token } = (await served.json()) as { readonly password?: string; readonly token?: string };
      if (password !== SECRET || token !== SECRET) throw new Error('the document with everything switched on is not the same document');
      const cpu = { ours: new CpuPerRequest(ours), bare: new CpuPerRequest(bare), everything: new CpuPerRequest(everything) };
      const empty = (): void => truncateSync(auditLog);
      const bareUrl = `http://127.0.0.1:${bare.port}/`;
      const result = await contest(context, [
        contender('config-server', { ...documentOf(ours), connections: 50 }, cpu.ours.counting(empty)),
        contender('bare node:http', { url: bareUrl, connections: 50 }, cpu.bare.counting()),
        contender('with everything on', { ...documentOf(everything), connections: 50 }, cpu.everything.counting(empty)),
        contender('config-server, 1 connection', { ...documentOf(ours), connections: 1 }, truncating(empty)),
        contender('bare node:http, 1 connection', { url: bareUrl, connections: 1 }),
        ...(await installedPeers(folder, stops)),
      ]);
      const micros = Object.entries(cpu).map(([name, each]) => `${name} ${each.median().toFixed(1)} µs`);
      context.print(`\nCPU per request: ${micros.join(', ')}`);
      return [
        { name: 'config-read-50', value: ratioOf(result, 'config-server', 'bare node:http'), goal: 0.85 },
        { name: 'config-read-1', value: ratioOf(result, 'config-server, 1 connection', 'bare node:http, 1 connection'), goal: 0.75 },
        // Where the load generator is what limits the rate, only CPU time tells the servers apart.
        { name: 'config-read-cpu', value: cpu.bare.median() / cpu.ours.median(), goal: 0.75 },
        { name: 'config-read-everything', value: cpu.ours.median() / cpu.everything.median(), goal: 0.95 },
      ];
    } finally {
      for (const stop of stops.toReversed()) await stop();
    }
  },
});

type Around = (measured: () => Promise<number>, seconds: number) => Promise<number>;

function contender(name: string, load: HttpLoad, around: Around = (measured) => measured()): Contender {
  return { name, measure: (seconds) => around(() => requestsPerSecond(load, seconds), seconds) };
}

const truncating =
  (after: () => void): Around =>
  async (measured) => {
    const rate = await measured();
    after();
    return rate;
  };

/** CPU time of a server process per request, per round. */
class CpuPerRequest {
  readonly #server: ServerProcess;
  readonly #micros: number[] = [];

  constructor(server: ServerProcess) {
    this.#server = server;
  }

  counting(after: () => void = () => undefined): Around {
    return async (measured, seconds) => {
      const before = await this.#server.cpuMicros();
      const rate = await measured();
      this.#micros.push(((await this.#server.cpuMicros()) - before) / (rate * seconds));
      after();
      return rate;
    };
  }

  median(): number {
    // The first round warmed up.
    return median(this.#micros.slice(1));
  }
}

const isInstalled = (command: string): boolean => spawnSync(command, ['--version']).error === undefined;

/** Others that hand out a small document; shown for orientation, no goal is tied to them. */
async function installedPeers(folder: string, stops: (() => unknown)[]): Promise<Contender[]> {
  const peers: Contender[] = [];
  if (isInstalled('nginx')) {
    const configuration = `daemon off; master_process off; worker_processes 1; pid ${folder}/nginx.pid; error_log /dev/null;
      events { worker_connections 256; }
      http { access_log ${folder}/nginx.log; server { listen 127.0.0.1:${NGINX_PORT}; root ${folder}; location / { keepalive_requests 1000000; } } }`;
    writeFileSync(join(folder, 'nginx.conf'), configuration);
    stops.push(stopper(launch('nginx', ['-p', folder, '-c', join(folder, 'nginx.conf')])));
    peers.push(contender('nginx, static file', { url: `http://127.0.0.1:${NGINX_PORT}/billing.json` }));
  }
  if (isInstalled('etcd')) {
    const listen = `http://127.0.0.1:${ETCD_PORT}`;
    const args = ['--data-dir', join(folder, 'etcd'), '--listen-client-urls', listen, '--advertise-client-urls', listen];
    stops.push(stopper(launch('etcd', [...args, '--listen-peer-urls', `http://127.0.0.1:${ETCD_PORT + 1}`])));
    const key = Buffer.from('billing/production').toString('base64');
    const put = { method: 'POST', body: JSON.stringify({ key, value: Buffer.from(makeDocument()).toString('base64') }) };
    await untilAnswered(() => fetch(`${listen}/v3/kv/put`, put));
    peers.push(contender('etcd, JSON gateway', { url: `${listen}/v3/kv/range`, method: 'POST', body: JSON.stringify({ key }) }));
  }
  if (peers.length > 0) await new Promise((resolve) => setTimeout(resolve, 1_000));
  return peers;
}

function launch(command: string, args: string[]): ChildProcess {
  const run = pinned(SERVER_CORE, command, args);
  return spawn(run.command, run.args, { stdio: 'ignore' });
}

const stopper = (child: ChildProcess) => (): Promise<unknown> => {
  const gone = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGTERM');
  return gone;
};

async function untilAnswered(attempt: () => Promise<Response>): Promise<void> {
  for (let count = 0; count < 50; count += 1) {
    if (
      await attempt().then(
        (response) => response.ok,
        () => false,
      )
    )
      return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error('the peer did not come up');
}
