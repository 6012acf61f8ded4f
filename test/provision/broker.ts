import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from './free-port.ts';

/** A real message broker on loopback with a folder of its own, which a test can kill and start again. */
export interface Broker {
  readonly url: string;
  readonly port: number;
  /** The process does not get to say anything. What it has written stays. */
  kill(): Promise<void>;
  /** Stops answering without closing anything, as an overloaded host does. */
  pause(): void;
  resume(): void;
  /** On the same port and folder. */
  start(): Promise<void>;
  /** Kills it and removes its folder. */
  close(): Promise<void>;
}

const first = (...paths: readonly string[]): string | undefined => paths.find((path) => existsSync(path));

/** Undefined: not installed. Debian: nats-server, rabbitmq-server, redis-server. */
export const NATS_SERVER = first('/usr/sbin/nats-server', '/usr/bin/nats-server', '/usr/local/bin/nats-server');
/** Not the wrapper on PATH, which changes to another user and clears the environment. */
export const RABBITMQ_SERVER = first('/usr/lib/rabbitmq/bin/rabbitmq-server', '/opt/homebrew/sbin/rabbitmq-server');
export const REDIS_SERVER = first('/usr/bin/redis-server', '/usr/local/bin/redis-server', '/opt/homebrew/bin/redis-server');

interface Program {
  readonly command: string;
  readonly args: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
}

async function startBroker(
  url: (port: number) => string,
  programOf: (folder: string, port: number) => Promise<Program>,
  gone?: () => void,
): Promise<Broker> {
  const folder = await mkdtemp(join(tmpdir(), 'kit-broker-'));
  const port = await freePort();
  let child: ChildProcess | undefined;
  const signal = (name: NodeJS.Signals): void => {
    // RabbitMQ starts as a shell script: the whole group.
    if (child?.pid !== undefined && child.exitCode === null && child.signalCode === null) process.kill(-child.pid, name);
  };
  const kill = async (): Promise<void> => {
    if (child === undefined) return;
    const ended =
      child.exitCode !== null || child.signalCode !== null ? Promise.resolve() : new Promise((done) => child?.once('exit', done));
    signal('SIGKILL');
    await ended;
    child = undefined;
  };
  const broker: Broker = {
    url: url(port),
    port,
    kill,
    pause: () => signal('SIGSTOP'),
    resume: () => signal('SIGCONT'),
    async start() {
      const { command, args, environment = {} } = await programOf(folder, port);
      child = spawn(command, args, { stdio: 'ignore', detached: true, env: { ...process.env, ...environment } });
      await reachable(port, child);
    },
    async close() {
      signal('SIGCONT');
      await kill();
      gone?.();
      await rm(folder, { recursive: true, force: true, maxRetries: 5 });
    },
  };
  await broker.start();
  return broker;
}

/** Two minutes: RabbitMQ takes 10 s on a machine that does nothing else. */
async function reachable(port: number, child: ChildProcess): Promise<void> {
  for (const end = Date.now() + 120_000; Date.now() < end;) {
    if (child.exitCode !== null) throw new Error(`the broker ended with ${child.exitCode}`);
    const isUp = await new Promise<boolean>((resolve) => {
      const socket = connect(port, '127.0.0.1');
      socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
      socket.once('connect', () => socket.destroy());
    });
    if (isUp) return;
    await new Promise((done) => setTimeout(done, 100));
  }
  throw new Error('the broker did not start');
}

export function startNats(): Promise<Broker> {
  return startBroker(
    (port) => `nats://127.0.0.1:${port}`,
    async (folder, port) => ({ command: NATS_SERVER ?? '', args: ['-js', '-sd', folder, '-a', '127.0.0.1', '-p', String(port)] }),
  );
}

/** With `appendOnly: false` it forgets what it had when it is killed. */
export function startRedis({ appendOnly = true, settings = [] as readonly string[] } = {}): Promise<Broker> {
  return startBroker(
    (port) => `redis://127.0.0.1:${port}`,
    async (folder, port) => ({
      command: REDIS_SERVER ?? '',
      args: [
        '--bind',
        '127.0.0.1',
        '--port',
        String(port),
        '--dir',
        folder,
        '--save',
        '',
        '--appendonly',
        appendOnly ? 'yes' : 'no',
        ...settings,
      ],
    }),
  );
}

export async function startRabbitMq(): Promise<Broker> {
  const [distribution, mapper] = [await freePort(), await freePort()];
  const epmd = { ERL_EPMD_PORT: String(mapper), ERL_EPMD_ADDRESS: '127.0.0.1' };
  return startBroker(
    (port) => `amqp://guest:guest@127.0.0.1:${port}`,
    async (folder, port) => {
      await mkdir(join(folder, 'home'), { recursive: true });
      await writeFile(join(folder, 'plugins'), '[].');
      await writeFile(join(folder, 'rabbit.conf'), `listeners.tcp.1 = 127.0.0.1:${port}\nloopback_users = none\n`);
      const environment = {
        ...epmd,
        HOME: join(folder, 'home'),
        RABBITMQ_NODENAME: `kit${port}@localhost`,
        RABBITMQ_MNESIA_BASE: join(folder, 'data'),
        RABBITMQ_LOG_BASE: join(folder, 'log'),
        RABBITMQ_ENABLED_PLUGINS_FILE: join(folder, 'plugins'),
        RABBITMQ_CONFIG_FILE: join(folder, 'rabbit'),
        RABBITMQ_DIST_PORT: String(distribution),
        RABBITMQ_CONF_ENV_FILE: '/dev/null',
        RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS: '-kernel inet_dist_use_interface {127,0,0,1}',
      };
      return { command: RABBITMQ_SERVER ?? '', args: [], environment };
    },
    // The mapper of ports stays when its node ends.
    () => void spawnSync('epmd', ['-port', String(mapper), '-kill'], { env: { ...process.env, ...epmd }, stdio: 'ignore' }),
  );
}
