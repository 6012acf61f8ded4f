import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { root } from '../docs/pages.ts';
import { freePort } from './free-port.ts';

/** The nginx of this machine (Debian: `nginx-light`); undefined where there is none. */
export const NGINX = ['/usr/sbin/nginx', '/usr/bin/nginx', '/usr/local/bin/nginx', '/opt/homebrew/bin/nginx'].find(
  (path) => spawnSync(path, ['-v']).status === 0,
);

export interface NginxServer {
  readonly url: string;
  stop(): Promise<void>;
}

/** nginx as `deploy/nginx/orders.conf` sets it up, without TLS, in front of these ports of loopback. */
export async function startNginx(upstreams: readonly number[]): Promise<NginxServer> {
  const folder = mkdtempSync(join(tmpdir(), 'kit-nginx-'));
  const port = await freePort();
  // Every process is tried for every request: by default nginx avoids one for ten seconds after it was stopped.
  const servers = upstreams.map((upstream) => `server 127.0.0.1:${upstream} max_fails=0;`).join('\n');
  const site = readFileSync(join(root, 'deploy/nginx/orders.conf'), 'utf8')
    .replace('server 127.0.0.1:3000;', servers)
    .replace('listen 443 ssl;', `listen 127.0.0.1:${port};`)
    .replaceAll(/^ *ssl_.*$/gm, '');
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${folder}/${name};`).join('\n');
  writeFileSync(
    join(folder, 'nginx.conf'),
    `${process.getuid?.() === 0 ? 'user root;' : ''}
daemon off;
pid ${folder}/nginx.pid;
error_log stderr;
worker_processes 1;
events {}
http {
  access_log off;
  ${temporary}
  ${site}
}
`,
  );
  const child = spawn(NGINX as string, ['-p', folder, '-e', 'stderr', '-c', join(folder, 'nginx.conf')], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let said = '';
  child.stderr.on('data', (text: Buffer) => (said = (said + text.toString()).slice(-4000)));
  const ended = new Promise<void>((done) => child.once('exit', () => done()));
  while (!(await isOpen(port))) {
    if (child.exitCode !== null) throw new Error(`nginx ended: ${said}`);
    await delay(20);
  }
  return {
    url: `http://127.0.0.1:${port}`,
    async stop() {
      child.kill('SIGTERM');
      await ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function isOpen(port: number): Promise<boolean> {
  return new Promise((answer) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => {
      socket.destroy();
      answer(true);
    });
    socket.once('error', () => answer(false));
  });
}
