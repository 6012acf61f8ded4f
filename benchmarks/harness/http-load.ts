import { spawn, spawnSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { LOAD_CORE, pinned } from './cores.ts';

export interface HttpLoad {
  readonly url: string;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly connections?: number;
  /** The status every answer must have; a benchmark of errors measures nothing. */
  readonly expectStatus?: number;
}

const hasWrk = spawnSync('wrk', ['--version']).error === undefined;

async function output(command: string, args: string[]): Promise<string> {
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  let out = '';
  let err = '';
  child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (err += chunk.toString()));
  const code = await new Promise<number | null>((done) => child.once('close', done));
  if (code !== 0) throw new Error(`${command} failed (${code}): ${err.slice(-500)}`);
  return out;
}

/** Requests per second under keep-alive load from the load core: `wrk` for plain GETs when present, else autocannon. */
export async function requestsPerSecond(load: HttpLoad, seconds: number): Promise<number> {
  const headers = Object.entries(load.headers ?? {});
  const connections = load.connections ?? 20;
  const expected = load.expectStatus ?? 200;
  if (hasWrk && (load.method ?? 'GET') === 'GET') {
    const args = ['-t1', `-c${connections}`, `-d${seconds}s`, ...headers.flatMap(([name, value]) => ['-H', `${name}: ${value}`]), load.url];
    const run = pinned(LOAD_CORE, 'wrk', args);
    const text = await output(run.command, run.args);
    const failed = /Non-2xx or 3xx responses: (\d+)/.exec(text);
    if (failed !== null && expected < 400) throw new Error(`${failed[1]} unexpected answers from ${load.url}`);
    return Number(/Requests\/sec:\s+([\d.]+)/.exec(text)?.[1]);
  }
  const autocannon = createRequire(import.meta.url).resolve('autocannon/autocannon.js');
  const args = [autocannon, '--json', '-c', String(connections), '-d', String(seconds), '-m', load.method ?? 'GET'];
  for (const [name, value] of headers) args.push('-H', `${name}=${value}`);
  if (load.body !== undefined) args.push('-b', load.body);
  const run = pinned(LOAD_CORE, process.execPath, [...args, load.url]);
  const report = JSON.parse(await output(run.command, run.args)) as {
    requests: { average: number; total: number };
    duration: number;
    statusCodeStats?: Record<string, { count: number }>;
    errors: number;
  };
  const wrong = Object.entries(report.statusCodeStats ?? {}).filter(([status]) => Number(status) !== expected);
  if (wrong.length > 0 || report.errors > 0)
    throw new Error(`unexpected answers from ${load.url}: ${JSON.stringify({ wrong, errors: report.errors })}`);
  return report.requests.average;
}
