import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Undefined: it is not installed. */
export const PGBOUNCER = ['/usr/sbin/pgbouncer', '/usr/bin/pgbouncer', '/usr/local/bin/pgbouncer', '/opt/homebrew/bin/pgbouncer'].find(
  (path) => spawnSync(path, ['--version']).status === 0,
);

interface PgBouncerOptions {
  /** For its files; it must exist. */
  readonly folder: string;
  readonly server: URL;
  /** On loopback. */
  readonly port: number;
  /** To the server. */
  readonly connections: number;
  /** Default: `transaction`, which gives clients another connection to the server for each transaction. */
  readonly mode?: 'transaction' | 'session';
}

/** PgBouncer without passwords, on loopback. */
export async function startPgBouncer({ folder, server, port, connections, mode = 'transaction' }: PgBouncerOptions): Promise<ChildProcess> {
  const { hostname, port: serverPort, username } = server;
  const settings = `[databases]
* = host=${hostname} port=${serverPort} user=${username}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = trust
auth_file = ${folder}/users.txt
pool_mode = ${mode}
default_pool_size = ${connections}
ignore_startup_parameters = extra_float_digits, options, application_name
`;
  writeFileSync(join(folder, 'users.txt'), `"${username}" ""\n`);
  writeFileSync(join(folder, 'pgbouncer.ini'), settings);
  chmodSync(folder, 0o755);
  // It refuses to run as root.
  const asNobody = process.getuid?.() === 0 ? ['-u', 'nobody'] : [];
  const bouncer = spawn(PGBOUNCER as string, [...asNobody, join(folder, 'pgbouncer.ini')], { stdio: ['ignore', 'ignore', 'pipe'] });
  await new Promise<void>((up, failed) => {
    let said = '';
    bouncer.stderr?.on('data', (text: Buffer) => {
      said += text.toString();
      if (said.includes('process up')) up();
    });
    bouncer.once('exit', () => failed(new Error(`PgBouncer ended: ${said}`)));
  });
  return bouncer;
}
