import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, request as httpRequest, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { NGINX, startNginx } from '../provision/balancer.ts';
import { freePort } from '../provision/free-port.ts';
import { runScript } from './run-script.ts';

const FIVE_MINUTES = 300_000;
const PYTHON = ['/usr/bin/python3', 'python3'].find(
  (each) => spawnSync(each, ['-c', 'import httpx, sys; assert sys.version_info >= (3, 11)']).status === 0,
);
const folder = mkdtempSync(join(tmpdir(), 'kit-clean-end-'));
const servers = new Set<ChildProcess>();
afterAll(() => {
  for (const server of servers) server.kill('SIGKILL');
  rmSync(folder, { recursive: true, force: true });
});

async function startCounts(port: number, dies: boolean): Promise<ChildProcess> {
  const script = join(import.meta.dirname, 'serve-counts.ts');
  const options = ['--conditions=source', '--disable-warning=ExperimentalWarning'];
  const child = spawn(process.execPath, [...options, script, String(port), folder, dies ? 'dies' : 'lives'], {
    env: { ...process.env, NODE_OPTIONS: '', NODE_ENV: 'development' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  servers.add(child);
  const ended = once(child, 'exit').then(() => Promise.reject(new Error('The server ended before it listened.')));
  await Promise.race([once(child.stdout, 'data'), ended]);
  ended.catch(() => undefined);
  return child;
}

/** A server that kills itself after 42 of 100 events; another one then takes its place. */
async function dyingServer(): Promise<number> {
  const port = await freePort();
  const child = await startCounts(port, true);
  // The test may be over, and this server killed, before it listens.
  child.once('exit', () => void startCounts(port, false).catch(() => undefined));
  return port;
}

interface Proxy {
  readonly url: string;
  readonly certificate?: string;
  stop(): Promise<void>;
}

/** Passes a response on, and ends it as if it were complete when the server dies. */
async function startCleanProxy(target: number): Promise<Proxy> {
  const proxy: Server = createServer((incoming, outgoing) => {
    const passed = httpRequest({ host: '127.0.0.1', port: target, path: incoming.url, headers: incoming.headers }, (response) => {
      outgoing.writeHead(response.statusCode ?? 502, response.headers);
      response.on('data', (chunk) => outgoing.write(chunk));
      response.on('error', () => undefined).on('close', () => outgoing.end());
    });
    passed.on('error', () => outgoing.headersSent || outgoing.writeHead(502).end());
    passed.end();
  });
  await new Promise<void>((listening) => proxy.listen(0, '127.0.0.1', listening));
  const stop = async () => {
    proxy.closeAllConnections();
    await new Promise((closed) => proxy.close(closed));
  };
  return { url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`, stop };
}

/** nginx as we ship it ends a response without a length as if it were complete, too. Its second server is never there. */
const proxies: Readonly<Record<string, (target: number) => Promise<Proxy>>> = {
  nginx: async (target) => startNginx([target, await freePort()]),
  'a proxy that ends every response': startCleanProxy,
};

/** The numbers that arrived, and the name of the error after them. */
type Followed = (proxy: Proxy, method: 'numbered' | 'plain') => Promise<string>;

const clients: Readonly<Record<string, Followed>> = {
  async typescript({ url, certificate }, method) {
    if (certificate !== undefined) vi.stubEnv('NODE_TLS_REJECT_UNAUTHORIZED', '0');
    // oxlint-disable-next-line typescript/no-explicit-any -- the generated client is not known to the compiler
    const { createClient }: any = await import(join(folder, 'api.ts'));
    const numbers: number[] = [];
    try {
      for await (const { data } of createClient({ baseUrl: url, retries: 1000 }).count[method]()) numbers.push(data.number as number);
    } catch (error) {
      return `${numbers.length} ${(error as Error).constructor.name}`;
    }
    return numbers.join(' ');
  },
  async python({ url, certificate }, method) {
    const script = `import os, api
numbers = []
try:
    for event in api.Client(os.environ["URL"], retries=1000).count.${method}():
        numbers.append(event.data.number)
    print(*numbers)
except api.ClientError as error:
    print(len(numbers), type(error).__name__)
`;
    writeFileSync(join(folder, 'main.py'), script);
    const { stdout, stderr } = await runScript(PYTHON!, ['main.py'], folder, {
      URL: url,
      ...(certificate === undefined ? {} : { SSL_CERT_FILE: certificate }),
    });
    return stdout.trim() + stderr;
  },
};

const EVERY = Array.from({ length: 100 }, (_, index) => index + 1).join(' ');

describe.for(Object.entries(proxies))('through %s', ([name, start]) => {
  test.for(Object.keys(clients))(
    '%s: a finite stream whose server is killed behind a proxy goes on after its last id; without ids it is an error, never an end',
    { timeout: FIVE_MINUTES },
    async (language, context) => {
      context.skip(
        language === 'python' && PYTHON === undefined && process.env['KIT_REQUIRE_PYTHON'] === undefined,
        'Python with httpx is not installed',
      );
      context.skip(name === 'nginx' && NGINX === undefined && process.env['KIT_REQUIRE_NGINX'] === undefined, 'nginx is not installed');
      onTestFinished(() => void vi.unstubAllEnvs());
      for (const [method, expected] of [
        ['numbered', EVERY],
        ['plain', '42 ConnectionFailed'],
      ] as const) {
        const proxy = await start(await dyingServer());
        onTestFinished(() => proxy.stop());
        expect(await clients[language]!(proxy, method)).toBe(expected);
      }
    },
  );
});
