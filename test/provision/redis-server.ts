import { spawn, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { freePort } from './free-port.ts';

/** A Redis server on loopback that a test file owns, or the caller's through REDIS_URL. */
export interface RedisServer {
  readonly url: string;
  stop(): Promise<void>;
}

function onPath(name: string): string | undefined {
  return (process.env['PATH'] ?? '')
    .split(delimiter)
    .filter((folder) => folder !== '')
    .map((folder) => join(folder, name))
    .find((file) => existsSync(file));
}

/** npm carries no Redis binaries; a Debian root run installs the distribution's. */
function installFromDebian(): string | undefined {
  if (process.getuid?.() !== 0 || !existsSync('/etc/debian_version')) return undefined;
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  spawnSync('apt-get', ['update', '-qq'], { env, stdio: 'ignore' });
  spawnSync('apt-get', ['install', '-y', '-qq', '--no-install-recommends', 'redis-server'], { env, stdio: 'ignore' });
  return onPath('redis-server');
}

/** Starts an empty in-memory server (about 50 ms). */
export async function startRedisServer(): Promise<RedisServer> {
  const given = process.env['REDIS_URL'];
  if (given !== undefined && given !== '') return { url: given, stop: () => Promise.resolve() };
  const binary = onPath('redis-server') ?? installFromDebian();
  if (binary === undefined) throw new Error('No redis-server on PATH: install Redis 6 or later, or set REDIS_URL to a server you run.');
  const folder = await mkdtemp(join(tmpdir(), 'kit-redis-'));
  const port = await freePort();
  const flags = ['--bind', '127.0.0.1', '--port', String(port), '--save', '', '--appendonly', 'no', '--dir', folder];
  const child = spawn(binary, flags, { stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = new Promise<void>((done) => child.once('exit', () => done()));
  await new Promise<void>((done, failed) => {
    let log = '';
    child.once('error', failed);
    child.once('exit', (code) => failed(new Error(`redis-server exited with ${code}: ${log.slice(-2000)}`)));
    child.stdout.on('data', (chunk: Buffer) => {
      log = (log + chunk.toString()).slice(-8000);
      if (/ready to accept connections/i.test(log)) done();
    });
  });
  return {
    url: `redis://127.0.0.1:${port}`,
    async stop() {
      child.kill('SIGKILL');
      await ended;
      await rm(folder, { recursive: true, force: true });
    },
  };
}
