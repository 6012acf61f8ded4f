import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { existsSync, globSync } from 'node:fs';
import { chmod, chown, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { userInfo, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { freePort } from './free-port.ts';

const SERVER_BIN = globSync('/usr/lib/postgresql/*/bin').toSorted().at(-1);
const PROGRAMS = ['/usr/bin/patroni', '/usr/bin/etcd', '/usr/sbin/haproxy'];

/** Why no cluster can run here; undefined where one can. */
export const NO_PATRONI: string | undefined =
  SERVER_BIN === undefined || PROGRAMS.some((path) => !existsSync(path))
    ? 'Patroni, etcd, HAProxy or PostgreSQL is not installed (Debian: patroni, etcd-server, haproxy, postgresql): the test is skipped.'
    : undefined;

export interface ClusterNode {
  readonly name: string;
  /** Of PostgreSQL. */
  readonly port: number;
}

interface RunningNode extends ClusterNode {
  readonly api: number;
  readonly config: string;
  readonly patroni: ChildProcess;
}

const PASSWORD = 'kit';

/** PostgreSQL servers that Patroni keeps: one takes writes, each acknowledged commit is on two. */
export class PatroniCluster {
  /** HAProxy, which leads to the server that takes writes, and closes the connections to one that does not any more. */
  readonly port: number;
  readonly #folder: string;
  readonly #nodes: RunningNode[];
  readonly #others: ChildProcess[];

  static async start(count = 3): Promise<PatroniCluster> {
    const identity = ids();
    const folder = await mkdtemp(join(tmpdir(), 'kit-patroni-'));
    await chmod(folder, 0o755);
    const others: ChildProcess[] = [];
    const run = (program: string, args: readonly string[], asOther = true): ChildProcess => {
      const child = spawn(program, args, {
        ...(asOther ? identity : {}),
        cwd: folder,
        stdio: 'ignore',
        env: { PATH: process.env['PATH'], LC_ALL: 'C', HOME: folder },
      });
      return child;
    };
    const own = async (path: string): Promise<string> => {
      await mkdir(path, { recursive: true, mode: 0o700 });
      if (identity.uid !== undefined) await chown(path, identity.uid, identity.gid ?? identity.uid);
      return path;
    };
    const [client, peer] = [await freePort(), await freePort()];
    const etcd = [
      '--data-dir',
      await own(join(folder, 'etcd')),
      '--listen-client-urls',
      `http://127.0.0.1:${client}`,
      '--advertise-client-urls',
    ];
    const peers = ['--listen-peer-urls', `http://127.0.0.1:${peer}`, '--initial-advertise-peer-urls', `http://127.0.0.1:${peer}`];
    others.push(
      run('/usr/bin/etcd', [
        ...etcd,
        `http://127.0.0.1:${client}`,
        ...peers,
        '--initial-cluster',
        `default=http://127.0.0.1:${peer}`,
        '--unsafe-no-fsync',
      ]),
    );
    const nodes: RunningNode[] = [];
    for (let index = 0; index < count; index += 1) {
      const name = `node${index}`;
      const node = { name, port: await freePort(), api: await freePort(), config: join(folder, `${name}.json`) };
      const data = join(await own(join(folder, name)), 'data');
      await writeFile(node.config, JSON.stringify(configuration(node, data, client)));
      nodes.push({ ...node, patroni: run('/usr/bin/patroni', [node.config]) });
    }
    const port = await freePort();
    await writeFile(join(folder, 'haproxy.cfg'), balancer(port, nodes));
    others.push(run('/usr/sbin/haproxy', ['-db', '-f', join(folder, 'haproxy.cfg')], false));
    const cluster = new PatroniCluster(folder, nodes, others, port);
    try {
      await cluster.#isWhole();
    } catch (error) {
      await cluster.stop();
      throw error;
    }
    return cluster;
  }

  private constructor(folder: string, nodes: RunningNode[], others: ChildProcess[], port: number) {
    this.#folder = folder;
    this.#nodes = nodes;
    this.#others = others;
    this.port = port;
  }

  /** A database behind this port of loopback. */
  url(port: number | string): string {
    return `postgres://kit:${PASSWORD}@${typeof port === 'number' ? `127.0.0.1:${port}` : port}/postgres`;
  }

  get nodes(): readonly ClusterNode[] {
    return this.#nodes;
  }

  /** The server that takes writes, as Patroni says; undefined while there is none. */
  async leader(): Promise<ClusterNode | undefined> {
    const answers = await Promise.all(
      this.#nodes.map(async (node) => ((await statusOf(`http://127.0.0.1:${node.api}/primary`)) === 200 ? [node] : [])),
    );
    return answers.flat()[0];
  }

  /** Moves the leadership to another server, with everything committed. */
  async switchover(): Promise<void> {
    const leader = await this.leader();
    const node = this.#nodes.find(({ name }) => name === leader?.name);
    const response = await fetch(`http://127.0.0.1:${node?.api}/switchover`, {
      method: 'POST',
      body: JSON.stringify({ leader: leader?.name }),
    });
    if (!response.ok) throw new Error(`switchover: ${response.status} ${await response.text()}`);
  }

  /** kill -9 of PostgreSQL's postmaster and of Patroni on the server that takes writes: the machine is gone. */
  async killLeader(): Promise<ClusterNode> {
    const leader = await this.leader();
    const node = this.#nodes.find(({ name }) => name === leader?.name);
    if (node === undefined) throw new Error('no leader');
    node.patroni.kill('SIGKILL');
    for (const pid of this.#postmastersOf(node)) process.kill(pid, 'SIGKILL');
    return node;
  }

  async stop(): Promise<void> {
    for (const child of this.#others) child.kill('SIGKILL');
    for (const node of this.#nodes) {
      node.patroni.kill('SIGKILL');
      for (const pid of this.#postmastersOf(node)) process.kill(pid, 'SIGQUIT');
    }
    await rm(this.#folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 200 });
  }

  /** Found by the folder of this cluster, which no other process has. */
  #postmastersOf({ name }: RunningNode): number[] {
    const { stdout } = spawnSync('cat', [join(this.#folder, name, 'data', 'postmaster.pid')], { encoding: 'utf8' });
    const pid = Number(stdout.split('\n')[0]);
    return Number.isInteger(pid) && pid > 1 && isAlive(pid) ? [pid] : [];
  }

  /** Resolves when every server follows the one that takes writes, and one of them has each commit: a failover loses nothing then. */
  async #isWhole(): Promise<void> {
    const deadline = performance.now() + 180_000;
    while (performance.now() < deadline) {
      const leader = await this.leader();
      const replicas = await Promise.all(this.#nodes.map(({ api }) => statusOf(`http://127.0.0.1:${api}/replica`)));
      const isSynchronous = await Promise.all(this.#nodes.map(({ api }) => statusOf(`http://127.0.0.1:${api}/sync`)));
      if (
        leader !== undefined &&
        replicas.filter((status) => status === 200).length === this.#nodes.length - 1 &&
        isSynchronous.includes(200)
      )
        return;
      await delay(200);
    }
    throw new Error('the cluster was not whole within three minutes');
  }
}

function configuration(node: ClusterNode & { readonly api: number }, data: string, etcd: number): object {
  return {
    scope: 'kit',
    name: node.name,
    restapi: { listen: `127.0.0.1:${node.api}`, connect_address: `127.0.0.1:${node.api}` },
    etcd3: { hosts: [`127.0.0.1:${etcd}`] },
    bootstrap: {
      dcs: {
        ttl: 20,
        loop_wait: 2,
        retry_timeout: 5,
        master_start_timeout: 0,
        primary_start_timeout: 0,
        synchronous_mode: true,
        postgresql: { use_pg_rewind: true, parameters: { max_connections: 100, wal_level: 'replica', hot_standby: 'on' } },
      },
      initdb: [{ encoding: 'UTF8' }, 'no-sync', { auth: 'trust' }],
    },
    postgresql: {
      listen: `127.0.0.1:${node.port}`,
      connect_address: `127.0.0.1:${node.port}`,
      data_dir: data,
      bin_dir: SERVER_BIN,
      pgpass: join(data, '..', 'pgpass'),
      authentication: {
        superuser: { username: 'kit', password: PASSWORD },
        replication: { username: 'replicator', password: PASSWORD },
        rewind: { username: 'rewinder', password: PASSWORD },
      },
      pg_hba: ['host all all 127.0.0.1/32 trust', 'host replication all 127.0.0.1/32 trust'],
      parameters: { unix_socket_directories: data, fsync: 'off' },
    },
  };
}

function balancer(port: number, nodes: readonly RunningNode[]): string {
  return `defaults
  mode tcp
  timeout connect 2s
  timeout client 1h
  timeout server 1h
listen postgres
  bind 127.0.0.1:${port}
  option httpchk GET /primary
  http-check expect status 200
  default-server inter 1s fall 2 rise 1 on-marked-down shutdown-sessions
${nodes.map((node) => `  server ${node.name} 127.0.0.1:${node.port} check port ${node.api}`).join('\n')}
`;
}

async function statusOf(url: string): Promise<number> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(2000) });
    await response.arrayBuffer();
    return response.status;
  } catch {
    return 0;
  }
}

/** PostgreSQL refuses to run as root. */
function ids(): { uid?: number; gid?: number } {
  if (userInfo().uid !== 0) return {};
  const [uid, gid] = spawnSync('sh', ['-c', 'id -u postgres && id -g postgres'], { encoding: 'utf8' })
    .stdout.trim()
    .split('\n')
    .map(Number);
  return uid === undefined || gid === undefined ? {} : { uid, gid };
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
