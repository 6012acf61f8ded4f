// One contender of order-flow: a database of its own, its programs in processes of their own, started and killed as an operator would.
import { spawn, type ChildProcess } from 'node:child_process';
import { createHash } from 'node:crypto';
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';

/** A user of the shop: the key, and where the user's events are sent. */
export interface Account {
  readonly key: string;
  readonly endpoints: readonly { readonly url: string; readonly secret: string }[];
}

/** What a setup program is told: `ACCOUNTS`. It makes tables, users, keys and endpoints, and prints an `Account` for each as JSON. */
export interface AccountToMake {
  readonly name: string;
  readonly hooks: readonly string[];
}

export function given(): readonly AccountToMake[] {
  return JSON.parse(process.env['ACCOUNTS'] ?? '[]') as AccountToMake[];
}

export type Program = 'setup' | 'api' | 'worker';

/** How a contender is built and started. */
export interface Blueprint {
  readonly name: string;
  readonly packages: Readonly<Record<string, string>>;
  /** Programs besides the database that an operator runs. */
  readonly processes: readonly string[];
  /** Its sources, for the count of lines. */
  readonly sources: readonly string[];
  /** Makes it runnable; `peers` is where its packages are. Returns the folder to run in. */
  readonly build: (peers: string) => string;
  readonly command: (program: Program) => readonly string[];
  /** Rows of its audit log: `id` of the order and `action`. */
  readonly audit: string;
}

export interface Product {
  readonly name: string;
  readonly accounts: readonly Account[];
  readonly port: number;
  start(program: 'api' | 'worker'): Promise<void>;
  /** SIGKILL: nothing is finished, nothing is said. */
  kill(program: 'api' | 'worker'): Promise<void>;
  /** Process ids of what runs. */
  pids(): readonly number[];
  stop(): Promise<void>;
}

export interface ProductOptions {
  readonly blueprint: Blueprint;
  readonly folder: string;
  readonly databaseUrl: string;
  readonly redisUrl: string;
  readonly accounts: readonly AccountToMake[];
}

export async function startProduct({ blueprint, folder, databaseUrl, redisUrl, accounts }: ProductOptions): Promise<Product> {
  const port = await portOfAService();
  const env = {
    ...process.env,
    NODE_ENV: 'production',
    DATABASE_URL: databaseUrl,
    REDIS_URL: redisUrl,
    PORT: String(port),
    ACCOUNTS: JSON.stringify(accounts),
    API_KEY_PEPPER: 'a pepper that is long enough for a benchmark',
    ACCOUNT_SECRET_KEYS: 'MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=',
    WEBHOOK_SECRET_KEYS: 'MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=',
    AUTH_SECRET: 'a secret that is long enough for a benchmark',
  };
  const run = (program: Program, stdout: 'pipe' | 'ignore'): ChildProcess =>
    spawn(process.execPath, blueprint.command(program), { cwd: folder, env, stdio: ['ignore', stdout, 'inherit'] });
  const made = await outputOf(run('setup', 'pipe'), `the setup of ${blueprint.name}`);
  const running = new Map<Program, ChildProcess>();
  const product: Product = {
    name: blueprint.name,
    accounts: JSON.parse(made.trim().split('\n').at(-1) ?? '') as Account[],
    port,
    async start(program) {
      const child = run(program, 'ignore');
      running.set(program, child);
      if (program === 'api') await isReady(port, child, blueprint.name);
    },
    async kill(program) {
      const child = running.get(program);
      running.delete(program);
      if (child !== undefined) await ended(child, 'SIGKILL');
    },
    pids: () => [...running.values()].flatMap(({ pid }) => (pid === undefined ? [] : [pid])),
    async stop() {
      await Promise.all([...running.values()].map((child) => ended(child, 'SIGTERM')));
    },
  };
  await product.start('api');
  await product.start('worker');
  return product;
}

/**
 * Below the ports that the system gives to clients. Of those, one would be taken now and then by a client of a killed API: its connection begins at the
 * port that it calls, meets itself, and the API cannot listen again.
 */
async function portOfAService(): Promise<number> {
  for (;;) {
    const port = 20_000 + Math.floor(Math.random() * 10_000);
    const probe = createServer();
    const isFree = await new Promise<boolean>((done) => {
      probe.once('error', () => done(false)).listen(port, '127.0.0.1', () => done(true));
    });
    if (!isFree) continue;
    await new Promise((done) => probe.close(done));
    return port;
  }
}

async function outputOf(child: ChildProcess, what: string): Promise<string> {
  let output = '';
  child.stdout?.on('data', (chunk: Buffer) => (output += chunk.toString()));
  const code = await new Promise<number | null>((done, failed) => child.once('error', failed).once('close', done));
  if (code !== 0) throw new Error(`${what} ended with ${code}`);
  return output;
}

/** Only a hang takes as long, also on a machine ten times busier. */
const READY_MS = 300_000;

async function isReady(port: number, child: ChildProcess, name: string): Promise<void> {
  for (const deadline = Date.now() + READY_MS; Date.now() < deadline;) {
    if (child.exitCode !== null) throw new Error(`the API of ${name} ended with ${child.exitCode}`);
    const response = await fetch(`http://127.0.0.1:${port}/health/ready`, { signal: AbortSignal.timeout(5000) }).catch(() => undefined);
    await response?.arrayBuffer();
    if (response?.ok === true) return;
    await new Promise((done) => setTimeout(done, 25));
  }
  throw new Error(`the API of ${name} did not become ready within ${READY_MS / 60_000} minutes`);
}

async function ended(child: ChildProcess, signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = new Promise<void>((done) => child.once('exit', () => done()));
  child.kill(signal);
  const timer = setTimeout(() => child.kill('SIGKILL'), 20_000);
  await gone;
  clearTimeout(timer);
}

/** Copies sources beside their packages, where their imports find them. Returns the folder; `finish` runs once in it. */
export function copied(peers: string, source: string, finish: (folder: string) => void = () => undefined): string {
  const files = readdirSync(source).sort();
  const digest = createHash('sha256');
  for (const file of files) digest.update(file).update(readFileSync(join(source, file)));
  const folder = join(peers, `program-${digest.digest('hex').slice(0, 12)}`);
  if (existsSync(folder)) return folder;
  const draft = `${folder}-${process.pid}`;
  rmSync(draft, { recursive: true, force: true });
  mkdirSync(draft);
  for (const file of files) copyFileSync(join(source, file), join(draft, file));
  finish(draft);
  renameSync(draft, folder);
  return folder;
}
