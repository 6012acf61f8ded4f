import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { createCertificate } from '../../packages/config-server/test/certificates.ts';
import { freePort } from './free-port.ts';
import { shippedFile } from './shipped-file.ts';

/** The nginx of this machine (Debian: `nginx-light`); undefined where there is none. */
export const NGINX = ['/usr/sbin/nginx', '/usr/bin/nginx', '/usr/local/bin/nginx', '/opt/homebrew/bin/nginx'].find(
  (path) => spawnSync(path, ['-v']).status === 0,
);

/** The HAProxy of this machine (Debian: `haproxy`); undefined where there is none. */
export const HAPROXY = ['/usr/sbin/haproxy', '/usr/bin/haproxy', '/usr/local/bin/haproxy', '/opt/homebrew/bin/haproxy'].find(
  (path) => spawnSync(path, ['-v']).status === 0,
);

export interface Balancer {
  readonly url: string;
  /** The file of the certificate, which no authority has signed. */
  readonly certificate: string;
  stop(): Promise<void>;
}

/** nginx with `deploy/nginx/orders.conf`, in front of two ports of loopback. */
export async function startNginx([first, second]: readonly [number, number]): Promise<Balancer> {
  const folder = balancerFolder();
  const port = await freePort();
  const site = shippedFile('deploy/nginx/orders.conf', {
    '127.0.0.1:3000': `127.0.0.1:${first}`,
    '127.0.0.1:3001': `127.0.0.1:${second}`,
    '443 ssl': `127.0.0.1:${port} ssl`,
    '/etc/nginx/tls/orders.crt': join(folder, 'orders.crt'),
    '/etc/nginx/tls/orders.key': join(folder, 'orders.key'),
  });
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${folder}/${name};`).join('\n');
  // What Debian's nginx.conf has around the files of conf.d.
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
  return started(NGINX as string, ['-p', folder, '-e', 'stderr', '-c', join(folder, 'nginx.conf')], folder, port);
}

/** HAProxy with `deploy/haproxy/orders.cfg`, in front of two ports of loopback. */
export async function startHaproxy([first, second]: readonly [number, number]): Promise<Balancer> {
  const folder = balancerFolder();
  const port = await freePort();
  const file = shippedFile('deploy/haproxy/orders.cfg', {
    '127.0.0.1:3000': `127.0.0.1:${first}`,
    '127.0.0.1:3001': `127.0.0.1:${second}`,
    ':443': `127.0.0.1:${port}`,
    '/etc/haproxy/tls/orders.pem': join(folder, 'orders.pem'),
  });
  writeFileSync(join(folder, 'haproxy.cfg'), file);
  return started(HAPROXY as string, ['-db', '-f', join(folder, 'haproxy.cfg')], folder, port);
}

/** A folder with a certificate, in the forms that both take. */
function balancerFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'kit-balancer-'));
  const { cert, key } = createCertificate({ name: 'orders.example.com', hosts: ['127.0.0.1'] });
  writeFileSync(join(folder, 'orders.crt'), cert);
  writeFileSync(join(folder, 'orders.key'), key);
  writeFileSync(join(folder, 'orders.pem'), `${cert}${key}`);
  return folder;
}

async function started(program: string, args: readonly string[], folder: string, port: number): Promise<Balancer> {
  const child = spawn(program, args, { stdio: ['ignore', 'ignore', 'pipe'] });
  let said = '';
  child.stderr.on('data', (text: Buffer) => (said = (said + text.toString()).slice(-4000)));
  const ended = new Promise<void>((done) => child.once('exit', () => done()));
  while (!(await isOpen(port))) {
    if (child.exitCode !== null) throw new Error(`${program} ended: ${said}`);
    await delay(20);
  }
  return {
    url: `https://127.0.0.1:${port}`,
    certificate: join(folder, 'orders.crt'),
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
