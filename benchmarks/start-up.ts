// How long does an app take to be ready? `kit start` of the orders example on PostgreSQL from the start of its process to its first 200 of
// /health/ready, against a bare Fastify server with a pg pool; `testApp` of a new project's first test with everything that it imports; and a
// restart by `kit dev` from the saved file to the new response. Seconds are those of the fastest round: what else the machine does adds to them,
// several times over on a busy one. The ratio is of CPU time, which it hardly changes.
// The sources are started as they are, without a build, and with warm compile caches, as on a developer's machine.
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../test/provision/free-port.ts';
import { startPostgresServer } from '../test/provision/postgres-server.ts';
import { defineBenchmark, type BenchmarkContext } from './harness/benchmark.ts';
import { median } from './harness/contest.ts';
import { table } from './harness/table.ts';

const root = join(import.meta.dirname, '..');
const kit = ['--conditions=source', join(root, 'packages/kit/bin/kit.js')];

const FIRST_TEST = `import { testApp } from 'kit/testing';
import { appOptions } from './src/app.ts';
await using app = await testApp(appOptions);
if ((await app.as({ id: '01890000-0000-7000-8000-000000000001' }).get('/v1/notes')).statusCode !== 200) process.exit(1);
`;

/** A start: by the clock, and the time that the process computed, where it is known. */
interface Start {
  readonly wallMs: number;
  readonly cpuMs: number | null;
}

/** User and system time of a process so far. Linux counts it in hundredths of a second. */
function cpuMsOf(pid: number): number {
  // After the name of the program, which may contain anything: the 12th and 13th word from there on.
  const words = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /s, '')
    .split(' ');
  return (Number(words[11]) + Number(words[12])) * 10;
}

interface Place {
  /** A new project, with the packages of the workspace. */
  readonly project: string;
  readonly environment: NodeJS.ProcessEnv;
}

function start({ environment }: Place, args: readonly string[], cwd: string, more: NodeJS.ProcessEnv = {}): ChildProcess {
  return spawn(process.execPath, args, { cwd, env: { ...environment, ...more }, stdio: ['ignore', 'pipe', 'ignore'] });
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return;
  const ended = once(child, 'exit');
  child.kill('SIGTERM');
  await ended;
}

async function answers(url: string, isNew: (response: Response) => boolean): Promise<void> {
  for (;;) {
    const response = await fetch(url).catch(() => undefined);
    await response?.arrayBuffer();
    if (response !== undefined && isNew(response)) return;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** From the start of a server's process to its first successful response. */
async function timeToReady(place: Place, args: readonly string[], cwd: string): Promise<Start> {
  const port = String(await freePort());
  const began = performance.now();
  const child = start(place, args, cwd, { PORT: port });
  await answers(`http://127.0.0.1:${port}/health/ready`, ({ status }) => status === 200);
  const started = { wallMs: performance.now() - began, cpuMs: cpuMsOf(child.pid ?? 0) };
  await stop(child);
  return started;
}

async function timeToEnd(place: Place, args: readonly string[], cwd: string): Promise<Start> {
  const began = performance.now();
  const child = start(place, args, cwd);
  const [code] = (await once(child, 'exit')) as [number | null];
  if (code !== 0) throw new Error(`${args.join(' ')} ended with ${code}`);
  return { wallMs: performance.now() - began, cpuMs: null };
}

/** One `kit dev` for all rounds: each saves a file and waits until the new version is served. */
async function devServer(place: Place): Promise<{ restart(): Promise<Start>; stop(): Promise<void> }> {
  const port = String(await freePort());
  const file = join(place.project, 'src/app.ts');
  const text = readFileSync(file, 'utf8');
  const child = start(place, [...kit, 'dev', '--yes', '--port', port], place.project, {
    DATABASE_URL: `sqlite:${join(place.project, 'dev.db')}`,
  });
  const url = `http://127.0.0.1:${port}/openapi.json`;
  let tag: string | null = null;
  let saves = 0;
  const isNew = (response: Response): boolean => response.status === 200 && response.headers.get('etag') !== tag;
  const latest = async (): Promise<string | null> => (await fetch(url)).headers.get('etag');
  await answers(url, isNew);
  return {
    async restart() {
      tag = await latest();
      const began = performance.now();
      writeFileSync(file, text.replace("version: '0.1.0'", `version: '0.1.${++saves}'`));
      await answers(url, isNew);
      return { wallMs: performance.now() - began, cpuMs: null };
    },
    stop: () => stop(child),
  };
}

async function measure(context: BenchmarkContext, place: Place): Promise<ReadonlyMap<string, Start[]>> {
  const orders = join(root, 'examples/orders');
  const dev = await devServer(place);
  const sides: Readonly<Record<string, () => Promise<Start>>> = {
    'kit start (orders)': () => timeToReady(place, [...kit, 'start'], orders),
    'bare Fastify + pg': () => timeToReady(place, [join(root, 'benchmarks/servers/bare-fastify-pg.ts')], orders),
    'first testApp': () => timeToEnd(place, ['--conditions=source', 'first-test.ts'], place.project),
    'kit dev restart': () => dev.restart(),
  };
  const times = new Map(Object.keys(sides).map((name) => [name, [] as Start[]]));
  try {
    // The first round fills the compile caches.
    for (let round = 0; round <= context.rounds; round++)
      for (const [name, side] of Object.entries(sides)) {
        const took = await side();
        if (round > 0) times.get(name)?.push(took);
      }
  } finally {
    await dev.stop();
  }
  return times;
}

function newProject(folder: string): string {
  const project = join(folder, 'project');
  const templates = join(root, 'packages/kit/templates');
  for (const path of ['minimal', 'common']) cpSync(join(templates, path), project, { recursive: true });
  writeFileSync(join(project, 'package.json'), '{ "type": "module" }');
  writeFileSync(join(project, 'first-test.ts'), FIRST_TEST);
  symlinkSync(join(root, 'node_modules'), join(project, 'node_modules'));
  return project;
}

export default defineBenchmark({
  name: 'start-up',
  question: 'How long does an app take to be ready, next to a bare Fastify server with a pg pool?',
  async run(context) {
    const folder = mkdtempSync(join(tmpdir(), 'kit-bench-start-'));
    const server = await startPostgresServer();
    try {
      const { PATH = '', HOME = '' } = process.env;
      const environment = {
        PATH,
        HOME,
        DATABASE_URL: server.url,
        DATA_FOLDER: join(folder, 'data'),
        LOG_LEVEL: 'error',
        NODE_COMPILE_CACHE: join(folder, 'cache'),
      };
      const place: Place = { project: newProject(folder), environment };
      await timeToEnd(place, [...kit, 'migrate'], join(root, 'examples/orders'));
      const times = await measure(context, place);
      const clock = (name: string): number[] => (times.get(name) ?? []).map(({ wallMs }) => wallMs);
      const cpu = (name: string): number[] => (times.get(name) ?? []).flatMap(({ cpuMs }) => cpuMs ?? []);
      const seconds = (name: string): number => Math.min(...clock(name)) / 1000;
      const whole = (value: number): string => (Number.isFinite(value) ? String(Math.round(value)) : '-');
      const rows = [...times.keys()].map((name) => [
        name,
        whole(Math.min(...clock(name))),
        whole(median(clock(name))),
        whole(Math.min(...cpu(name))),
      ]);
      context.print(table(['start', 'fastest ms', 'median ms', 'CPU ms'], rows));
      const bare = cpu('bare Fastify + pg');
      const ratio = median(cpu('kit start (orders)').map((each, round) => each / (bare[round] ?? Number.NaN)));
      return [
        { name: 'start-up-orders-seconds', value: seconds('kit start (orders)'), goal: 1, atMost: true },
        { name: 'start-up-first-test-seconds', value: seconds('first testApp'), goal: 1, atMost: true },
        { name: 'start-up-dev-restart-seconds', value: seconds('kit dev restart'), goal: 1, atMost: true },
        { name: 'start-up-vs-bare', value: ratio, goal: 8, atMost: true },
      ];
    } finally {
      await server.stop();
      rmSync(folder, { recursive: true, force: true });
    }
  },
});
